#!/usr/bin/env python3
"""Times convolutions beside cuDNN and PyTorch on one NVIDIA GPU: every pass, both layouts, in one run.

    scripts/compare-convolutions.py [PROBLEMS.txt ...] [--type f32] [--pass all] [--omniconv build/lean/bin/omniconv] [--json convolutions.json]

PROBLEMS.txt (data/problems/anchors.txt if none is named) has a problem a line. omniconv's times and cuDNN's come from `omniconv bench --vendor`;
PyTorch's from its own convolutions with the search for the fastest algorithm unlimited, in both layouts, TF32 allowed where the type is tf32
alone. Arrays rotate, at most 32 sets of them, until together they take 256 MiB; times are the device's, medians. A problem's peer is the
fastest of cuDNN's and PyTorch's, in either layout; the ratio is its time divided by omniconv's: above 1 omniconv is faster.

The report is whole after each problem. Where a peer has no such convolution, its reason stands there. Needs PyTorch. Exit status 1 where omniconv fails.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
PASSES = {"": "forward", "bwd_data": "backward-data", "bwd_filter": "backward-filter"}
ROTATION_BYTES, MOST_SETS = 256 << 20, 32


def geometry(text):
    """The extents and words of a problem's text, as docs/notation.md has them."""
    words = re.sub(r'"[^"]*"', "", text).split()
    found = {"p": 0, "u": 1, "d": 1, "g": 1, "words": set(words[:-1])}
    found.update({letter: int(number) for letter, number in re.findall(r"([a-z]+)(\d+)", words[-1])})
    for letter in "hw":
        found[f"u{letter}"] = found.get(f"u{letter}", found["u"])
        found[f"d{letter}"] = found.get(f"d{letter}", found["d"])
    for side, both in (("t", "h"), ("b", "h"), ("l", "w"), ("r", "w")):
        found[f"p{side}"] = found.get(f"p{side}", found.get(f"p{both}", found["p"]))
    return found


class PyTorch:
    def __init__(self):
        import torch  # pylint: disable=import-outside-toplevel
        self.torch, self.version = torch, torch.__version__
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = 0

    def milliseconds(self, problem, kind, layout, seconds):
        """The median of one pass; throws where PyTorch has no such convolution."""
        torch, g = self.torch, geometry(problem)
        if g["pt"] != g["pb"] or g["pl"] != g["pr"]:
            raise ValueError("PyTorch has no paddings that differ")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind == "tf32"
        which = next((word for word in ("bwd_data", "bwd_filter") if word in g["words"]), "")
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(kind, torch.float32)
        form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        p = (g["h"] + g["pt"] + g["pb"] - g["dh"] * (g["r"] - 1) - 1) // g["uh"] + 1
        q = (g["w"] + g["pl"] + g["pr"] - g["dw"] * (g["s"] - 1) - 1) // g["uw"] + 1
        shapes = [(g["n"], g["c"], g["h"], g["w"]), (g["k"], g["c"] // g["g"], g["r"], g["s"]), (g["n"], g["k"], p, q)]
        of_a_set = sum(math.prod(shape) for shape in shapes) * torch.empty(0, dtype=dtype).element_size()
        sets = [[torch.randn(shape, device="cuda").to(dtype).contiguous(memory_format=form) for shape in shapes]
                for _ in range(max(1, min(MOST_SETS, ROTATION_BYTES // max(of_a_set, 1) + 1)))]
        place = ([g["uh"], g["uw"]], [g["pt"], g["pl"]], [g["dh"], g["dw"]])

        def run(i):
            x, w, y = sets[i % len(sets)]
            if which:
                mask = [which == "bwd_data", which == "bwd_filter", False]
                return torch.ops.aten.convolution_backward(y, x, w, None, *place, False, [0, 0], g["g"], mask)
            return torch.nn.functional.conv2d(x, w, None, *place, g["g"])

        def timed(i):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run(i)
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)

        for i in range(3):
            run(i)
        torch.cuda.synchronize()
        first = max(timed(0), 1e-3)
        return statistics.median(timed(i) for i in range(max(7, min(400, int(seconds * 1e3 / first)))))


class Omniconv:
    def __init__(self, options, folder):
        self.options, self.report = options, folder / "bench.json"

    def results(self, problem):
        """Of every pass and layout, with cuDNN's; and the whole report."""
        options = self.options
        done = subprocess.run([options.omniconv, "bench", problem, "--device", "cuda", "--vendor", "--pass", options.passes, "--type", options.type,
                               "--layout", "nchw,nhwc", "--budget", str(options.budget), "--quiet", "--json", str(self.report)],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not self.report.exists():
            sys.exit(f"compare-convolutions: error: {done.stderr.strip()}")
        found = json.loads(self.report.read_text())
        return found["results"], found


def same(text):
    """A problem's text without its layout and name, by which results belong together."""
    return re.sub(r'"[^"]*"', "", text).replace("nhwc ", "").replace("nchw ", "").strip()


def pass_of(text):
    return next((word for word in ("bwd_data", "bwd_filter") if word in text.split()), "")


def compare(problem, omniconv, torch, options):
    """A row for each pass, and the report of omniconv's part."""
    rows, (results, report) = {}, omniconv.results(problem)
    for result in results:
        row = rows.setdefault(same(result["problem"]), {"name": result["name"], "own": {}, "peers": {}, "missing": {}})
        layout = "nhwc" if "nhwc" in result["problem"].split() else "nchw"
        if result["status"] != "ok":
            row["missing"][f"{result['solver']} {layout}"] = result["reason"]
            continue
        into, key = (row["peers"], f"cudnn {layout}") if result["vendor"] else (row["own"], layout)
        into[key] = {name: result[name] for name in ("median_ms", "solver", "config", "error", "tflops")}
    for text, row in rows.items():
        for layout in ("nchw", "nhwc"):
            try:
                row["peers"][f"pytorch {layout}"] = {"median_ms": torch.milliseconds(text, options.type, layout, options.budget)}
            except (RuntimeError, ValueError) as error:
                row["missing"][f"pytorch {layout}"] = str(error).splitlines()[0]
        if row["peers"]:
            row["peer"] = min(row["peers"], key=lambda name: row["peers"][name]["median_ms"])
            for own in row["own"].values():
                own["ratio"] = row["peers"][row["peer"]]["median_ms"] / own["median_ms"]
    return [{"problem": text, **row} for text, row in rows.items()], report


def line_of(row):
    best = row["peers"][row["peer"]]["median_ms"] if row["peers"] else float("nan")
    line = f"{row['problem']:<52}{best:10.3f}  {row.get('peer', '-'):<14}"
    for layout in ("nchw", "nhwc"):
        own = row["own"].get(layout)
        line += f"{own['median_ms']:9.3f}{own.get('ratio', float('nan')):7.2f}" if own else f"{'failed':>16}"
    return line


def means_of(rows):
    means = {}
    for which, title in PASSES.items():
        for layout in ("nchw", "nhwc"):
            ratios = [row["own"][layout]["ratio"] for row in rows if pass_of(row["problem"]) == which and "ratio" in row["own"].get(layout, {})]
            if ratios:
                means.setdefault(title, {})[layout] = {"geometric_mean": statistics.geometric_mean(ratios), "worst": min(ratios), "problems": len(ratios)}
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=[str(root / "data/problems/anchors.txt")])
    parser.add_argument("--type", default="f32", choices=["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--pass", dest="passes", default="all")
    parser.add_argument("--omniconv", default=str(root / "build/lean/bin/omniconv"))
    parser.add_argument("--budget", type=float, default=0.2, help="seconds for each time")
    parser.add_argument("--json", default="convolutions.json")
    options = parser.parse_args()
    torch = PyTorch()
    lines = [line.strip() for name in options.problems for line in pathlib.Path(name).read_text().splitlines()]
    rows = []
    print(f"{options.type}: milliseconds, and the peer's time divided by omniconv's\n"
          f"{'problem':<52}{'peer':>10}  {'which':<14}{'nchw':>9}{'ratio':>7}{'nhwc':>9}{'ratio':>7}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        omniconv = Omniconv(options, pathlib.Path(folder))
        for problem in (line for line in lines if line and not line.startswith("#")):
            more, report = compare(problem, omniconv, torch, options)
            rows += more
            print("\n".join(map(line_of, more)), flush=True)
            whole = {"schema": "omniconv-convolutions/1", "type": options.type, "version": report["version"], "commit": report["commit"],
                     "date": report["date"], "device": report["device"], "pytorch": torch.version, "means": means_of(rows), "results": rows}
            pathlib.Path(options.json).write_text(json.dumps(whole, indent=1) + "\n")  # what comes next may take the machine's memory
    for title, layouts in means_of(rows).items():
        for layout, mean in layouts.items():
            print(f"{title}, {layout}: geometric mean {mean['geometric_mean']:.2f}, worst {mean['worst']:.2f}, of {mean['problems']}")
    return 1 if any(layout not in row["own"] for row in rows for layout in ("nchw", "nhwc")) else 0


if __name__ == "__main__":
    sys.exit(main())
