"""Fails when an include of our own points up, or sideways into another folder of the same floor.

The floors are those of docs/architecture.md. base/ and the public headers may be included from anywhere; the public
headers include nothing of ours but each other. Usage: include_direction.py SOURCE_DIR | --self-test
"""

import pathlib
import re
import sys
import tempfile

FLOORS = [
    ["src/base"],
    ["src/plan"],
    ["src/bootstrap"],
    ["transports", "algorithms"],
    ["src/executor", "src/topology"],
    ["src/engine", "src/tuner"],
    ["src/communicator"],
    ["training", "perf", "bindings", "tools"],
]
FLOOR_OF = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}
PUBLIC = "include/rondo"
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}


def room_of(path):
    """The folder of the house that a repository path lies in, or None."""
    for folder in [PUBLIC, *FLOOR_OF]:
        if path.startswith(folder + "/"):
            return folder
    return None


def resolve(root, includer, target):
    """The repository path an include names, or None for other libraries' headers."""
    for base in [pathlib.PurePosixPath(includer).parent.as_posix(), "include", "src", "."]:
        candidate = pathlib.PurePosixPath(base, target)
        if (root / candidate).is_file():
            return (root / candidate).resolve().relative_to(root.resolve()).as_posix()
    # A header that is missing or generated is still judged by its name.
    for base in ["src/", "", "include/"]:
        if room_of(base + target):
            return base + target
    return None


def breach(includer, included):
    """Why `includer` must not include `included`, or None."""
    from_room, to_room = room_of(includer), room_of(included)
    if from_room == to_room == "transports":
        mine, theirs = includer.split("/")[1:-1], included.split("/")[1:-1]
        if mine and theirs and mine[0] != theirs[0]:
            return f"the transports {mine[0]} and {theirs[0]} know nothing of each other"
    if to_room is None:
        if from_room is not None and included.startswith("tests/"):
            return "the library includes a test"
        return None
    if from_room is None or from_room == to_room:
        return None
    if from_room == PUBLIC:
        return f"a public header includes {to_room}/, and installed headers have nothing but {PUBLIC}/"
    if to_room in (PUBLIC, "src/base"):
        return None
    from_floor, to_floor = FLOOR_OF[from_room], FLOOR_OF[to_room]
    if to_floor > from_floor:
        return f"{from_room}/ is on floor {from_floor}, {to_room}/ above it on floor {to_floor}"
    if to_floor == from_floor:
        return f"{from_room}/ and {to_room}/ are different folders of floor {from_floor}"
    return None


def check(root):
    breaches, files = [], 0
    for room in [PUBLIC, *FLOOR_OF]:
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            files += 1
            includer = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                included = resolve(root, includer, match.group(1)) if match else None
                why = breach(includer, included) if included else None
                if why:
                    breaches.append(f"{includer}:{number}: includes {included}: {why}")
    return files, breaches


def self_test():
    planted = {
        "src/plan/up.cpp": ('#include "engine/engine.hpp"', 1),
        "transports/sideways.cpp": ('#include "algorithms/registry.hpp"', 1),
        "transports/tcp/sideways.cpp": ('#include "transports/shm/arena.hpp"\n#include "transports/fifo.hpp"', 1),
        "transports/shm/arena.hpp": ("", 0),
        "transports/fifo.hpp": ("", 0),
        "src/engine/engine.hpp": ('#include "tuner/table.hpp"', 1),
        "src/tuner/table.hpp": ("#include <vector>", 0),
        "algorithms/registry.hpp": ('#include "plan/plan.hpp"\n#include <rondo/types.hpp>', 0),
        "src/plan/plan.hpp": ('#include "base/wait.hpp"\n#include "plan/cost.hpp"', 0),
        "src/base/wait.hpp": ('  #  include <rondo/work.hpp>\n#include "../plan/plan.hpp"', 1),
        "include/rondo/work.hpp": ('#include "base/wait.hpp"', 1),
        "include/rondo/types.hpp": ("#include <rondo/work.hpp>", 0),
        "src/bootstrap/generated.cpp": ('#include "communicator/generated.hpp"', 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in planted.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n", encoding="utf-8")
        files, breaches = check(root)
    found = {name: sum(b.startswith(name + ":") for b in breaches) for name in planted}
    wrong = [f"{name}: {found[name]} found, {count} planted" for name, (_, count) in planted.items() if found[name] != count]
    print("\n".join(breaches + wrong))
    return 1 if wrong or files != len(planted) else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    files, breaches = check(pathlib.Path(sys.argv[1]))
    print("\n".join(breaches) or f"{files} files: every include points down")
    if files == 0:
        print(f"{sys.argv[1]} holds none of our folders: give the repository's top folder")
    return 1 if breaches or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
