"""Runs a test's function in several processes that form a group of rondo."""

import os
import tempfile
import time
import traceback
import unittest
from datetime import timedelta

import torch.distributed as dist
import torch.multiprocessing as mp

import rondo_torch  # noqa: F401  (registers the backend)


def _process(rank, size, folder, function, arguments, failures):
    try:
        dist.init_process_group(
            "rondo", store=dist.FileStore(os.path.join(folder, "store"), size), rank=rank, world_size=size,
            timeout=timedelta(seconds=60),
        )
        function(rank, size, *arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        failures.put(f"rank {rank}: {traceback.format_exc()}")
        raise


class Processes(unittest.TestCase):
    def run_ranks(self, size, function, *arguments, seconds=120, dead=()):
        """Runs function(rank, size, *arguments) in `size` processes; those in `dead` may end as they like."""
        context = mp.get_context("forkserver")  # forked, but from a process that has imported and nothing else
        context.set_forkserver_preload(["processes", "torch.distributed.fsdp", "torch.distributed.tensor"])
        failures = context.Queue()
        with tempfile.TemporaryDirectory() as folder:
            processes = [
                context.Process(target=_process, args=(r, size, folder, function, arguments, failures))
                for r in range(size)
            ]
            for process in processes:
                process.start()
            end = time.monotonic() + seconds
            for process in processes:
                process.join(max(0.0, end - time.monotonic()))
            hung = [r for r, process in enumerate(processes) if process.is_alive()]
            for process in processes:
                if process.is_alive():
                    process.kill()
                process.join()
            told = []
            while not failures.empty():
                told.append(failures.get())
            self.assertFalse(hung, f"ranks {hung} hang; told:\n" + "\n".join(told))
            for r, process in enumerate(processes):
                if r not in dead:
                    self.assertEqual(process.exitcode, 0, "\n".join(told))


def add_tests(case, function, sizes, **options):
    """Gives the class one test of `function` for each number of ranks."""
    for size in sizes:
        def test(self, size=size):
            self.run_ranks(size, function, **{k: v(size) if callable(v) else v for k, v in options.items()})

        setattr(case, f"test_{function.__name__}_{size}_ranks", test)


def expect(kind, words, call):
    """`call` must raise `kind` with a text that has all the words."""
    try:
        call()
    except kind as error:
        for word in words:
            if word not in str(error):
                raise AssertionError(f"'{word}' is not in: {error}") from error
        return
    raise AssertionError(f"no {kind.__name__} that says {words}")
