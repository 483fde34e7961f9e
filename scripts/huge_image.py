#!/usr/bin/env python3
"""The work of scripts/huge-image.sh, which says what it is for."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

import tiff_rows

HERE = pathlib.Path(__file__).resolve().parent
BINOMIAL = numpy.array([1, 2, 1]) / 4


def gaussian(size):
    """The weights of gaussian:SIZE, as docs/cli.md defines them."""
    sigma = 0.3 * ((size - 1) / 2 - 1) + 0.8
    weights = numpy.exp(-0.5 * ((numpy.arange(size) - size // 2) / sigma) ** 2)
    return weights / weights.sum()


# Each of them with its separable factor, to compute the expected rows; the first has one tap, so that it reads and writes and does little else.
RUNS = {
    "identity": (["--kernel", "identity"], numpy.array([1.0]), "edge"),
    "gaussian:9": (["--kernel", "gaussian:9"], gaussian(9), "edge"),
    "3x3": (["--kernel", "3x3: 1,2,1, 2,4,2, 1,2,1", "--scale", "0.0625"], BINOMIAL, "edge"),
    "3x3 wrap": (["--kernel", "3x3: 1,2,1, 2,4,2, 1,2,1", "--scale", "0.0625", "--border", "wrap"], BINOMIAL, "wrap"),
}


class Picture:
    """Rows that can be made again one by one: pieces of one long row, smooth with noise, each from another place."""

    def __init__(self, side):
        self.side = side
        random = numpy.random.default_rng(7)
        pixels = side + 65536
        smooth = numpy.cumsum(random.normal(0, 2, (pixels, 3)), axis=0)
        self.long_row = (128 + 100 * numpy.sin(smooth / 40) + random.integers(-4, 5, (pixels, 3))).astype(numpy.uint8).ravel()

    def row(self, y):
        start = 3 * (y * 40503 % 65536)
        return self.long_row[start:start + 3 * self.side]


def expected_row(picture, factor, border, y):
    """The exact sums of one output row."""
    radius = len(factor) // 2
    rows = range(y - radius, y + radius + 1)
    rows = [r % picture.side for r in rows] if border == "wrap" else numpy.clip(rows, 0, picture.side - 1)
    column = sum(weight * picture.row(int(r)).astype(float) for weight, r in zip(factor, rows)).reshape(-1, 3)
    padded = numpy.pad(column, ((radius, radius), (0, 0)), mode=border)
    return sum(weight * padded[i:i + picture.side] for i, weight in enumerate(factor)).ravel()


def wrong_values(path, picture, factor, border):
    """Of a sample of rows: both ends, rows about the ends of strips, others by chance."""
    reader, side = tiff_rows.Reader(path), picture.side
    if (reader.height, reader.width) != (side, side):
        return f"it has {reader.height} x {reader.width} pixels"
    chance = numpy.random.default_rng(11).integers(0, side, 40)
    rows = sorted({0, 1, 2, 3, side - 1, side - 2, side - 3, side // 2, *map(int, chance)})
    # The sum of n products of values up to 255 by weights that add up to 1, in single precision, then rounded to an integer.
    slack = 0.5 + 255 * (len(factor) ** 2 + 2) * 2.0 ** -24
    for y in rows:
        difference = numpy.abs(reader.row(y) - expected_row(picture, factor, border, y))
        if difference.max() > slack:
            x = int(difference.argmax()) // 3
            return f"row {y}, column {x} is off by {difference.max():.3f}"
    return ""


def run(arguments, name, source, target):
    options, factor, border = RUNS[name]
    report = target.with_suffix(".json")
    command = [arguments.omniconv, "filter", str(source), str(target), *options, "--max-memory", f"{arguments.max_memory}M", "--device", "cpu",
               "--json", str(report)]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    measured = json.loads(subprocess.run([sys.executable, str(HERE / "measured_run.py"), *command], check=True, stdout=subprocess.PIPE).stdout)
    if measured["status"] != 0:
        raise SystemExit(f"huge-image: error: {' '.join(command)} ended with status {measured['status']}")
    told = json.loads(report.read_text())
    result = {"run": name, "seconds": measured["seconds"], "peak_bytes": measured["peak_bytes"],
              **{key: told[key] for key in ("planned_bytes", "strip_rows", "read_ms", "compute_ms", "write_ms", "solver")},
              "wrong": wrong_values(target, arguments.picture, factor, border)}
    target.unlink()
    print(f"  {name:<11} {result['seconds']:7.1f} s, {arguments.side ** 2 / result['seconds'] / 1e6:6.0f} Mpixel/s; reading "
          f"{result['read_ms'] / 1e3:.1f} s, computing {result['compute_ms'] / 1e3:.1f} s, writing {result['write_ms'] / 1e3:.1f} s, side by side; "
          f"peak {result['peak_bytes'] / 2 ** 20:.0f} MB, planned {result['planned_bytes'] / 2 ** 20:.0f} MB; "
          f"{result['wrong'] or 'the sampled rows are right'}", flush=True)
    return result


def options():
    parser = argparse.ArgumentParser(prog="scripts/huge-image.sh")
    parser.add_argument("side", nargs="?", type=int, default=60000, help="pixels either way")
    parser.add_argument("limit_mb", nargs="?", type=int, default=512, help="resident memory of the process")
    parser.add_argument("--layout", choices=["strips", "tiles"], default="strips")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parent / "build", help="where the two files go")
    parser.add_argument("--max-memory", type=int, help="what omniconv is told, in MB (a quarter of the limit)")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the image there")
    parser.add_argument("--omniconv", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side < 16 or arguments.limit_mb < 16:
        parser.error("the side is at least 16 pixels, the limit at least 16 MB")
    arguments.max_memory = arguments.max_memory or arguments.limit_mb // 4
    return arguments


def main():
    arguments = options()
    needed, free = 2 * 3 * arguments.side ** 2 + 2 ** 26, shutil.disk_usage(arguments.folder).free
    if free < needed:
        sys.exit(f"huge-image: error: {arguments.folder} has {free / 1e9:.1f} GB free, and {needed / 1e9:.1f} are needed: name another with --folder, or "
                 f"a smaller side")
    arguments.picture = Picture(arguments.side)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="huge-", dir=arguments.folder))
    try:
        source, target = folder / "in.tif", folder / "out.tif"
        start = time.monotonic()
        tiff_rows.write(source, arguments.side, arguments.picture.row, arguments.layout)
        print(f"{arguments.side} x {arguments.side} RGB, {source.stat().st_size / 1e9:.2f} GB in {arguments.layout}, made in "
              f"{time.monotonic() - start:.1f} s", flush=True)
        results = [run(arguments, name, source, target) for name in arguments.runs]
        if arguments.keep:
            shutil.move(source, arguments.folder / "huge.tif")
    finally:
        shutil.rmtree(folder)
    peak = max(result["peak_bytes"] for result in results) / 2 ** 20
    wrong = [f"{result['run']}: {result['wrong']}" for result in results if result["wrong"]]
    passed = peak <= arguments.limit_mb and not wrong
    if arguments.json:
        commit = subprocess.run([arguments.omniconv, "--version"], check=True, capture_output=True, text=True).stdout.split("(")[1].strip(" )\n")
        arguments.json.write_text(json.dumps(
            {"schema": "omniconv-huge/1", "commit": commit, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "threads": arguments.threads or
             os.cpu_count(), "side": arguments.side, "layout": arguments.layout, "limit_mb": arguments.limit_mb, "max_memory_mb": arguments.max_memory,
             "passed": passed, "results": results}, indent=1) + "\n")
    print(f"{'PASS' if passed else 'FAIL'}: {arguments.side} x {arguments.side} RGB in {peak:.0f} MB of resident memory, limit {arguments.limit_mb}"
          + "".join(f"; {line}" for line in wrong))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
