#!/usr/bin/env python3
"""Measures Rondo beside Open MPI and Gloo on this machine, interleaved, and prints medians, p99 and ratios.

Machines change their speed by the minute, so only figures taken side by side are comparable. For each size both jobs
are alive; samples alternate (ours, peer, ours, peer ...) while the other job sleeps; and the latency of a cache line
between two cores is probed beside each pair. Writes peers.json, peers.svg and peers.png into --output.
See docs/benchmarks.md.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "plot"))

import jobs  # noqa: E402
import plot  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIB, MIB = 1024, 1024 * 1024
SIZES = [8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB]
SMALL = 32 * KIB  # up to here single calls are timed too, for their p99
LARGE = 2 * MIB  # from here on buffers rotate, so that memory is measured and not the cache
WORKING_SET = 256 * MIB

PEERS = {"mpi": (jobs.mpi_job, ("shm", "tcp"), "mpi_peer"), "gloo": (jobs.gloo_job, ("shm", "tcp"), "gloo_peer")}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder; missing programs are built in it")
    parser.add_argument("--output", default="build/bench", help="folder for the results")
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer samples, sizes to 16 MiB")
    parser.add_argument("--collective", default="all_reduce",
                        choices=["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--transports", nargs="+", choices=["shm", "tcp"], default=["shm", "tcp"])
    parser.add_argument("--peers", nargs="+", choices=sorted(PEERS), default=["mpi", "gloo"])
    parser.add_argument("--sizes", type=int, nargs="+", help="bytes")
    parser.add_argument("--samples", type=int, help="pairs of samples a size (15, quick 3)")
    parser.add_argument("--sample-ms", type=float, help="length of a sample (40, quick 8)")
    parser.add_argument("--windows", action="store_true", help="our buffers in window memory")
    arguments = parser.parse_args()
    quick = arguments.quick
    arguments.sizes = arguments.sizes or [size for size in SIZES if not quick or size <= 16 * MIB]
    arguments.samples = arguments.samples or (3 if quick else 15)
    arguments.sample_ms = arguments.sample_ms or (8 if quick else 40)
    if min(arguments.sizes) < 4:
        parser.error(f"--sizes {min(arguments.sizes)}: at least 4 bytes, one float")
    if min(arguments.ranks) < 1:
        parser.error(f"--ranks {min(arguments.ranks)}: at least 1")
    return arguments


def build_programs(build):
    """Brings the programs up to date in a CMake build folder, and makes one where there is nothing."""
    binaries = pathlib.Path(build) / "bin"
    wanted = ["rondo", "rondo_peer", "line_latency"]
    if (pathlib.Path(build) / "CMakeCache.txt").exists() or not all((binaries / name).exists() for name in wanted):
        print(f"building the peers in {build}", flush=True)
        configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-DRONDO_BENCH_PEERS=ON"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        targets = ["--target", "bench_peers", "rondo_cli"]
        subprocess.run(["cmake", "--build", str(build), "-j", str(os.cpu_count() or 1), *targets], check=True,
                       stdout=subprocess.DEVNULL)
    missing = [name for name in wanted if not (binaries / name).exists()]
    if missing:
        sys.exit(f"{build}/bin lacks {', '.join(missing)}: configure with -DRONDO_BENCH_PEERS=ON and build")
    return str(binaries.resolve())


def probe(binaries):
    """One-way latency of a cache line now, in ns; nan on one core."""
    run = subprocess.run([f"{binaries}/line_latency"], capture_output=True, text=True, timeout=30, check=True)
    return float(run.stdout)


def calibrate(job, collective, size, working_set, sample_ms):
    """Iterations that make a sample of about the wanted length, or None where the library lacks the collective."""
    answer = job.ask(f"total {collective} {size} 3 {working_set}")
    if "unsupported" in answer:
        return None
    if answer["us"] < 1000:
        answer = job.ask(f"total {collective} {size} 30 {working_set}")
    return max(1, min(100000, int(sample_ms * 1000 / max(answer["us"], 0.05))))


def measure_pair(binaries, ours, peer, size, arguments):
    """One size: alternating samples of both jobs."""
    working_set = WORKING_SET if size >= LARGE else 0
    if arguments.quick:
        working_set //= 4
    pair = (ours, peer)
    iterations = [calibrate(job, arguments.collective, size, working_set, arguments.sample_ms) for job in pair]
    if None in iterations:
        return None
    before = probe(binaries)
    samples = ([], [])
    for _ in range(arguments.samples):
        for job, count, found in zip(pair, iterations, samples):
            found.append(job.ask(f"total {arguments.collective} {size} {count} {working_set}")["us"])
    tails = [None, None]
    if size <= SMALL:
        for i, job in enumerate(pair):
            # Enough calls for a 99th percentile.
            tails[i] = job.ask(f"each {arguments.collective} {size} {max(iterations[i], 200)} {working_set}")
    after = probe(binaries)
    medians = [statistics.median(found) for found in samples]
    return {
        "bytes": size,
        "ours_us": medians[0],
        "peer_us": medians[1],
        "ratio": medians[1] / medians[0],
        "ours_p99_us": tails[0]["p99"] if tails[0] else max(samples[0]),
        "peer_p99_us": tails[1]["p99"] if tails[1] else max(samples[1]),
        "p99_of": "calls" if tails[0] else "samples",
        "ours_samples_us": samples[0],
        "peer_samples_us": samples[1],
        "line_latency_ns": [before, after],
    }


def human(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def print_row(row):
    before, after = row["line_latency_ns"]
    print(f"  {human(row['bytes']):>8}  {number(row['ours_us']):>9}  {number(row['peer_us']):>9}  {row['ratio']:>6.2f}  "
          f"{number(row['ours_p99_us']):>9}  {number(row['peer_p99_us']):>9}  {before:>6.0f} {after:>5.0f}", flush=True)


def measure_series(binaries, ranks, transport, peer_name, arguments):
    start_peer, _, _ = PEERS[peer_name]
    series = {"collective": arguments.collective, "ranks": ranks, "transport": transport, "peer": peer_name, "rows": []}
    with jobs.rondo_job(binaries, ranks, transport, arguments.windows) as ours, start_peer(binaries, ranks, transport) as peer:
        print(f"\n{arguments.collective}, fp32 sum, {ranks} ranks, {transport}: {ours.name} beside {peer.name}\n"
              f"  {'size':>8}  {'ours us':>9}  {'peer us':>9}  {'ratio':>6}  {'our p99':>9}  {'peer p99':>9}  line latency ns",
              flush=True)
        for size in arguments.sizes:
            row = measure_pair(binaries, ours, peer, size, arguments)
            if row is None:
                print("  not in both libraries")
                break
            series["rows"].append(row)
            print_row(row)
    if series["rows"]:
        series["geometric_mean_ratio"] = math.exp(statistics.fmean(math.log(row["ratio"]) for row in series["rows"]))
        print(f"  geometric mean of peer / ours: {series['geometric_mean_ratio']:.2f}")
    return series


def main():
    arguments = parse_arguments()
    binaries = build_programs(arguments.build)
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": {"processor": plot.processor_name(), "cpus": os.cpu_count(), "kernel": platform.release()},
        "quick": arguments.quick,
        "windows": arguments.windows,
        "series": [],
    }
    failures = 0
    for transport in arguments.transports:
        for ranks in arguments.ranks:
            for name in arguments.peers:
                _, transports, program = PEERS[name]
                if transport not in transports:
                    continue
                if not os.path.exists(f"{binaries}/{program}") or (name == "mpi" and not shutil.which("mpirun")):
                    print(f"\n{name}: left out, {program} or its launcher is not there")
                    continue
                try:
                    report["series"].append(measure_series(binaries, ranks, transport, name, arguments))
                except jobs.JobError as error:
                    failures += 1
                    print(f"\n{error}", file=sys.stderr)
    (output / "peers.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nwrote {output / 'peers.json'}")
    for file in plot.draw(report, output):
        print(f"wrote {file}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
