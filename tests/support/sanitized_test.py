#!/usr/bin/python3
"""sanitized.py fails a test whose process leaves a report, even if the test itself is content: with faults made on purpose."""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def sanitized(*command):
    # This test may be run by sanitized.py itself, which must not get the reports.
    environment = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "sanitized.py"), *command],
                          capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="test_base")
    program = parser.parse_args().program
    careless = f"'{program}' 'allocator fault: use after free' >/dev/null 2>&1; exit 0"
    code, output = sanitized("sh", "-c", careless)
    assert code == 1 and "heap-use-after-free" in output and "1 processes left a report" in output, (code, output)
    code, output = sanitized("sh", "-c", f"'{program}' 'allocator: zeroed*' >/dev/null; exit 0")
    assert code == 0 and "report" not in output, (code, output)
    for wanted in (3, 77):
        assert sanitized("sh", "-c", f"exit {wanted}")[0] == wanted
    print("sanitized.py: fine")


if __name__ == "__main__":
    main()
