"""What librondo.so shows to the programs it goes into.

exports.py symbols LIBRARY           every dynamic symbol it defines belongs to namespace rondo
exports.py preload LIBRARY PYTHON    preloaded into Python, it disturbs nothing
exports.py --self-test               a library that exports another library's template is refused
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# A function or variable of ours, or run-time type information of a type of ours. A template instance is demangled with
# its return type in front, so it is none of these: ours are not exported either.
OURS = re.compile(r"^(vtable for |typeinfo for |typeinfo name for )?rondo::")


def demangled_exports(library):
    run = subprocess.run(["nm", "-D", "-C", "--defined-only", library], check=True, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) == 3:
            yield fields[1], fields[2].split("@@")[0]


def foreign(library):
    exports = list(demangled_exports(library))
    return exports, [f"{kind} {name}" for kind, name in exports if not OURS.match(name)]


def symbols(library):
    exports, others = foreign(library)
    for line in others:
        print(f"exported, and not ours: {line}")
    names = {name for _, name in exports}
    missing = [name for name in ["typeinfo for rondo::Error", "rondo::version()"] if name not in names]
    for name in missing:
        print(f"not exported, and programs need it: {name}")
    print(f"{len(exports)} symbols exported, {len(others)} of them foreign")
    return 1 if others or missing or not exports else 0


def preload(library, python):
    script = (
        "import hashlib, json, threading, subprocess, sys\n"
        "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'librondo.so' in maps, 'the library was not loaded'\n"
        "child = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True)\n"
        "assert child.stdout == '42\\n' and child.stderr == '', child\n"
        "print(json.dumps({'threads': threading.active_count()}))\n"
    )
    environment = dict(os.environ, LD_PRELOAD=library)
    run = subprocess.run([python, "-c", script], env=environment, capture_output=True, text=True, timeout=30)
    print(run.stdout, run.stderr)
    quiet = run.stdout == '{"threads": 1}\n' and run.stderr == ""
    if run.returncode != 0 or not quiet:
        print(f"exit code {run.returncode}; 0 and one line of output, nothing on stderr, are right")
    return 0 if run.returncode == 0 and quiet else 1


def self_test():
    source = "#include <vector>\nint f(std::vector<int>& v) { v.push_back(1); v.reserve(9); return v[0]; }\n"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "leaky.cpp").write_text(source, encoding="utf-8")
        library = str(root / "libleaky.so")
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(root / "leaky.cpp")], check=True)
        exports, others = foreign(library)
        print(f"{len(others)} of {len(exports)} symbols of a leaky library found foreign")
        return 0 if exports and len(others) == len(exports) else 1


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 2 and arguments[0] == "symbols":
        return symbols(arguments[1])
    if len(arguments) == 3 and arguments[0] == "preload":
        return preload(arguments[1], arguments[2])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
