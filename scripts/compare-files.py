#!/usr/bin/env python3
"""Filters whole files with omniconv, ImageMagick and libvips in turn, and writes docs/performance/files.json.

    scripts/compare-files.py [--size WIDTHxHEIGHT] [--rounds N] [--folder DIR] [--formats ppm tiff png jpeg] [--json FILE]

Each program runs as its users run it, with two threads: it reads an RGB file made from the bundled photograph (6000x4000, 24 megapixels, unless
--size says otherwise), filters it and writes one of the same format. Of files below a megapixel, most of the time is the program's start, so
omniconv is left to find its device by itself; of others it is told to take the CPU. DIR should be in memory (/dev/shm by default), so that no disk is measured. Settings are the same
for all: PNG compression 6 and the best filter of each row, JPEG quality 95 with full colour, TIFF and PPM uncompressed. Needs omniconv, built in
build/release or named by $OMNICONV, Debian's imagemagick, libvips-tools, python3-numpy and python3-opencv.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
THREADS = 2
SMALL = 1e6  # pixels
EXTENSIONS = {"ppm": "ppm", "tiff": "tif", "png": "png", "jpeg": "jpg"}
# Integer weights with a sum that is a power of two: every program can be exact, the last rounding aside. The first is no product of a column
# and a row.
KERNELS = {
    "3x3": [[1, 2, 3], [2, 0, 2], [1, 2, 3]],
    "gaussian 5x5": [[a * b for b in (1, 4, 6, 4, 1)] for a in (1, 4, 6, 4, 1)],
}


def require(omniconv):
    missing = [package for command, package in (("convert", "imagemagick"), ("vips", "libvips-tools")) if not shutil.which(command)]
    if "imagemagick" not in missing and not first_line(["convert", "-version"]).startswith("Version: ImageMagick"):
        sys.exit(f"compare-files: error: {shutil.which('convert')} is not ImageMagick's: put the folder of that first into PATH")
    for module, package in (("numpy", "python3-numpy"), ("cv2", "python3-opencv")):
        try:
            __import__(module)
        except ImportError:
            missing.append(package)
    if missing:
        sys.exit(f"compare-files: error: this needs {', '.join(missing)} (Debian: apt-get install {' '.join(missing)}; run it with /usr/bin/python3)")
    if not os.access(omniconv, os.X_OK):
        sys.exit(f"compare-files: error: there is no {omniconv}: build it, or name it by OMNICONV")


def make_pictures(folder, formats, width, height):
    """The photograph, mirrored until it fills the picture, with a sensor's noise, so that codecs work as on a photograph of that size."""
    import cv2
    import numpy
    photo = cv2.imread(str(HERE.parent / "data/photo/raccoon.jpg"))
    photo = cv2.resize(photo, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    h, w = photo.shape[:2]
    padding = ((0, max(height - h, 0)), (0, max(width - w, 0)), (0, 0))
    picture = numpy.pad(photo, padding, mode="symmetric")[:height, :width].astype(numpy.float32)
    picture += numpy.random.default_rng(3).normal(0, 1.5, picture.shape).astype(numpy.float32)
    picture = numpy.clip(numpy.rint(picture), 0, 255).astype(numpy.uint8)
    settings = {"tiff": [cv2.IMWRITE_TIFF_COMPRESSION, 1], "png": [cv2.IMWRITE_PNG_COMPRESSION, 6], "jpeg": [], "ppm": []}
    paths = {}
    for name in formats:
        paths[name] = folder / f"in.{EXTENSIONS[name]}"
        cv2.imwrite(str(paths[name]), picture, settings[name])
    if "jpeg" in formats:  # OpenCV halves the colour
        cv2.imwrite(str(folder / "whole.ppm"), picture)
        subprocess.run(["convert", str(folder / "whole.ppm"), "-quality", "95", "-sampling-factor", "4:4:4", str(paths["jpeg"])], check=True)
    return paths


def commands(omniconv, kernel_name, source, target, name, folder, pixels):
    kernel = KERNELS[kernel_name]
    size, total = len(kernel), sum(map(sum, kernel))
    rows = [",".join(map(str, row)) for row in kernel]
    mask = folder / f"mask{size}.txt"
    mask.write_text(f"{size} {size} {total} 0\n" + "\n".join(" ".join(map(str, row)) for row in kernel) + "\n")
    magick = {"ppm": [], "tiff": ["-compress", "none"], "jpeg": ["-quality", "95", "-sampling-factor", "4:4:4"],
              "png": ["-define", "png:compression-level=6", "-define", "png:compression-filter=5", "-define", "png:compression-strategy=0"]}[name]
    vips_target = {"ppm": "", "tiff": "[compression=none]", "png": "[compression=6,filter=all]", "jpeg": "[Q=95,subsample-mode=off]"}[name]
    vips = ["vips", "conv", f"{source}[access=sequential]", f"{target}{vips_target}", str(mask), "--precision"]
    report = folder / "report.json"
    programs = {
        "omniconv": [omniconv, "filter", str(source), str(target), "--kernel", f"{size}x{size}: {', '.join(rows)}", "--scale", repr(1 / total),
                     *(["--device", "cpu"] if pixels >= SMALL else []), "--threads", str(THREADS), "--json", str(report)],
        "ImageMagick": ["convert", str(source), "-convolve", ",".join(str(v) for row in kernel for v in row), *magick, str(target)],
        "libvips integer": [*vips, "integer"],
    }
    # Into TIFF and PPM it would write floating-point numbers, which is other work; PNG takes its time for compression anyway.
    if name == "jpeg":
        programs["libvips float"] = [*vips, "float"]
    return programs


def run(command):
    """Wall seconds and peak memory."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "MAGICK_THREAD_LIMIT": str(THREADS), "VIPS_CONCURRENCY": str(THREADS)}
    done = subprocess.run([sys.executable, str(HERE / "measured_run.py"), *command], env=environment, check=True, capture_output=True, text=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    if measured["status"] != 0:
        sys.exit(f"compare-files: error: {' '.join(command)} ended with status {measured['status']}: {done.stderr.strip()}")
    return measured


def pixels(path):
    import cv2
    return cv2.imread(str(path), cv2.IMREAD_UNCHANGED).astype(int)


def compare(omniconv, folder, name, source, kernel_name, rounds, pixel_count):
    target = folder / f"out.{EXTENSIONS[name]}"
    programs = commands(omniconv, kernel_name, source, target, name, folder, pixel_count)
    results = {program: {"seconds": [], "cpu_seconds": [], "peak_bytes": 0} for program in programs}
    stages, ours = [], None
    for round_ in range(rounds + 1):
        for program, command in programs.items():
            target.unlink(missing_ok=True)
            measured, result = run(command), results[program]
            result["peak_bytes"] = max(result["peak_bytes"], measured["peak_bytes"])
            if round_ > 0:  # the first round fetches programs and libraries from the disk, and is for comparing
                result["seconds"].append(measured["seconds"])
                result["cpu_seconds"].append(measured["cpu_seconds"])
                if program == "omniconv":
                    stages.append(json.loads((folder / "report.json").read_text()))
                continue
            found = pixels(target)
            ours = found if ours is None else ours
            result["file_bytes"] = target.stat().st_size
            result["largest_difference"] = int(abs(found - ours)[8:-8, 8:-8].max())
    median = {key: statistics.median(stage[key] for stage in stages) / 1e3 for key in ("read_ms", "compute_ms", "write_ms", "total_ms")}
    codec = median["read_ms"] + median["write_ms"]
    return {"format": name, "kernel": kernel_name, "rounds": rounds, "read_seconds": median["read_ms"], "compute_seconds": median["compute_ms"],
            "write_seconds": median["write_ms"], "codec_share": codec / (codec + median["compute_ms"]),
            "programs": {program: {"median_seconds": statistics.median(result["seconds"]), "min_seconds": min(result["seconds"]),
                                   "median_cpu_seconds": statistics.median(result["cpu_seconds"]),
                                   **{key: result[key] for key in ("peak_bytes", "file_bytes", "largest_difference")}}
                         for program, result in results.items()}}


def first_line(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def main():
    parser = argparse.ArgumentParser(prog="scripts/compare-files.py", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--size", default="6000x4000")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--formats", nargs="+", choices=list(EXTENSIONS), default=list(EXTENSIONS))
    parser.add_argument("--kernels", nargs="+", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument("--json", type=pathlib.Path, default=HERE.parent / "docs/performance/files.json")
    arguments = parser.parse_args()
    width, height = map(int, arguments.size.split("x"))
    omniconv = os.environ.get("OMNICONV", str(HERE.parent / "build/release/bin/omniconv"))
    require(omniconv)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    results = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="compare-files-", dir=arguments.folder))
    try:
        paths = make_pictures(folder, arguments.formats, width, height)
        for name in arguments.formats:
            for kernel_name in arguments.kernels:
                result = compare(omniconv, folder, name, paths[name], kernel_name, arguments.rounds, width * height)
                results.append(result)
                print(f"{name:<5} {kernel_name:<13}" + "; ".join(
                    f"{program} {r['median_seconds']:.3f} s (difference {r['largest_difference']}, {r['file_bytes'] / 1e6:.1f} MB)"
                    for program, r in result["programs"].items())
                    + f"; reads {result['read_seconds']:.3f}, computes {result['compute_seconds']:.3f}, writes {result['write_seconds']:.3f}", flush=True)
    finally:
        shutil.rmtree(folder)
    version = first_line([omniconv, "--version"])
    arguments.json.write_text(json.dumps({
        "schema": "omniconv-files/1", "commit": version.split("(")[1].rstrip(")"), "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu, "threads": THREADS, "pixels": width * height,
        "versions": {"ImageMagick": first_line(["convert", "-version"]).split()[2], "libvips": first_line(["vips", "--version"]).split("-")[1].split()[0]},
        "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
