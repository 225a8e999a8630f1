#!/usr/bin/python3
"""tools/lint finds each kind of fault in a tree made for it, and nothing in a clean one."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CLEAN_HEADER = '// What it is for.\n#pragma once\n\n#include "engine/base/b.h"\n\nint Twice(int x);\n'
LONG_BODY = "".join(f"  x += {i};\n" for i in range(80))
CASES = [
    ("clean", {"index/a.h": CLEAN_HEADER}, None),
    ("include upwards", {"engine/base/c.h": '// c\n#pragma once\n#include "index/a.h"\n', "index/a.h": CLEAN_HEADER},
     "engine/base must not include index"),
    ("tools see no server", {"tools/t.cc": '#include "server/s.h"\n', "server/s.h": "// s\n#pragma once\n"},
     "tools must not include server"),
    ("unknown include", {"index/a.cc": '#include "b.h"\n'}, "start at the root"),
    ("long file", {"index/a.cc": "int x;\n" * 801}, "801 lines"),
    ("long test file is allowed more", {"tests/a.cc": "int x;\n" * 1100}, None),
    ("long function", {"index/a.cc": f"int F(int x) {{\n{LONG_BODY}  return x;\n}}\n"}, "function of 83 lines"),
    ("long method", {"index/a.cc": f"class A {{\n int F(int x) const {{\n{LONG_BODY}  return x;\n}}\n}};\n"},
     "function of 83 lines"),
    ("long constructor", {"index/a.cc": f"A::A(int x) : x_{{x}}, y_(2) {{\n{LONG_BODY}}}\n"}, "function of 82 lines"),
    ("long table is no function", {"index/a.cc": "const int kTable[] = {\n" + "  1,\n" * 90 + "};\n"}, None),
    ("long class is no function", {"index/a.cc": "class A {\n" + "  int F(int);\n" * 90 + "};\n"}, None),
    ("braces in strings", {"index/a.cc": 'int F() { return "{{{"[0]; }\nint G() { return \'{\'; }\n' + "int x;\n" * 90},
     None),
    ("unfinished", {"index/a.cc": "// TO" "DO: later\n"}, "finish it"),
    ("path of a machine", {"docs/a.md": "see /wo" "rk/x\n"}, "path of one machine"),
    ("missing page", {"index/a.cc": "// docs/nothing.md\n"}, "docs/nothing.md does not exist"),
    ("no guard", {"index/a.h": "// a\nint x;\n"}, "no #pragma once"),
    ("no opening comment", {"index/a.h": "#pragma once\n"}, "starts with 3 to 15 lines"),
    ("header alone", {"index/a.h": "// a\n#pragma once\nstd::string x();\n"}, "does not compile alone"),
]


def run(files):
    with tempfile.TemporaryDirectory(prefix="hotkv-lint-") as tree:
        for name, text in {"engine/base/b.h": "// b\n#pragma once\n", **files}.items():
            path = os.path.join(tree, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        os.makedirs(os.path.join(tree, "tools"), exist_ok=True)
        shutil.copy(os.path.join(ROOT, "tools", "lint"), os.path.join(tree, "tools", "lint"))
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
        fast = [] if any(name.endswith(".h") for name in files) else ["--fast"]
        done = subprocess.run([sys.executable, "-B", "tools/lint", *fast], cwd=tree, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def main():
    failed = 0
    for title, files, wanted in CASES:
        code, output = run(files)
        good = code == 0 if wanted is None else code == 1 and wanted in output
        if not good:
            failed += 1
            print(f"{title}: exit code {code}, expected {wanted!r}\n{output}")
    print(f"{len(CASES)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
