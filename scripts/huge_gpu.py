#!/usr/bin/env python3
"""The work of scripts/huge-gpu.sh, which says what it is for. It needs nothing but Python's own library."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = ["3x3: 0.11,-0.35,0.2, 0.45,0.31,-0.17, 0.09,0.28,0.13", "gaussian:9"]
BLOCK = 1 << 23
SKIPPED = 77  # the exit status, as ctest is told
SPLIT = ["context_ms", "compile_ms", "plan_ms", "copy_in_ms", "kernel_ms", "copy_out_ms", "read_ms", "compute_ms", "write_ms", "total_ms"]


def why_no_device(arguments):
    """What omniconv says where the device is not there; empty where it is."""
    done = subprocess.run([arguments.omniconv, "explain", "filter2d u8 h8w8r3s3", "--device", arguments.device], capture_output=True, text=True,
                          check=False)
    return done.stderr.strip() if done.returncode == 3 else ""


def make_image(path, width, height):
    """Pieces of one long row of noise and slopes, each from another place, so that no row is like its neighbours."""
    period, state, long_row = 65536, 1, bytearray()
    for x in range(min(width, period) + period):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        long_row.append((x // 7 + (state >> 16) % 60) & 0xFF)
    while len(long_row) < width + period:
        long_row += long_row[:width + period - len(long_row)]
    with open(path, "wb") as file:
        file.write(b"P5 %d %d 255\n" % (width, height))
        for y in range(height):
            start = y * 40503 % period
            file.write(long_row[start:start + width])


def first_difference(one, other):
    """Where two files differ first; None where they are equal."""
    at = 0
    with open(one, "rb") as a, open(other, "rb") as b:
        while True:
            x, y = a.read(BLOCK), b.read(BLOCK)
            if x != y:
                return at + next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            if not x:
                return None
            at += len(x)


def command_of(arguments, kernel, device, source, target, more):
    return [arguments.omniconv, "filter", str(source), str(target), "--kernel", kernel, "--border", arguments.border, "--device", device,
            "--json", str(target.with_suffix(".json")), *map(str, more)]


def bytes_without_limit(arguments, kernel, source, target, more):
    """What strips would take of the device if nothing but their size were asked for."""
    subprocess.run([*command_of(arguments, kernel, arguments.device, source, target, more), "--dry-run", "--quiet"], check=True)
    return json.loads(target.with_suffix(".json").read_text())["device_bytes"]


def run(arguments, name, kernel, device, source, target, cache, more=()):
    report = target.with_suffix(".json")
    command = command_of(arguments, kernel, device, source, target, more)
    if device != "cpu":
        command += ["--device-memory", arguments.device_memory]
    measured = json.loads(subprocess.run([sys.executable, str(HERE / "measured_run.py"), *command], check=True, stdout=subprocess.PIPE,
                                         env={**os.environ, "OMNICONV_CACHE_DIR": str(cache)}).stdout)
    if measured["status"] != 0:
        raise SystemExit(f"huge-gpu: error: {' '.join(command)} ended with status {measured['status']}")
    told = json.loads(report.read_text())
    result = {"run": name, "kernel": kernel, "device": told["device"]["id"], "device_name": told["device"]["name"], "solver": told["solver"],
              "seconds": measured["seconds"], "peak_bytes": measured["peak_bytes"],
              **{key: told[key] for key in ("strips", "strip_rows", "device_bytes", "planned_bytes", *SPLIT)}}
    print(f"  {name:<7} {result['seconds']:6.2f} s on {result['device']}: context {told['context_ms']:.0f} ms, compilation {told['compile_ms']:.0f}; copies in "
          f"{told['copy_in_ms']:.0f}, kernels {told['kernel_ms']:.0f}, copies out {told['copy_out_ms']:.0f}; reading {told['read_ms']:.0f}, computing "
          f"{told['compute_ms']:.0f}, writing {told['write_ms']:.0f}, side by side; {told['strips']} strips of {told['strip_rows']} rows, {told['device_bytes'] / 2 ** 20:.0f} MB "
          f"of the device, peak {result['peak_bytes'] / 2 ** 20:.0f} MB of the host", flush=True)
    return result


def bytes_of(text):
    """As omniconv reads sizes."""
    number = text.removesuffix("iB").removesuffix("B")
    factor = 1024 ** (" KMGT".find(number[-1].upper())) if number[-1:].isalpha() else 1
    return int(float(number.rstrip("kKMGTmgt")) * factor)


def options():
    parser = argparse.ArgumentParser(prog="scripts/huge-gpu.sh")
    parser.add_argument("width", nargs="?", type=int, default=100000)
    parser.add_argument("height", nargs="?", type=int, default=40000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--device-memory", default="1G")
    parser.add_argument("--kernel", action="append", help="may be given several times")
    parser.add_argument("--border", default="reflect101")
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parent / "build", help="where the three files go")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--omniconv", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.width < 16 or arguments.height < 16:
        parser.error("width and height are at least 16 pixels")
    if bytes_of(arguments.device_memory) >= 2 * arguments.width * arguments.height:
        parser.error(f"--device-memory {arguments.device_memory} holds the whole image and its result: name a smaller limit, or a larger image")
    return arguments


def check(arguments, kernel, result, expected, target, limit):
    """What is wrong with a run on the device."""
    result["first_difference"] = first_difference(expected, target)
    target.unlink()
    if result["first_difference"] is not None:
        yield f"{kernel}, {result['run']} run: byte {result['first_difference']} differs from the CPU's"
    if result["device_bytes"] > limit:
        yield f"{kernel}, {result['run']} run: {result['device_bytes']} bytes of device memory, and the limit is {limit}"


def main():
    arguments = options()
    pixels, limit = arguments.width * arguments.height, bytes_of(arguments.device_memory)
    needed, free = 3 * pixels + 2 ** 26, shutil.disk_usage(arguments.folder).free
    if free < needed:
        sys.exit(f"huge-gpu: error: {arguments.folder} has {free / 1e9:.1f} GB free, and {needed / 1e9:.1f} are needed: name another with --folder, or "
                 f"a smaller image")
    if reason := why_no_device(arguments):
        print(f"huge-gpu: skipped: {reason}")
        sys.exit(SKIPPED)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="huge-", dir=arguments.folder))
    results, wrong = [], []
    try:
        source, expected, target = folder / "in.pgm", folder / "cpu.pgm", folder / "out.pgm"
        start = time.monotonic()
        make_image(source, arguments.width, arguments.height)
        print(f"{arguments.width} x {arguments.height} gray, {pixels / 1e9:.2f} GB, made in {time.monotonic() - start:.1f} s; {arguments.device_memory} of "
              f"device memory", flush=True)
        for number, kernel in enumerate(arguments.kernel or KERNELS):
            print(kernel, flush=True)
            cache = folder / f"programs-{number}"
            results.append(run(arguments, "cpu", kernel, "cpu", source, expected, cache))
            for name in ("first", "second"):
                results.append(run(arguments, name, kernel, arguments.device, source, target, cache))
                wrong += check(arguments, kernel, results[-1], expected, target, limit)
            # The strips that are fastest may be far smaller than the limit; these are as tall as it lets them be.
            tall = ["--strip-rows", arguments.height, "--max-memory", max(3 * limit + 2 ** 26, 2 ** 30)]
            unlimited = bytes_without_limit(arguments, kernel, source, target, tall[:2] + ["--max-memory", 16 * pixels + 2 ** 30])
            results.append(run(arguments, "tall", kernel, arguments.device, source, target, cache, tall))
            results[-1]["device_bytes_without_limit"] = unlimited
            wrong += check(arguments, kernel, results[-1], expected, target, limit)
            if unlimited <= limit:
                wrong.append(f"{kernel}, tall strips: the limit is {limit} bytes, and without it they take {unlimited}")
            print(f"  without the limit, tall strips take {unlimited / 2 ** 20:.0f} MB", flush=True)
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        commit = subprocess.run([arguments.omniconv, "--version"], check=True, capture_output=True, text=True).stdout.split("(")[1].strip(" )\n")
        arguments.json.write_text(json.dumps(
            {"schema": "omniconv-huge-gpu/1", "commit": commit, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "threads": os.cpu_count(),
             "width": arguments.width, "height": arguments.height, "border": arguments.border, "device_memory_bytes": limit, "passed": not wrong,
             "results": results}, indent=1) + "\n")
    on_device = [result for result in results if "first_difference" in result]
    print(f"{'FAIL' if wrong else 'PASS'}: {arguments.width} x {arguments.height} gray on {on_device[-1]['device']} in "
          f"{max(result['device_bytes'] for result in on_device) / 2 ** 20:.0f} MB of device memory, limit {arguments.device_memory}, and "
          f"{max(result['peak_bytes'] for result in on_device) / 2 ** 20:.0f} MB of the host's; "
          + ("; ".join(wrong) if wrong else "every byte is the CPU's"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
