"""The driver of PyTorch's own tests, on a source of three small tests in place of a checkout's files."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

DRIVER = pathlib.Path(__file__).resolve().parent / "pytorch_suite.py"

SMALL = '''
import os
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase

class Small(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def _join(self):
        dist.init_process_group("gloo", store=dist.FileStore(self.file_name, 2), rank=self.rank, world_size=2)
        return dist.group.WORLD._get_backend(torch.device("cpu"))

    def test_sum(self):
        self._join()
        value = torch.ones(3)
        dist.all_reduce(value)
        self.assertEqual(value, torch.full((3,), 2.0))

    def test_only_gloo_passes(self):
        self.assertEqual(self._join().name(), "gloo")

    def test_fails_everywhere(self):
        self.assertEqual(1, 2)
'''


class Driver(unittest.TestCase):
    def run_driver(self, folder, *options):
        command = [sys.executable, str(DRIVER), "--torch-source", folder, "--results", f"{folder}/results.jsonl",
                   "--only", "Small", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=200)

    def test_compares_resumes_and_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            where = pathlib.Path(folder, "test", "distributed")
            where.mkdir(parents=True)
            (where / "test_c10d_common.py").write_text(SMALL, encoding="utf-8")
            nothing = self.run_driver(folder, "--budget", "0")
            self.assertEqual(nothing.returncode, 1)
            self.assertIn("the time is used up", nothing.stdout)
            run = self.run_driver(folder)
            self.assertEqual(run.returncode, 1, run.stdout + run.stderr)  # one of two is less than 95 %
            row = next(line for line in run.stdout.splitlines() if line.startswith("| test_c10d_common.py"))
            self.assertEqual([cell.strip() for cell in row.strip("|").split("|")],
                             ["test_c10d_common.py, 4 ranks", "3", "2", "0", "2", "1 (50.0 %)", "1", "0"])
            self.assertIn("Small.test_only_gloo_passes", run.stdout)
            lines = pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
            found = {(e["test"], e["backend"]): e["outcome"] for e in map(json.loads, lines)}
            self.assertEqual(found, {("Small.test_sum", "gloo"): "passed", ("Small.test_sum", "rondo"): "passed",
                                     ("Small.test_only_gloo_passes", "gloo"): "passed",
                                     ("Small.test_only_gloo_passes", "rondo"): "failed",
                                     ("Small.test_fails_everywhere", "gloo"): "failed"})
            with pathlib.Path(folder, "results.jsonl").open("a", encoding="utf-8") as file:
                file.write('{"source": "cut off in the mid')  # as a killed run leaves it
            again = self.run_driver(folder)
            self.assertIn("1 (50.0 %)", again.stdout)
            self.assertEqual(len(pathlib.Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()), len(lines) + 1)


if __name__ == "__main__":
    unittest.main()
