"""A good guest: what importing and joining do to a process that is not ours, and what bad company is told."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

import rondo_torch
from processes import Processes, expect

SITE = pathlib.Path(rondo_torch.__file__).resolve().parent.parent

# Prints how many names the process resolves globally, and those that another library answers for after the import.
RESOLVE = """
import ctypes, subprocess, sys, pathlib
import torch
def names(file):
    out = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}
libc = ctypes.CDLL(None)
libc.dlsym.restype, libc.dlsym.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
package = pathlib.Path(sys.argv[1])
wanted = set()
for file in [*package.glob("*.so*"), pathlib.Path(torch.__file__).parent / "lib" / "libc10.so",
             pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"]:
    wanted |= names(file)
libc.dlsym(None, b"malloc")
before = {name: libc.dlsym(None, name.encode()) for name in wanted}
import rondo_torch
after = {name: libc.dlsym(None, name.encode()) for name in wanted}
changed = sorted(name for name in wanted if before[name] != after[name])
print(len(wanted), sum(1 for v in before.values() if v), changed)
"""


def python(code, *arguments, path=SITE):
    environment = dict(os.environ, PYTHONPATH=str(path))
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env=environment)


class Import(unittest.TestCase):
    def test_changes_no_symbol_resolution(self):
        run = python(RESOLVE, SITE / "rondo_torch")
        self.assertEqual(run.returncode, 0, run.stderr)
        wanted, found, changed = run.stdout.strip().split(" ", 2)
        self.assertGreater(int(wanted), 10_000)  # torch's names are among them
        self.assertGreater(int(found), 10)
        self.assertEqual(changed, "[]")

    def test_starts_no_thread_and_changes_no_default(self):
        run = python("import torch, os, torch.distributed as d\n"
                     "before = len(os.listdir('/proc/self/task')), dict(d.Backend.default_device_backend_map)\n"
                     "import rondo_torch\n"
                     "assert before == (len(os.listdir('/proc/self/task')), dict(d.Backend.default_device_backend_map))\n")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_refuses_another_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SITE / "rondo_torch", pathlib.Path(folder, "rondo_torch"))
            build = pathlib.Path(folder, "rondo_torch", "_build.py")
            build.write_text('torch_version = "2.1.0"\n', encoding="utf-8")
            run = python("import rondo_torch", path=folder)
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, r"ImportError: this rondo_torch was built for torch 2\.1\.0, but torch 2\.\d+\.\d+")

    def test_a_second_copy_in_one_process_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SITE / "rondo_torch", pathlib.Path(folder, "rondo_torch"))
            run = python("import sys, rondo_torch\n"
                         "for name in [n for n in sys.modules if n.startswith('rondo_torch')]: del sys.modules[name]\n"
                         "sys.path.insert(0, sys.argv[1])\nimport rondo_torch\n", folder)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("ImportError: another rondo_torch is loaded in this process already, from", run.stderr)


class Wheel(unittest.TestCase):
    def test_is_named_for_its_torch_and_joins_without_an_import(self):
        major, minor = torch.__version__.split(".")[:2]
        wheels = list((SITE.parent / "wheel").glob(f"rondo_torch-*+torch{major}.{minor}-cp*-linux_*.whl"))
        self.assertEqual(len(wheels), 1, f"./dev build torch makes one; there are {wheels}")
        with tempfile.TemporaryDirectory() as folder:
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
            subprocess.run([*install, "--target", folder, str(wheels[0])], check=True, timeout=120, cwd=folder)
            run = python("import torch, torch.distributed as d\n"
                         "d.init_process_group('cpu:rondo', store=d.HashStore(), rank=0, world_size=1)\n"
                         "t = torch.ones(3); d.all_reduce(t); assert t.tolist() == [1, 1, 1]; d.destroy_process_group()\n",
                         path=folder)
        self.assertEqual(run.returncode, 0, run.stderr)


def create(store, rank, size, seconds):
    return rondo_torch._C.create_backend(store=store, rank=rank, size=size, timeout=timedelta(seconds=seconds),
                                         group_name="alone", global_ranks=[])


class Joining(unittest.TestCase):
    def test_a_store_that_times_out_says_who_is_missing(self):
        expect(dist.DistBackendError, ["rank 1 waited 500 ms", "rank 0"], lambda: create(dist.HashStore(), 1, 2, 0.5))
        expect(dist.DistBackendError, ["rank 1", "join"], lambda: create(dist.HashStore(), 0, 2, 1))

    def test_two_versions_name_both(self):
        store = dist.HashStore()
        store.set("rondo/unique_id", "0.0.1 " + "00" * 64)
        expect(RuntimeError, ["0.0.1", rondo_torch._C.rondo_version, "same rondo_torch"], lambda: create(store, 1, 2, 5))

    def test_nonsense_in_the_store_is_refused(self):
        for text in (rondo_torch._C.rondo_version + " nonsense", rondo_torch._C.rondo_version, "", " ", "\xff" * 1000):
            store = dist.HashStore()
            store.set("rondo/unique_id", text)
            with self.assertRaises((RuntimeError, ValueError), msg=repr(text)) as caught:
                create(store, 1, 2, 5)
            self.assertIn("rondo", str(caught.exception))

    def test_what_rank_0_could_not_do_is_told(self):
        store = dist.HashStore()
        store.set("rondo/unique_id", "error no sockets are left")
        expect(RuntimeError, ["rank 0 could not make the group", "no sockets are left"], lambda: create(store, 1, 2, 5))

    def test_window_memory_needs_a_group_of_rondo(self):
        expect(ValueError, ["init_process_group"], lambda: rondo_torch.use_window_memory(4096))
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            expect(ValueError, ["gloo", "a group of rondo"], lambda: rondo_torch.use_window_memory(4096))
            expect(ValueError, ["belongs to"], lambda: rondo_torch.use_window_memory(4096, dist.GroupMember.NON_GROUP_MEMBER))
        finally:
            dist.destroy_process_group()

    def test_options_of_another_backend_are_refused(self):
        expect(TypeError, ["pg_options", "Options"],
               lambda: dist.init_process_group("rondo", store=dist.HashStore(), rank=0, world_size=1,
                                               pg_options=dist.ProcessGroupGloo._Options()))


def gives_the_gil_back(rank, size, path):
    """Every wait of rank 0 ends only after another of its Python threads has let rank 1 go on."""
    store = dist.FileStore(path, size)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    waits = {
        "all_reduce": lambda: dist.all_reduce(torch.ones(4)),
        "barrier": dist.barrier,
        "wait": lambda: dist.all_reduce(torch.ones(4), async_op=True).wait(),
        "wait with a limit": lambda: dist.all_reduce(torch.ones(4), async_op=True).wait(timedelta(seconds=30)),
        "future": lambda: dist.all_reduce(torch.ones(4), async_op=True).get_future().wait(),
        "point to point": lambda: dist.recv(torch.ones(4), 1) if rank == 0 else dist.send(torch.ones(4), 0),
        "monitored": lambda: dist.monitored_barrier(timeout=timedelta(seconds=30)),
        "window memory": lambda: rondo_torch._C.reserve(backend, 4096),
        "new group": lambda: dist.new_group(),
        "shutdown": dist.destroy_process_group,
    }
    for name, wait in waits.items():
        if rank == 1:
            store.wait([name], timedelta(seconds=30))
            wait()
            continue

        def let_go(name=name):
            time.sleep(0.2)  # until the main thread waits
            store.set(name, "now")

        helper = threading.Thread(target=let_go)
        helper.start()
        wait()
        helper.join()


class Waiting(Processes):
    def test_gives_the_gil_back(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_ranks(2, gives_the_gil_back, os.path.join(folder, "gil"))


if __name__ == "__main__":
    unittest.main()
