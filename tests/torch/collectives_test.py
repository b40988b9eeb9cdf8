"""Every collective of the backend against Gloo's result, in 2, 3 and 4 processes; and what must be refused.

Each test runs a function in that many processes, which hold two groups over the same ranks: rondo's and Gloo's.
"""

import os
import tempfile
import threading
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist

import rondo_torch
from processes import Processes, add_tests, expect

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
    whole = torch.full((sum(range(size + 1)) + 2,), -1.0)  # pieces that lie back to back, with a margin
    pieces = list(whole[1:-1].split([r + 1 for r in range(size)]))
    dist.all_gather(pieces, torch.full((rank + 1,), float(rank)))
    same("all_gather into pieces", whole, torch.cat([torch.tensor([-1.0]), *outputs, torch.tensor([-1.0])]))
    swapped = [torch.empty(2, 3).t() for _ in range(size)]
    dist.all_gather(swapped, torch.arange(6.0).view(3, 2) + rank)
    for r in range(size):
        same("all_gather, transposed", swapped[r], torch.arange(6.0).view(3, 2) + r)
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


def callbacks_may_wait(rank, size):
    """A future's callback may wait for the work itself, for a later one, and for collectives that it starts."""
    first, second = (dist.all_reduce(torch.ones(300_000), async_op=True) for _ in range(2))
    later = second.get_future()
    own = first.get_future().then(lambda _: first.wait())
    other = first.get_future().then(lambda _: later.wait()[0][0].item())
    assert own.wait() is True
    assert other.wait() == size

    def nested(depth):
        def callback(_):
            value = torch.ones(3)
            work = dist.all_reduce(value, async_op=True)
            return (work.get_future() if depth == 0 else work.get_future().then(nested(depth - 1))).wait()

        return callback

    dist.all_reduce(torch.ones(3), async_op=True).get_future().then(nested(5)).wait()
    failed = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda _: 1 / 0)
    expect(RuntimeError, ["ZeroDivisionError"], failed.wait)
    with dist._coalescing_manager(async_ops=True) as together:
        for _ in range(3):
            dist.all_reduce(torch.ones(10))
    together.wait()


def overlapping(rank, size):
    """Input and output that share memory give what they give apart."""
    def whole():
        return torch.arange(2.0 * size) + 10 * rank

    total = sum(torch.arange(2.0 * size) + 10 * r for r in range(size))
    for piece in range(size):
        x = whole()
        dist.reduce_scatter_tensor(x[2 * piece : 2 * piece + 2], x)
        same("reduce_scatter", x[2 * piece : 2 * piece + 2], total[2 * rank : 2 * rank + 2])
        x = whole()
        mine = x[2 * piece : 2 * piece + 2]
        expected = torch.cat([torch.arange(2.0 * size)[2 * piece : 2 * piece + 2] + 10 * r for r in range(size)])
        dist.all_gather_into_tensor(x, mine)
        same("all_gather", x, expected)
        x = whole()
        dist.scatter(x[2 * piece : 2 * piece + 2], list(x.chunk(size)) if rank == 0 else None, 0)
        same("scatter", x[2 * piece : 2 * piece + 2], torch.arange(2.0 * size)[2 * rank : 2 * rank + 2])
        x = whole()
        dist.gather(x[2 * piece : 2 * piece + 2], list(x.chunk(size)) if rank == 0 else None, 0)
        if rank == 0:
            same("gather", x, expected)
    x = whole()
    dist.all_to_all_single(x, x)
    same("all_to_all", x, torch.cat([torch.arange(2.0 * size)[2 * rank : 2 * rank + 2] + 10 * r for r in range(size)]))
    x = torch.cat([whole(), torch.zeros(1)])
    dist.all_to_all_single(x[1:], x[:-1])
    same("all_to_all, apart by one", x[1:],
         torch.cat([torch.arange(2.0 * size)[2 * rank : 2 * rank + 2] + 10 * r for r in range(size)]))


def coalesces(rank, size):
    """Waiting inside a block, and a block that an exception left: what was issued is done, and the group goes on."""
    parts = [torch.zeros(2) for _ in range(size)]
    with dist._coalescing_manager(device=torch.device("cpu")):
        dist.all_gather(parts, torch.full((2,), float(rank)))
        dist.broadcast(value := torch.full((3,), float(rank)), size - 1)
    for r in range(size):
        same("all_gather", parts[r], torch.full((2,), float(r)))
    same("broadcast", value, torch.full((3,), float(size - 1)))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend._start_coalescing()
    lost = torch.ones(3)
    backend.allreduce([lost])  # and then an exception: nobody ends the block
    dist.barrier()
    same("issued before the exception", lost, torch.full((3,), float(size)))
    dist.reduce(value := torch.ones(2), 0)
    if rank == 0:
        same("reduce", value, torch.full((2,), float(size)))
    backend._end_coalescing().wait()
    dist.all_reduce(value := torch.ones(2))
    same("after", value, torch.full((2,), float(size)))


def joins_again_in_the_same_store(rank, size, folder):
    """As under torchrun, whose store outlives the group: the key of the one before must not be taken for the new one's."""
    store = dist.FileStore(os.path.join(folder, "kept"), size)
    dist.destroy_process_group()
    for _ in range(4):
        if rank == 0:
            time.sleep(0.2)  # the others look for the key first
        dist.init_process_group("rondo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=10))
        dist.all_reduce(value := torch.ones(2))
        same("again", value, torch.full((2,), float(size)))
        dist.destroy_process_group()


def refuses(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    expect(ValueError, ["rondo", "layout"], lambda: backend.allreduce([torch.eye(3).to_sparse()]))
    expect(ValueError, ["meta", "CPU tensors"], lambda: backend.allreduce([torch.ones(3, device="meta")]))
    expect(TypeError, ["Short", "int32"], lambda: dist.all_reduce(torch.ones(3, dtype=torch.int16)))
    expect(ValueError, ["BAND", "integers"], lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND))
    expect(ValueError, ["complex"], lambda: dist.all_reduce(torch.ones(3) * 1j, dist.ReduceOp.PRODUCT))
    expect(ValueError, ["exactly 1"], lambda: backend.allreduce([torch.ones(1), torch.ones(1)]))
    cpu, meta = torch.ones(1), torch.ones(1, device="meta")
    expect(ValueError, ["meta", "CPU tensors"], lambda: backend.allgather([[cpu] * (size - 1) + [meta]], [cpu]))
    expect(ValueError, ["3 elements", "1 belong"], lambda: backend.reduce_scatter([cpu], [[torch.ones(3)] * size]))
    expect(ValueError, ["sum to", "rows"], lambda: dist.all_to_all_single(torch.ones(size), torch.ones(size), [2] * size, [1] * size))
    expect(ValueError, ["no dimension"], lambda: dist.all_to_all_single(torch.zeros(()), torch.tensor(5.0)))
    expect(ValueError, ["several elements in one place"], lambda: dist.all_reduce(torch.ones(1).expand(4)))
    expect(ValueError, ["one tensor a rank"], lambda: backend.allgather([[torch.ones(1)] * (size + 1)], [torch.ones(1)]))
    value = torch.ones(3)
    dist.all_reduce(value)  # and the group is still usable
    same("after", value, torch.full((3,), float(size)))


def names_both_sides(rank, size):
    def mismatch():
        dist.barrier()  # all have joined; a slow rank may hear of the error in here
        dist.all_reduce(torch.ones(5 if rank == 1 else 6))

    expect(dist.DistBackendError, ["5 x float32", "6 x float32", "rank 1"], mismatch)


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


def deadline_names_the_absent(rank, size):
    """The time-out of a group ends it on every rank that waits, and says for whom."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    if rank != 1:
        expect(dist.DistBackendError, ["Timed out waiting", "all_reduce", "rank 1 has not called it"],
               lambda: dist.all_reduce(torch.ones(5), group=group))
    dist.monitored_barrier(timeout=timedelta(seconds=30))


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


def names_who_is_missing(rank, size):
    """monitored_barrier: passes, then rank 0 hears who stayed away, and the others that it failed."""
    dist.monitored_barrier(timeout=timedelta(seconds=30), wait_all_ranks=True)
    absent = [1] if size == 2 else list(range(1, size - 1))
    missing = ("Rank " if len(absent) == 1 else "Ranks ") + ", ".join(map(str, absent))

    def barrier():
        dist.monitored_barrier(timeout=timedelta(seconds=0.5), wait_all_ranks=True)

    if rank == 0:
        expect(dist.DistBackendError, [f"{missing} failed to pass monitoredBarrier"], barrier)
    elif rank in absent:
        expect(dist.DistBackendError, ["failed to pass monitoredBarrier"], lambda: dist.recv(torch.ones(1), 0))
    else:
        expect(dist.DistBackendError, [f"Rank {rank} successfully reached", f"{missing} failed to pass"], barrier)


def destroys_while_busy(rank, size):
    """What was issued ends well, though nobody waited for it before the group was destroyed."""
    tensors = [torch.full((200_000,), float(rank + i)) for i in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    dist.destroy_process_group()
    for i, (work, tensor) in enumerate(zip(works, tensors, strict=True)):
        work.wait()
        same("destroyed", tensor, torch.full((200_000,), float(sum(range(size)) + i * size)))


def destroys_while_others_wait(rank, size):
    """One rank leaves without the collective that the others are in: they hear of it, and nobody hangs."""
    dist.barrier()
    if rank == 1:
        dist.destroy_process_group()
        return
    work = dist.all_reduce(torch.ones(10), async_op=True)
    expect(dist.DistBackendError, ["rank 1"], work.wait)
    dist.destroy_process_group()


def works_under_debug_detail(rank, size):
    """TORCH_DISTRIBUTED_DEBUG=DETAIL puts a wrapper around the backend."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    value = torch.ones(3)
    dist.all_reduce(value, group=group)
    same("wrapped", value, torch.full((3,), float(size)))
    with rondo_torch.use_window_memory(1 << 20, group, smallest=1):
        value = torch.ones(1000)
        dist.all_reduce(value, group=group)
    same("wrapped, in window memory", value, torch.full((1000,), float(size)))


def leaves_nothing_behind(rank, size):
    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for _ in range(3):
        group = dist.new_group()
        work = dist.all_reduce(torch.ones(10), group=group, async_op=True)
        work.wait()
        dist.destroy_process_group(group)
    end = time.monotonic() + 10
    while threads() > before and time.monotonic() < end:
        time.sleep(0.01)  # a thread that has been joined stays in /proc for a moment
    if threads() > before:
        raise AssertionError(f"{before} threads before, {threads()} after")
    loader = torch.utils.data.DataLoader(list(range(8)), num_workers=2, multiprocessing_context="fork")
    total = torch.tensor(float(sum(int(x) for x in loader)))
    dist.all_reduce(total)
    same("loader", total, torch.tensor(28.0 * size))


class Backend(Processes):
    """Most methods are made below: one a function and number of ranks."""

    def test_joins_again_in_the_same_store(self):
        for size in (2, 3, 4):
            with tempfile.TemporaryDirectory() as folder:
                self.run_ranks(size, joins_again_in_the_same_store, folder)


for _function in (against_gloo, uneven, other_types, asynchronous, callbacks_may_wait, overlapping, coalesces, refuses,
                  leaves_nothing_behind):
    add_tests(Backend, _function, (2, 3, 4))
add_tests(Backend, names_both_sides, (2, 3, 4))
add_tests(Backend, names_who_is_missing, (2, 3, 4))
add_tests(Backend, works_under_debug_detail, (2,))
add_tests(Backend, destroys_while_busy, (2, 3, 4))
add_tests(Backend, destroys_while_others_wait, (2, 3, 4))
add_tests(Backend, deadline_names_the_absent, (2, 3, 4))
add_tests(Backend, times_out, (2, 3, 4))
add_tests(Backend, aborts, (2, 3, 4))
add_tests(Backend, survives_a_death, (2, 3, 4), dead=lambda size: (size - 1,))

if __name__ == "__main__":
    unittest.main()
