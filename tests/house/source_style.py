"""Checks what a formatter does not: line length, tabs, trailing blanks, final newline, guards, file size.

Usage: source_style.py SOURCE_DIR | --self-test
"""

import pathlib
import sys

FOLDERS = ["include", "src", "transports", "algorithms", "perf", "tools", "bindings", "training", "tests", "bench"]
CODE = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
OTHERS = {".py", ".sh", ".cmake"}
MOST_COLUMNS = 120
MOST_LINES = 800  # a file past about 400 lines is asked whether it does two jobs; past this it does


def breaches_of(name, text):
    found = []
    lines = text.split("\n")
    code = pathlib.PurePosixPath(name).suffix in CODE
    for number, line in enumerate(lines, 1):
        if code and len(line) > MOST_COLUMNS:
            found.append(f"{name}:{number}: {len(line)} columns; at most {MOST_COLUMNS}")
        if "\t" in line:
            found.append(f"{name}:{number}: a tab; indent with spaces")
        if line != line.rstrip():
            found.append(f"{name}:{number}: blanks at the end of the line")
        if "\r" in line:
            found.append(f"{name}:{number}: a carriage return; end lines with a newline alone")
    if text and not text.endswith("\n"):
        found.append(f"{name}: the last line has no newline")
    if name.endswith(".hpp") and "#pragma once" not in lines:
        # Highway's per-target files are included once for each instruction set, on purpose.
        if not name.endswith("-inl.hpp"):
            found.append(f"{name}: no #pragma once")
    if code and len(lines) > MOST_LINES:
        found.append(f"{name}: {len(lines)} lines; at most {MOST_LINES}: which two jobs does it do?")
    return found


def check(root):
    files, found = 0, []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in CODE | OTHERS and file.is_file():
                files += 1
                found += breaches_of(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
    return files, found


def self_test():
    good = "#pragma once\nint f();\n"
    planted = [
        ("a.hpp", good, 0),
        ("a.hpp", "int f();\n", 1),
        ("a-inl.hpp", "int f();\n", 0),
        ("a.cpp", "int f();", 1),
        ("a.cpp", "// " + "x" * 118 + "\n", 1),
        ("a.cpp", "\tint f();\n", 1),
        ("a.cpp", "int f();  \n", 1),
        ("a.cpp", "int f();\n" * 900, 1),
        ("a.py", "# " + "x" * 130 + "\n", 0),
    ]
    wrong = 0
    for name, text, count in planted:
        found = breaches_of(name, text)
        if len(found) != count:
            wrong += 1
            print(f"{name} {text[:30]!r}: {len(found)} found, {count} planted: {found}")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    files, found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or f"{files} files keep the house style")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
