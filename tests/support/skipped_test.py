#!/usr/bin/python3
"""tools/packages.sh, report_skipped: real output of ctest with a skipped test is reported, and fails in CI only."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = """
add_test(passes "true")
add_test(clients_x "sh" "-c" "exit 77")
set_tests_properties(clients_x PROPERTIES SKIP_RETURN_CODE 77)
"""


def ctest_output(folder, tests):
    with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
        file.write(tests)
    done = subprocess.run(["ctest", "--test-dir", folder], capture_output=True, text=True)
    path = os.path.join(folder, "output")
    with open(path, "w") as file:
        file.write(done.stdout)
    return path


def report(path, ci):
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    environment.update({"CI": "true"} if ci else {})
    return subprocess.run(["bash", "-c", '. "$0"; report_skipped "$1"', os.path.join(ROOT, "tools", "packages.sh"), path],
                          capture_output=True, text=True, env=environment)


def main():
    if not shutil.which("ctest"):
        print("skipped: no ctest")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path = ctest_output(folder, TESTS)
        for ci in (False, True):
            done = report(path, ci)
            assert done.returncode == (1 if ci else 0), done
            assert "clients_x" in done.stderr and "passes" not in done.stderr, done.stderr
        path = ctest_output(folder, 'add_test(passes "true")')
        done = report(path, True)
        assert done.returncode == 0 and done.stderr == "", done
    return 0


if __name__ == "__main__":
    sys.exit(main())
