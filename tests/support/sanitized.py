#!/usr/bin/python3
"""Runs one test of a sanitizers' build: sanitized.py [--suppressions FOLDER] COMMAND…

Every process that the test starts writes what its sanitizer finds into a file of a folder of this test's own, whoever ends
it and how: a server that is killed with its report unread, or whose exit code nobody looks at, still fails the test. The
reports are printed, and the exit code is the command's, or 1 where there are reports.
"""
import os
import shutil
import subprocess
import sys
import tempfile

SHOWN_BYTES = 20_000


def with_options(name, *options):
    """The sanitizer's variable: ours first, so that what the caller has set goes before."""
    return ":".join([*options, *filter(None, [os.environ.get(name)])])


def suppressions(folder, name):
    path = os.path.join(folder, name) if folder else ""
    return [f"suppressions={path}"] if os.path.exists(path) else []


def environment(reports, folder):
    log = f"log_path={os.path.join(reports, 'report')}"
    return dict(os.environ,
                ASAN_OPTIONS=with_options("ASAN_OPTIONS", log),
                UBSAN_OPTIONS=with_options("UBSAN_OPTIONS", log, "print_stacktrace=1"),
                LSAN_OPTIONS=with_options("LSAN_OPTIONS", *suppressions(folder, "lsan.txt")),
                TSAN_OPTIONS=with_options("TSAN_OPTIONS", log, *suppressions(folder, "tsan.txt")))


def main():
    arguments = sys.argv[1:]
    folder = None
    if arguments and arguments[0] == "--suppressions":
        folder, arguments = arguments[1], arguments[2:]
    reports = tempfile.mkdtemp(prefix="hotkv-sanitizer-")
    try:
        code = subprocess.run(arguments, env=environment(reports, folder), check=False).returncode
        names = sorted(os.listdir(reports))
        for name in names:
            with open(os.path.join(reports, name), errors="replace") as file:
                print(f"\n######## {name}\n{file.read(SHOWN_BYTES)}", flush=True)
        if names:
            print(f"sanitized.py: {len(names)} processes left a report; the test itself ended with {code}")
        return 1 if names else code if code >= 0 else 128 - code
    finally:
        shutil.rmtree(reports, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
