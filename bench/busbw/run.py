#!/usr/bin/env python3
"""Draws the bus bandwidth of every collective over the message size, out of place, on this machine.

Runs the perf programs through `rondo run`, with results checked, and writes busbw.json, busbw.svg and busbw.png into
--output. Figures of two runs are comparable only roughly: `./dev bench peers` is for comparing.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

PROGRAMS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--output", default="build/bench", help="folder for the results")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--collectives", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--from", dest="first", default="8", help="smallest size, as -b takes it")
    parser.add_argument("--to", dest="last", default="16M", help="largest size, as -e takes it")
    return parser.parse_args()


def measure(arguments, collective):
    binaries = pathlib.Path(arguments.build, "bin")
    file = pathlib.Path(arguments.output, f"{collective}.json")
    command = [binaries / "rondo", "run", "-n", str(arguments.ranks), "--", binaries / f"{collective}_perf"]
    command += ["-b", arguments.first, "-e", arguments.last, "-f", "4", "-c", "1", "-J", file]
    print("+", *command, flush=True)
    subprocess.run(command, check=True)
    return json.loads(file.read_text(encoding="utf-8"))


def script(reports, title, terminal, file):
    """gnuplot's commands for the figure; the data stand in them."""
    lines = []
    for number, report in enumerate(reports.values()):
        lines.append(f"$data_{number} << END")
        for row in report["rows"]:
            bandwidth = row["out_of_place"]["busbw_gb_s"]
            if row["size"] > 0 and bandwidth > 0:
                lines.append(f"{row['size']} {bandwidth}")
        lines.append("END")
    curves = [
        f"$data_{number} using 1:2 with linespoints pointsize 0.6 linewidth 2 title '{collective}' noenhanced"
        for number, collective in enumerate(reports)
    ]
    lines += [
        f"set terminal {terminal} size 960,600 font 'DejaVu Sans,11' background rgb 'white'",
        f"set output '{file}'",
        f"set title '{title}' noenhanced",
        "set logscale x 2",
        "set logscale y 10",
        "set format x '%.0b %BB'",
        "set xlabel 'bytes'",
        "set ylabel 'bus bandwidth, GB/s'",
        "set grid",
        "set key outside right",
        "plot " + ", ".join(curves),
    ]
    return "\n".join(lines) + "\n"


def main():
    arguments = parse_arguments()
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    reports = {collective: measure(arguments, collective) for collective in arguments.collectives}
    (output / "busbw.json").write_text(json.dumps(reports, indent=2) + "\n", encoding="utf-8")
    written = [output / "busbw.json"]
    if shutil.which("gnuplot"):
        title = f"Bus bandwidth, {arguments.ranks} ranks on one host"
        for terminal, suffix in [("svg", "svg"), ("pngcairo", "png")]:
            file = output / f"busbw.{suffix}"
            subprocess.run(["gnuplot"], input=script(reports, title, terminal, file), text=True, check=True)
            written.append(file)
    else:
        print("gnuplot is not installed, so nothing is drawn (./dev setup --all installs it)")
    print("wrote", *written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
