"""A running job of a measured library: its processes, and the named pipes that its ranks take commands from.

A job that is not asked anything sleeps in read(), so several can be alive while one is measured. Every wait has a
deadline, and a job that dies is an error that shows what it printed.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


class JobError(RuntimeError):
    """A job died, answered nonsense, or did not answer in time."""


class Job:
    """Use as a context manager. `commands` are the processes to start, for a given directory of pipes."""

    def __init__(self, name, ranks, commands, environment=None, deadline=120.0):
        self.name = name
        self.deadline = deadline
        self.directory = tempfile.mkdtemp(prefix="rondo-bench-")
        self.processes = []
        self.command_pipes = []
        self.received = b""
        try:
            os.mkdir(f"{self.directory}/store")
            for rank in range(ranks):
                self.command_pipes.append(self._make_pipe(f"command.{rank}"))
            self.result_pipe = self._make_pipe("result")
            self.log = open(f"{self.directory}/log", "w+b")
            for command in commands(self.directory):
                self.processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=self.log,
                        stderr=subprocess.STDOUT,
                        env={**os.environ, **(environment or {})},
                        start_new_session=True,
                    )
                )
        except BaseException:
            self.stop()
            raise

    def _make_pipe(self, name):
        path = f"{self.directory}/{name}"
        os.mkfifo(path, 0o600)
        # Read-write, so that opening doesn't wait for the other end. A rank sees the end of its pipe when we are gone.
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ask(self, command):
        """Sends one command to all ranks and returns rank 0's answer."""
        for pipe in self.command_pipes:
            os.write(pipe, (command + "\n").encode())
        line = self._read_line(command)
        try:
            return json.loads(line)
        except ValueError as error:
            raise JobError(f"{self.name}: answered {line!r} to {command!r}") from error

    def _read_line(self, command):
        end = time.monotonic() + self.deadline
        while b"\n" not in self.received:
            ready, _, _ = select.select([self.result_pipe], [], [], 0.2)
            if ready:
                self.received += os.read(self.result_pipe, 65536)
            elif any(process.poll() is not None for process in self.processes):
                raise JobError(f"{self.name}: ended during {command!r}; it printed:\n{self._printed()}")
            elif time.monotonic() > end:
                raise JobError(f"{self.name}: no answer to {command!r} in {self.deadline:.0f} s; it printed:\n{self._printed()}")
        line, self.received = self.received.split(b"\n", 1)
        return line.decode(errors="replace")

    def _printed(self):
        self.log.flush()
        with open(f"{self.directory}/log", "rb") as file:
            return file.read()[-4000:].decode(errors="replace")

    def stop(self):
        for pipe in self.command_pipes:
            try:
                os.write(pipe, b"quit\n")
            except OSError:
                pass
        # A launcher that is asked politely ends its ranks, wherever it put them; one that is killed leaves them.
        for patience, send in ((10, signal.SIGTERM), (5, signal.SIGKILL), (5, None)):
            end = time.monotonic() + patience
            for process in self.processes:
                try:
                    process.wait(max(0.1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    if send is not None:
                        os.killpg(process.pid, send)
        for pipe in [*self.command_pipes, getattr(self, "result_pipe", None)]:
            if pipe is not None:
                os.close(pipe)
        self.command_pipes = []
        if hasattr(self, "log"):
            self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def rondo_job(binaries, ranks, transport, windows=False):
    program = [f"{binaries}/rondo_peer"]
    return Job(
        "rondo" + (" windows" if windows else ""),
        ranks,
        lambda directory: [
            [f"{binaries}/rondo", "run", "-n", str(ranks), "--", *program, directory] + (["windows"] if windows else [])
        ],
        {"RONDO_TRANSPORTS": transport},
    )


def mpi_job(binaries, ranks, transport):
    byte_transfer = {"shm": "vader,self", "tcp": "tcp,self"}[transport]
    return Job(
        "Open MPI",
        ranks,
        lambda directory: [
            ["mpirun", "-n", str(ranks), "--mca", "pml", "ob1", "--mca", "btl", byte_transfer]
            + (["--mca", "btl_tcp_if_include", "lo"] if transport == "tcp" else [])
            + ["--bind-to", "none", "--oversubscribe", "--allow-run-as-root", f"{binaries}/mpi_peer", directory]
        ],
    )


def gloo_job(binaries, ranks, transport):
    """Gloo knows tcp alone, on one host too: that is what its user leaves for either of our transports."""
    return Job(
        "Gloo" if transport == "tcp" else "Gloo (tcp)",
        ranks,
        lambda directory: [[f"{binaries}/gloo_peer", directory, str(rank), str(ranks)] for rank in range(ranks)],
    )
