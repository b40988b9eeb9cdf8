"""Measures torch.distributed over rondo beside Gloo, in the same processes, interleaved: all_reduce over the size, and
steps of a small GPT under DistributedDataParallel and fully_shard (FSDP2).

    ./dev bench torch [--quick]

Every process has a group of each backend. Samples alternate (rondo, Gloo, rondo ...), so both meet the same machine; a
ratio is the median over pairs of Gloo's time over rondo's, beside it the first and third quartile. Losses of both are
compared, too. Writes torch.json into --output.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import rondo_torch
from gpt import Gpt
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

KIB, MIB = 1024, 1024 * 1024
SIZES = [8, 64, 512, 4 * KIB, 32 * KIB, 64 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB]
MICRO_BATCHES = [(1, 64), (8, 256)]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="build/bench", help="folder for torch.json")
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer samples, sizes to 2 MiB")
    parser.add_argument("--parts", nargs="+", choices=["all_reduce", "ddp", "fsdp"], default=["all_reduce", "ddp", "fsdp"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="of all_reduce")
    parser.add_argument("--train-ranks", type=int, default=2, help="of ddp and fsdp")
    parser.add_argument("--sizes", type=int, nargs="+", help="bytes, multiples of 4")
    parser.add_argument("--samples", type=int, help="pairs of samples (21, quick 5)")
    parser.add_argument("--sample-ms", type=float, help="length of a sample of all_reduce (40, quick 10)")
    arguments = parser.parse_args()
    arguments.samples = arguments.samples or (5 if arguments.quick else 21)
    arguments.sample_ms = arguments.sample_ms or (10 if arguments.quick else 40)
    arguments.sizes = arguments.sizes or [size for size in SIZES if not arguments.quick or size <= 2 * MIB]
    if any(size < 4 or size % 4 for size in arguments.sizes):
        parser.error(f"--sizes {arguments.sizes}: multiples of 4 bytes, one float")
    return arguments


def seconds_of(function, group):
    dist.barrier(group=group)
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def in_turns(samples, functions, group):
    """Times of alternating samples: one list a function, in seconds."""
    found = [[] for _ in functions]
    for number in range(samples):
        order = range(len(functions))
        for which in order if number % 2 == 0 else reversed(order):
            found[which].append(seconds_of(functions[which], group))
    return found


def row_of(found, **about):
    ratios = [theirs / ours for ours, theirs in zip(*found[:2], strict=True)]
    quartiles = statistics.quantiles(ratios, n=4)
    return {
        **about,
        "rondo_us": statistics.median(found[0]) * 1e6,
        "gloo_us": statistics.median(found[1]) * 1e6,
        "ratio": statistics.median(ratios),
        "quartiles": [quartiles[0], quartiles[2]],
    }


def all_reduce(arguments, groups):
    rows = []
    for size in arguments.sizes:
        tensor = torch.zeros(size // 4)
        functions = []
        for group in groups:
            def repeat(count, group=group):
                for _ in range(count):
                    dist.all_reduce(tensor, group=group)

            repeat(3)
            count = torch.tensor([max(1, int(arguments.sample_ms / 1e3 / seconds_of(lambda: repeat(5), group) * 5))])
            dist.broadcast(count, 0, group=groups[1])
            functions.append((lambda repeat=repeat, count=int(count): repeat(count), int(count)))
        found = in_turns(arguments.samples, [function for function, _ in functions], groups[0])
        for times, (_, count) in zip(found, functions, strict=True):
            times[:] = [seconds / count for seconds in times]
        rows.append(row_of(found, bytes=size))
    return rows


def train(arguments, groups, wrap):
    """Steps with either backend, and of one process alone, from the same weights on the same data."""
    rows = []
    for batch, length in MICRO_BATCHES:
        steps, losses = [], ([], [], [])
        for group, seen in zip((*groups, None), losses, strict=True):
            torch.manual_seed(1)
            model = Gpt() if group is None else wrap(Gpt(), group)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
            data = torch.Generator().manual_seed(dist.get_rank())

            def step(model=model, optimizer=optimizer, data=data, seen=seen):
                tokens = torch.randint(2048, (batch, length + 1), generator=data)
                loss = model(tokens[:, :-1], tokens[:, 1:])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                seen.append(loss.item())

            steps.append(step)
        for step in steps:
            for _ in range(3):
                step()
        found = in_turns(arguments.samples, steps, groups[0])
        apart = max(abs(a - b) for a, b in zip(*losses[:2], strict=True))
        alone = statistics.median(found[2]) * 1e6
        rows.append(row_of(found, micro_batch=f"{batch} x {length}", losses_apart=apart, alone_us=alone))
    return rows


def with_ddp(model, group):
    return DistributedDataParallel(model, process_group=group)


def with_fsdp(model, group):
    mesh = DeviceMesh.from_group(group, "cpu")
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def process(rank, ranks, part, arguments, folder):
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    store = dist.FileStore(os.path.join(folder, "store"), ranks)
    dist.init_process_group("rondo", store=store, rank=rank, world_size=ranks)
    groups = (dist.group.WORLD, dist.new_group(backend="gloo"))
    if part == "all_reduce":
        rows = all_reduce(arguments, groups)
    else:
        rows = train(arguments, groups, with_ddp if part == "ddp" else with_fsdp)
    if rank == 0:
        pathlib.Path(folder, "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    dist.destroy_process_group()


def measure(part, ranks, arguments):
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(process, (ranks, part, arguments, folder), nprocs=ranks)
        return json.loads(pathlib.Path(folder, "rows.json").read_text(encoding="utf-8"))


def human(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def show(part, ranks, rows):
    heads = ["size" if part == "all_reduce" else "micro-batch", "rondo µs", "Gloo µs", "ratio", "quartiles"]
    if part != "all_reduce":
        heads += ["without communication µs", "losses apart"]
    print(f"\n{part}, {ranks} ranks\n\n| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        cells = [human(row["bytes"]) if part == "all_reduce" else row["micro_batch"]]
        cells += [short(row["rondo_us"]), short(row["gloo_us"]), f"{row['ratio']:.2f}"]
        cells.append("{:.2f}-{:.2f}".format(*row["quartiles"]))
        if part != "all_reduce":
            cells += [short(row["alone_us"]), f"{row['losses_apart']:.2g}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def short(microseconds):
    return f"{microseconds:.3g}" if microseconds < 100 else f"{microseconds:.0f}"


def main():
    arguments = parse_arguments()
    series = []
    for part in arguments.parts:
        for ranks in arguments.ranks if part == "all_reduce" else [arguments.train_ranks]:
            rows = measure(part, ranks, arguments)
            show(part, ranks, rows)
            series.append({"part": part, "ranks": ranks, "rows": rows})
    file = pathlib.Path(arguments.output, "torch.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"torch": torch.__version__, "rondo": rondo_torch._C.rondo_version, "machine": platform.machine(),
             "cores": os.cpu_count(), "command": sys.argv}
    file.write_text(json.dumps({**about, "series": series}, indent=2) + "\n", encoding="utf-8")
    print(f"\nwritten: {file}")


if __name__ == "__main__":
    main()
