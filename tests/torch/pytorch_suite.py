"""Runs PyTorch's own distributed tests twice, with Gloo and with rondo in Gloo's place, and compares.

    build/torch/venv/bin/python tests/torch/pytorch_suite.py [--budget SECONDS] [--only REGEX]

`DistributedTest` is taken from the installed torch. Single files of the same release, which wheels do not contain, are
added by --torch-source DIR, a checkout of PyTorch. Every test runs in processes of its own. Results are kept test by
test in --results, and a run that was cut off goes on from there; results of another build of rondo are not used. A
test counts when it passes with Gloo on this machine; if it is skipped with rondo, it counts as failed.

"gloo" is made to mean rondo in the tests' processes only, by exchanging the function that torch calls to make a group's
backend. Processes are forked from one that has torch loaded, as MultiProcessTestCase's are spawned: that saves minutes
of imports. --spawn does as the suite does by default.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SITE = ROOT / "build" / "torch" / "site"
WHEEL = "DistributedTest"
SIZES = (4, 8)  # some tests want exactly 4 ranks; those that skip themselves there are tried with 8

# Files of a PyTorch checkout that --torch-source adds, below test/distributed.
FILES = [
    "test_c10d_common.py",
    "test_c10d_object_collectives.py",
    "test_c10d_functional_native.py",
    "algorithms/ddp_comm_hooks/test_ddp_hooks.py",
    "_composable/test_replicate.py",
    "_composable/fsdp/test_fully_shard_training.py",
    "_composable/fsdp/test_fully_shard_state_dict.py",
    "test_device_mesh.py",
    "tensor/test_dtensor.py",
    "tensor/test_redistribute.py",
    "pipelining/test_schedule_multiproc.py",
    "checkpoint/test_state_dict.py",
    "checkpoint/test_file_system_checkpoint_cpu.py",
]

# Tests of Gloo's own wording, devices, sparse tensors or several tensors a rank: name, and why it says nothing of rondo.
EXCLUDED = {
    "test_sparse_all_reduce_sum": "sparse tensors",
}


def _take_gloos_place():
    """From here on torch makes rondo's backend where "gloo" is asked for."""
    import rondo_torch
    from torch.distributed import Backend, ProcessGroup

    def create(options, backend_options):
        return rondo_torch.create_backend(options, title="gloo")

    Backend._plugins["GLOO"] = Backend._BackendPlugin(create, True)
    # DistributedDataParallel's log takes a backend of this type for a ProcessGroupGloo, without looking.
    Backend.backend_type_map["gloo"] = ProcessGroup.BackendType.CUSTOM


if os.environ.get("TORCH_SUITE_BACKEND") == "rondo":  # here, so that spawned processes pass by too
    _take_gloos_place()


def _load(source):
    """The module with a source's tests."""
    from torch.testing._internal.common_distributed import MultiProcessTestCase

    if os.environ.get("TORCH_SUITE_SPAWN") != "1":
        def fork(self):
            import torch.multiprocessing

            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        MultiProcessTestCase._spawn_processes = fork
    if source == WHEEL:
        from torch.testing._internal.distributed import distributed_test

        class TestDistBackendWithGloo(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
            def setUp(self):
                super().setUp()
                self._spawn_processes()

        TestDistBackendWithGloo.__module__ = __name__
        globals()["TestDistBackendWithGloo"] = TestDistBackendWithGloo  # where spawned processes look for it
        return sys.modules[__name__]
    path = pathlib.Path(source)
    sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


if __name__ == "__mp_main__":
    _load(WHEEL)


def _cases(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _cases(part)
        else:
            yield part


def _names(module):
    cases = _cases(unittest.defaultTestLoader.loadTestsFromModule(module))
    return sorted(".".join(case.id().split(".")[-2:]) for case in cases)


def _run_one(module, name):
    result = unittest.TestResult()
    case, method = name.split(".")
    unittest.TestSuite([getattr(module, case)(method)]).run(result)
    if result.skipped:
        return {"outcome": "skipped", "text": result.skipped[0][1]}
    wrong = result.failures + result.errors
    if wrong or result.unexpectedSuccesses or result.testsRun != 1:
        return {"outcome": "failed", "text": wrong[0][1] if wrong else "it did not run, or passed unexpectedly"}
    return {"outcome": "passed", "text": ""}


def host(source):
    """Has the tests loaded; reads a test's name and the file for its output from each line of stdin."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module = _load(source)
    print(json.dumps(_names(module)), file=answers)
    for line in sys.stdin:
        name, output = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(read)
            to = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(to, 1)
            os.dup2(to, 2)
            with tempfile.TemporaryDirectory() as folder:
                os.environ["TEMP_DIR"] = folder
                found = _run_one(module, name)
            with os.fdopen(write, "w") as pipe:
                json.dump(found, pipe)
            sys.stdout.flush()
            os._exit(0)
        os.close(write)
        print(json.dumps({"pid": pid}), file=answers)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        try:  # what the test left behind
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        print(text or json.dumps({"outcome": "failed", "text": "the test's process died"}), file=answers)


class Host:
    """A process that runs the tests of one source with one backend, one after the other."""

    def __init__(self, part, backend, arguments):
        source, ranks = part
        environment = dict(os.environ, BACKEND="gloo", WORLD_SIZE=str(ranks), OMP_NUM_THREADS="1",
                           TORCH_SUITE_BACKEND=backend, TORCH_SUITE_SPAWN=str(int(arguments.spawn)))
        environment["PYTHONPATH"] = os.pathsep.join(p for p in (str(SITE), environment.get("PYTHONPATH")) if p)
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, __file__, "--host", source], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, bufsize=1)
        self.names = self._answer(300)
        if self.names is None:
            self.log.seek(0)
            sys.exit(f"the tests of {source} could not be loaded:\n{self.log.read()[-3000:]}")

    def _answer(self, seconds):
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def run(self, name, seconds):
        with tempfile.NamedTemporaryFile("r", errors="replace") as output:
            print(json.dumps([name, output.name]), file=self.process.stdin)
            pid = self._answer(60)["pid"]
            found = self._answer(seconds)
            if found is None:
                os.killpg(pid, signal.SIGKILL)
                self._answer(60)
                found = {"outcome": "failed", "text": f"it did not end within {seconds} s"}
            if found["outcome"] == "failed":
                found["output"] = output.read()[-6000:]
        return found

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def build_of(backend):
    """What a result is of: another torch, or another build of rondo, makes it worthless."""
    import torch

    if backend == "gloo":
        return torch.__version__
    digest = hashlib.sha256()
    for file in sorted((SITE / "rondo_torch").glob("*.*")):
        digest.update(file.read_bytes())
    return f"{torch.__version__} {digest.hexdigest()[:16]}"


class Results:
    """One line of JSON a result, appended as they come."""

    def __init__(self, path):
        self.path, self.found = pathlib.Path(path), {}
        self.builds = {backend: build_of(backend) for backend in ("gloo", "rondo")}
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                self.path.write_text(text + "\n", encoding="utf-8")
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                    key = (entry["source"], entry["ranks"]), entry["test"], entry["backend"]
                    if entry["build"] == self.builds[entry["backend"]]:
                        self.found[key] = entry
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # a line that was cut off, or of another time

    def add(self, part, test, backend, found, seconds):
        entry = {"build": self.builds[backend], "source": part[0], "ranks": part[1], "test": test, "backend": backend,
                 "seconds": round(seconds, 1), **found}
        self.found[part, test, backend] = entry
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def outcome(self, part, test, backend):
        return self.found.get((part, test, backend), {}).get("outcome")

    def skips_itself(self, part, test):
        return self.outcome(part, test, "gloo") == "skipped"


def run_part(part, names, results, arguments, end):
    """Gloo first; rondo only where that passed. False if the time was used up."""
    for backend in ("gloo", "rondo"):
        waiting = []
        for name in names:
            known = results.outcome(part, name, backend)
            again = backend == "rondo" and (arguments.again or (arguments.retry and known != "passed"))
            counts = backend == "gloo" or results.outcome(part, name, "gloo") == "passed"
            if counts and (again or not known) and re.search(arguments.only, name) and name.split(".")[-1] not in EXCLUDED:
                waiting.append(name)
        if not waiting:
            continue
        host_process = Host(part, backend, arguments)
        try:
            for name in waiting:
                if time.monotonic() > end:
                    print("the time is used up; run it again to go on from here", flush=True)
                    return False
                began = time.monotonic()
                found = host_process.run(name, arguments.test_seconds)
                results.add(part, name, backend, found, time.monotonic() - began)
                if found["outcome"] == "failed" or arguments.verbose:
                    print(f"{backend}: {name}: {found['outcome']} in {time.monotonic() - began:.1f} s", flush=True)
        finally:
            host_process.close()
    return True


def table(parts, results):
    """Prints what there is; True if everything ran and at least 95 % of what passes with Gloo passes."""
    heads = ["source", "tests", "pass with Gloo", "excluded", "run", "passed", "failed", "not yet run"]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    good, totals = True, [0, 0]
    failures = []
    for part, names in parts.items():
        excluded = [name for name in names if name.split(".")[-1] in EXCLUDED]
        rest = [name for name in names if name not in excluded]
        gloo = [name for name in rest if results.outcome(part, name, "gloo") == "passed"]
        passed = [name for name in gloo if results.outcome(part, name, "rondo") == "passed"]
        failed = [name for name in gloo if results.outcome(part, name, "rondo") in ("failed", "skipped")]
        waiting = [name for name in rest if results.outcome(part, name, "gloo") is None]
        waiting += [name for name in gloo if name not in passed and name not in failed]
        share = f"{100 * len(passed) / len(gloo):.1f} %" if gloo else "none"
        cells = [f"{pathlib.Path(part[0]).name}, {part[1]} ranks", len(names), len(gloo), len(excluded), len(passed) + len(failed),
                 f"{len(passed)} ({share})", len(failed), len(waiting)]
        print("| " + " | ".join(map(str, cells)) + " |")
        good = good and not waiting
        totals = [totals[0] + len(gloo), totals[1] + len(passed)]
        failures += [results.found[part, name, "rondo"] for name in failed]
    for entry in failures:
        lines = [line for line in entry["text"].splitlines() if re.search(r"^\w*Error\b|^Expected|^Skip|did not", line)]
        print(f"\n{entry['test']}, {entry['ranks']} ranks: {entry['outcome']} with rondo: {lines[-1] if lines else ''}")
    return good and totals[1] >= 0.95 * totals[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=3000, help="seconds after which no further test is begun")
    parser.add_argument("--test-seconds", type=float, default=120, help="after which a test has failed")
    parser.add_argument("--only", default="", help="regular expression that a test's name must contain")
    parser.add_argument("--again", action="store_true", help="run with rondo also what has a result")
    parser.add_argument("--retry", action="store_true", help="run with rondo also what has failed")
    parser.add_argument("--spawn", action="store_true", help="spawn the tests' processes instead of forking them")
    parser.add_argument("--torch-source", help="a checkout of the same PyTorch release, for " + ", ".join(FILES))
    parser.add_argument("--results", default=str(ROOT / "build" / "torch" / "suite.jsonl"))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--host", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.host:
        host(arguments.host)
        return 0
    wanted = [WHEEL]
    if arguments.torch_source:
        base = pathlib.Path(arguments.torch_source) / "test" / "distributed"
        for file in FILES:
            if (base / file).exists():
                wanted.append(str(base / file))
            else:
                print(f"not there: {base / file}")
    results = Results(arguments.results)
    end = time.monotonic() + arguments.budget
    parts = {}
    going = True
    for source in wanted:
        host_process = Host((source, SIZES[0]), "gloo", arguments)
        names = host_process.names
        host_process.close()
        for ranks in SIZES:
            part = (source, ranks)
            parts[part] = [name for name in names if ranks == SIZES[0] or results.skips_itself((source, SIZES[0]), name)]
            going = going and run_part(part, parts[part], results, arguments, end)
    return 0 if table(parts, results) else 1


if __name__ == "__main__":
    sys.exit(main())
