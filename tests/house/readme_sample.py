"""Compiles the C++ programs of a Markdown document against the public headers alone, without linking.

Usage: readme_sample.py DOCUMENT INCLUDE_DIR COMPILER
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def main():
    document, include, compiler = sys.argv[1:4]
    samples = re.findall(r"^```cpp\n(.*?)^```", pathlib.Path(document).read_text(encoding="utf-8"), re.M | re.S)
    programs = [sample for sample in samples if "int main(" in sample]
    failures = 0
    for program in programs:
        with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
            file.write(program)
            file.flush()
            flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
            failures += subprocess.run([compiler, *flags, file.name]).returncode != 0
    print(f"{document}: {len(programs)} programs, {failures} of them do not compile")
    return 1 if failures or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
