"""Every collective of the backend against Gloo's result, in 2, 3 and 4 processes; and what must be refused.

Each test runs a function in that many processes, which hold two groups over the same ranks: rondo's and Gloo's.
"""

import os
import tempfile
import threading
import time
import traceback
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import rondo_torch  # noqa: F401  (registers the backend)

TYPES = [
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
COUNTS = [0, 1, 7, 1000, 70_001]


def _process(rank, size, folder, function, arguments, failures):
    try:
        dist.init_process_group(
            "rondo", store=dist.FileStore(os.path.join(folder, "store"), size), rank=rank, world_size=size,
            timeout=timedelta(seconds=60),
        )
        function(rank, size, *arguments)
        dist.destroy_process_group()
    except BaseException:
        failures.put(f"rank {rank}: {traceback.format_exc()}")
        raise


class Processes(unittest.TestCase):
    def run_ranks(self, size, function, *arguments, seconds=120, dead=()):
        """Runs function(rank, size, *arguments) in `size` processes; those in `dead` may end as they like."""
        context = mp.get_context("spawn")
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


def values(rank, count, dtype):
    """Small numbers, so that a sum or product over a few ranks is exact in every type."""
    return ((torch.arange(count) * 7 + rank * 3) % 3 + 1).to(dtype)


def same(case, ours, theirs):
    if not torch.equal(ours, theirs):
        raise AssertionError(f"{case}: rondo {ours.flatten()[:8]}, Gloo {theirs.flatten()[:8]}")


def both(gloo, make, call):
    """Runs `call` on fresh tensors with either group and compares what is in them afterwards."""
    ours, theirs = make(), make()
    call(ours, None)
    call(theirs, gloo)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        same(f"tensor {i}", a, b)


def against_gloo(rank, size):
    gloo = dist.new_group(backend="gloo")
    ops = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
    for dtype in TYPES:
        for count in COUNTS:
            for op in ops:
                both(gloo, lambda: [values(rank, count, dtype)], lambda t, g: dist.all_reduce(t[0], op, group=g))
            one = lambda: [values(rank, count, dtype)]  # noqa: E731
            many = lambda: [values(rank, count, dtype)] + [torch.zeros(count, dtype=dtype) for _ in range(size)]  # noqa: E731
            flat = lambda: [values(rank, count, dtype), torch.zeros(count * size, dtype=dtype)]  # noqa: E731
            wide = lambda: [values(rank, count * size, dtype), torch.zeros(count * size, dtype=dtype)]  # noqa: E731
            for root in range(size):
                both(gloo, one, lambda t, g: dist.broadcast(t[0], root, group=g))
                both(
                    gloo,
                    many,
                    lambda t, g: dist.gather(t[0], t[1:] if rank == root else None, root, group=g),
                )
                both(
                    gloo,
                    many,
                    lambda t, g: dist.scatter(t[0], [x + 1 for x in t[1:]] if rank == root else None, root, group=g),
                )
                ours, theirs = one(), one()
                dist.reduce(ours[0], root)
                dist.reduce(theirs[0], root, group=gloo)
                if rank == root:
                    same("reduce", ours[0], theirs[0])
            both(gloo, many, lambda t, g: dist.all_gather(t[1:], t[0], group=g))
            both(gloo, flat, lambda t, g: dist.all_gather_into_tensor(t[1], t[0], group=g))
            both(gloo, wide, lambda t, g: dist.all_to_all_single(t[1], t[0], group=g))
            scattered = torch.zeros(count, dtype=dtype)
            whole = values(rank, count * size, dtype)
            dist.reduce_scatter_tensor(scattered, whole)
            expected = whole.clone()
            dist.all_reduce(expected, group=gloo)
            same("reduce_scatter_tensor", scattered, expected[rank * count : (rank + 1) * count])
            listed = torch.zeros(count, dtype=dtype)
            dist.reduce_scatter(listed, [whole[r * count : (r + 1) * count] for r in range(size)])
            same("reduce_scatter", listed, scattered)
    dist.barrier()


def uneven(rank, size):
    sends = [(rank + r) % 3 for r in range(size)]
    receives = [(rank + r) % 3 for r in range(size)]  # what r sends to rank
    source = torch.arange(sum(sends) * 2, dtype=torch.float32).view(-1, 2) + 100 * rank
    target = torch.zeros(sum(receives), 2)
    dist.all_to_all_single(target, source, receives, sends)
    at = 0
    for r in range(size):
        theirs = [(r + q) % 3 for q in range(size)]
        start = sum(theirs[:rank])
        rows = torch.arange(sum(theirs) * 2, dtype=torch.float32).view(-1, 2) + 100 * r
        same(f"from {r}", target[at : at + receives[r]], rows[start : start + theirs[rank]])
        at += receives[r]
    outputs = [torch.zeros(r + 1) for r in range(size)]
    dist.all_gather(outputs, torch.full((rank + 1,), float(rank)))
    for r in range(size):
        same("all_gather", outputs[r], torch.full((r + 1,), float(r)))
    lists = [torch.full((rank + 1,), float(10 * rank + r)) for r in range(size)]
    received = [torch.zeros(r + 1) for r in range(size)]
    dist.all_to_all(received, lists)
    for r in range(size):
        same("all_to_all", received[r], torch.full((r + 1,), float(10 * r + rank)))


def other_types(rank, size):
    truth = torch.tensor([rank == 0, False, True])
    dist.all_reduce(truth)
    same("bool sum", truth, torch.tensor([True, False, True]))
    truth = torch.tensor([rank == 0, False, True])
    dist.all_reduce(truth, dist.ReduceOp.PRODUCT)
    same("bool product", truth, torch.tensor([size == 1, False, True]))
    numbers = torch.tensor([1 + 2j, rank - 1j], dtype=torch.complex64)
    dist.all_reduce(numbers)
    same("complex", numbers, torch.tensor([size + 2j * size, sum(range(size)) - 1j * size], dtype=torch.complex64))
    short = torch.full((5,), rank, dtype=torch.int16)
    dist.broadcast(short, size - 1)
    same("int16", short, torch.full((5,), size - 1, dtype=torch.int16))
    average = torch.full((3,), float(rank))
    dist.all_reduce(average, dist.ReduceOp.AVG)
    same("avg", average, torch.full((3,), sum(range(size)) / size))
    scaled = torch.full((3,), 2.0)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.5))
    same("premul", scaled, torch.full((3,), float(size)))
    grid = torch.zeros(4, 6)
    strided = grid[:, ::2]
    strided += rank
    dist.all_reduce(strided)
    same("strided", grid, torch.tensor([[sum(range(size)), 0.0] * 3] * 4))


def asynchronous(rank, size):
    tensors = [torch.full((1000,), float(rank + i)) for i in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    futures = [w.get_future() for w in works]
    seen = []
    last = futures[-1].then(lambda f: seen.append(f.value()[0][0].item()))
    last.wait()
    expected = [float(sum(range(size)) + i * size) for i in range(20)]
    if seen != [expected[-1]]:
        raise AssertionError(f"the future's callback saw {seen}")
    for work, tensor, value in zip(works, tensors, expected, strict=True):
        work.wait()
        same("async", tensor, torch.full((1000,), value))
    forgotten = torch.ones(100_000)
    dist.all_reduce(forgotten, async_op=True)  # nobody waits, nobody keeps it
    del forgotten
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(50_000)
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, torch.full((50_000,), float(rank)), right), dist.P2POp(dist.irecv, got, left)]
    ):
        work.wait()
    same("ring", got, torch.full((50_000,), float(left)))
    if rank == 0:
        senders = set()
        for _ in range(size - 1):
            senders.add(dist.recv(torch.zeros(3), tag=5))
        if senders != set(range(1, size)):
            raise AssertionError(f"received from {senders}")
    else:
        dist.send(torch.ones(3), 0, tag=5)
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, value in zip(tensors, expected, strict=True):
        same("coalesced", tensor, torch.full((1000,), value * size))
    half = dist.new_group(list(range(max(1, size // 2))))
    if rank < max(1, size // 2):
        small = torch.ones(1)
        dist.all_reduce(small, group=half)
        same("subgroup", small, torch.full((1,), float(max(1, size // 2))))


def refuses(rank, size):
    def expect(kind, words, call):
        try:
            call()
        except kind as error:
            for word in words:
                if word not in str(error):
                    raise AssertionError(f"'{word}' is not in: {error}") from error
            return
        raise AssertionError(f"no {kind.__name__} that says {words}")

    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    expect(ValueError, ["rondo", "layout"], lambda: backend.allreduce([torch.eye(3).to_sparse()]))
    expect(ValueError, ["meta", "CPU tensors"], lambda: backend.allreduce([torch.ones(3, device="meta")]))
    expect(TypeError, ["Short", "int32"], lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)))
    expect(ValueError, ["BAND", "integers"], lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND))
    expect(ValueError, ["complex"], lambda: dist.all_reduce(torch.ones(3) * 1j, dist.ReduceOp.PRODUCT))
    expect(ValueError, ["exactly 1"], lambda: backend.allreduce([torch.ones(1), torch.ones(1)]))
    expect(ValueError, ["one tensor a rank"], lambda: backend.allgather([[torch.ones(1)] * (size + 1)], [torch.ones(1)]))
    value = torch.ones(3)
    dist.all_reduce(value)  # and the group is still usable
    same("after", value, torch.full((3,), float(size)))


def names_both_sides(rank, size):
    try:
        dist.barrier()  # all have joined; a slow rank may hear of the error in here
        if rank == 1:
            dist.all_reduce(torch.ones(5))
        else:
            dist.all_reduce(torch.ones(6))
    except dist.DistBackendError as error:
        for word in ("5 x float32", "6 x float32", "rank 1"):
            if word not in str(error):
                raise AssertionError(str(error)) from error
        return
    raise AssertionError("no error")


def times_out(rank, size):
    if rank == 1:
        time.sleep(3)
        return
    began = time.monotonic()
    try:
        dist.all_reduce(torch.ones(5), async_op=True).wait(timedelta(seconds=1))
    except dist.DistBackendError as error:
        if "timed out" not in str(error) or time.monotonic() - began > 2.5:
            raise AssertionError(str(error)) from error
        return
    raise AssertionError("no error")


def survives_a_death(rank, size):
    dist.barrier()
    if rank == size - 1:
        time.sleep(0.5)  # until all have left the barrier
        os.kill(os.getpid(), 9)
    began = time.monotonic()
    try:
        for _ in range(1000):
            dist.all_reduce(torch.ones(100_000))
    except dist.DistBackendError as error:
        if f"rank {size - 1}" not in str(error) or time.monotonic() - began > 5:
            raise AssertionError(str(error)) from error
        return
    raise AssertionError("no error")


def aborts(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    dist.barrier()
    if rank == 0:
        threading.Timer(0.5, backend.abort).start()
        try:
            dist.recv(torch.ones(3), 1)
        except dist.DistBackendError as error:
            if "abort" not in str(error):
                raise AssertionError(str(error)) from error
            return
        raise AssertionError("no error")
    time.sleep(1)


def leaves_nothing_behind(rank, size):
    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for _ in range(3):
        group = dist.new_group()
        work = dist.all_reduce(torch.ones(10), group=group, async_op=True)
        work.wait()
        dist.destroy_process_group(group)
    if threads() > before:
        raise AssertionError(f"{before} threads before, {threads()} after")
    loader = torch.utils.data.DataLoader(list(range(8)), num_workers=2, multiprocessing_context="fork")
    total = torch.tensor(float(sum(int(x) for x in loader)))
    dist.all_reduce(total)
    same("loader", total, torch.tensor(28.0 * size))


class Backend(Processes):
    """The methods are made below: one a function and number of ranks."""


def _add(function, sizes, **options):
    for size in sizes:
        def test(self, size=size):
            self.run_ranks(size, function, **{k: v(size) if callable(v) else v for k, v in options.items()})

        setattr(Backend, f"test_{function.__name__}_{size}_ranks", test)


for _function in (against_gloo, uneven, other_types, asynchronous, refuses, leaves_nothing_behind):
    _add(_function, (2, 3, 4))
_add(names_both_sides, (2, 4))
_add(times_out, (2,))
_add(aborts, (2,))
_add(survives_a_death, (2, 3, 4), dead=lambda size: (size - 1,))

if __name__ == "__main__":
    unittest.main()
