#!/usr/bin/env python3
"""Draws a peers.json of bench/peers/run.py as peers.svg and peers.png, with gnuplot: plot.py FILE [FOLDER].

One panel for each transport and number of ranks: time of a call over its size, both logarithmic, and the median of
ours in each pair. Without gnuplot nothing is drawn, and it says so.
"""

import json
import pathlib
import shutil
import subprocess
import sys

NAMES = {"mpi": "Open MPI", "gloo": "Gloo"}
COLOURS = {"mpi": "#d1603d", "gloo": "#5b7f95"}


def processor_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown processor"


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def script(report, terminal, file):
    """gnuplot's commands for the whole figure; the data stand in them."""
    panels = {}
    for series in report["series"]:
        if series["rows"]:
            panels.setdefault((series["transport"], series["ranks"]), []).append(series)
    columns = min(len(panels), 2)
    rows = -(-len(panels) // max(columns, 1))
    lines = []
    for index, series_list in enumerate(panels.values()):
        for number, series in enumerate(series_list):
            lines.append(f"$data_{index}_{number} << END")
            lines += [f"{row['bytes']} {row['ours_us']} {row['peer_us']}" for row in series["rows"]]
            lines.append("END")
    lines += [
        f"set terminal {terminal} size {480 * columns},{360 * rows + 40} font 'DejaVu Sans,10'",
        f"set output {_quoted(str(file))}",
        f"set multiplot layout {rows},{columns} title {_quoted(report['machine']['processor'])} noenhanced",
        "set logscale xy",
        "set xlabel 'bytes'",
        "set ylabel 'time of a call (us)'",
        "set format x '10^{%L}'",
        "set grid linecolor '#dddddd'",
        "set key left top Left reverse samplen 2",
        "set border 3",
        "set tics nomirror",
    ]
    for index, ((transport, ranks), series_list) in enumerate(panels.items()):
        curves = []
        for number, series in enumerate(series_list):
            peer = series["peer"]
            ours = "Rondo" if len(series_list) == 1 else f"Rondo beside {NAMES[peer]}"
            dash = "" if number == 0 else " dashtype 2"
            data = f"$data_{index}_{number}"
            curves.append(f"{data} using 1:2 with linespoints pointtype 7 pointsize 0.5 linewidth 2{dash} "
                          f"linecolor '#1b7f5c' title {_quoted(ours)}")
            curves.append(f"{data} using 1:3 with linespoints pointtype 5 pointsize 0.5 linewidth 2 "
                          f"linecolor '{COLOURS[peer]}' title {_quoted(NAMES[peer])}")
        title = f"{series_list[0]['collective']}, {ranks} ranks, {transport}"
        lines.append(f"set title {_quoted(title)} noenhanced")
        lines.append("plot " + ", ".join(curves))
    lines.append("unset multiplot")
    return "\n".join(lines) + "\n"


def draw(report, folder):
    """Returns the files written."""
    if not any(series["rows"] for series in report["series"]):
        return []
    if shutil.which("gnuplot") is None:
        print("gnuplot is not installed: no figure (install gnuplot-nox)", file=sys.stderr)
        return []
    written = []
    for terminal, suffix in (("svg background 'white'", "svg"), ("pngcairo", "png")):
        file = pathlib.Path(folder) / f"peers.{suffix}"
        subprocess.run(["gnuplot"], input=script(report, terminal, file), text=True, check=True, timeout=60)
        written.append(file)
    return written


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    source = pathlib.Path(sys.argv[1])
    report = json.loads(source.read_text())
    for file in draw(report, sys.argv[2] if len(sys.argv) == 3 else source.parent):
        print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
