"""Checks that documents agree with the tree: links lead to files, documents that sources name exist, and every variable
that the library reads is in docs/environment.md.

Usage: document_links.py SOURCE_DIR
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]*\ssrc=\"([^\"]+)\"")
NAMED_DOCUMENT = re.compile(r"\bdocs/[\w/-]+\.md\b")
VARIABLE = re.compile(r'Variable\{"(RONDO_\w+)"')
SOURCES = ["include", "src", "transports", "algorithms", "perf", "tools", "bench"]


def lines_of(file):
    return enumerate(file.read_text(encoding="utf-8").splitlines(), 1)


def links(root):
    for document in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        fenced = False
        for number, line in lines_of(document):
            if line.startswith("```"):
                fenced = not fenced
            if fenced:
                continue
            for groups in LINK.findall(line):
                target = (groups[0] or groups[1]).split("#")[0]
                if target and "://" not in target and not target.startswith("mailto:"):
                    yield f"{document.relative_to(root)}:{number}", target, (document.parent / target).exists()


def named_documents(root):
    for folder in SOURCES:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in {".hpp", ".cpp", ".py", ".txt"}:
                for number, line in lines_of(file):
                    for target in NAMED_DOCUMENT.findall(line):
                        yield f"{file.relative_to(root)}:{number}", target, (root / target).exists()


def variables(root):
    table = root / "src/base/environment.cpp"
    documented = (root / "docs/environment.md").read_text(encoding="utf-8")
    for number, line in lines_of(table) if table.exists() else []:
        for name in VARIABLE.findall(line):
            yield f"{table.relative_to(root)}:{number}", name, f"`{name}`" in documented


def main():
    root = pathlib.Path(sys.argv[1])
    checked, missing = 0, []
    for where, what, exists in [*links(root), *named_documents(root), *variables(root)]:
        checked += 1
        if not exists:
            missing.append(f"{where}: {what} is missing" + (" in docs/environment.md" if what.startswith("RONDO_") else ""))
    print("\n".join(missing) or f"{checked} links, documents and variables lead somewhere")
    return 1 if missing or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
