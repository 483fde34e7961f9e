#!/usr/bin/env python3
"""Times convolutions and products beside cuDNN, cuBLAS and PyTorch on one NVIDIA GPU: every pass, both layouts.

    scripts/compare-convolutions.py [PROBLEMS.txt ...] [--type f32] [--passes all] [--layouts nchw,nhwc] [--omniconv build/lean/bin/omniconv]
                                    [--budget 0.05] [--seconds S] [--json convolutions.json] [--resume JSON] [--only-own JSON]
                                    [--asking WORDS]

PROBLEMS.txt (data/problems/anchors.txt if none is named) has a problem a line. omniconv's times, cuDNN's and cuBLAS's come from `omniconv bench
--vendor`, a process for --chunk problems; PyTorch's from its own operators, TF32 allowed where the type is tf32 alone. cuDNN is searched whole;
PyTorch times the first --torch-limit algorithms of each shape, 10 as it does by itself (0: all). Arrays rotate, at most 32 sets of them, until
together they take 256 MiB; times are the device's, medians. A problem's peer is the fastest of the others', in either layout; the ratio is its time
divided by omniconv's: above 1 omniconv is faster. Products have one layout, `plain`.

The report is written after each chunk. After --seconds, or Ctrl-C, it has what there is, and `--resume` goes on with what a report of the same
command lacks. `--only-own` asks no other library: their times are those of an earlier report of a device of the same name, and marked so.
`--asking` has more words for `omniconv bench`, as --asking="--units fma --device opencl"; the report names them.
Where a peer has no such operation, its reason stands there. PyTorch's part needs PyTorch; `--peers vendor` leaves it out.
Exit status 1 where omniconv fails, 130 where it was stopped.
"""
import argparse
import json
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from pytorch_times import PyTorch

root = pathlib.Path(__file__).resolve().parent.parent
PASSES = {"": "forward", "bwd_data": "backward-data", "bwd_filter": "backward-filter", "gemm": "product"}
LIBRARIES = {"conv2d/cudnn/gpu.1": "cudnn", "gemm/cublas/gpu.1": "cublas"}


class Stopped(Exception):
    """The time is over, or somebody pressed Ctrl-C."""


def without_name(text):
    return re.sub(r'"[^"]*"', "", text).strip()


def same(text):
    """A problem's text without its layout and name, by which results belong together."""
    return " ".join(word for word in without_name(text).split() if word not in ("nchw", "nhwc"))


def pass_of(text):
    return next((word for word in ("gemm", "bwd_data", "bwd_filter") if word in text.split()), "")


def layout_of(text):
    return "plain" if text.startswith("gemm") else "nhwc" if "nhwc" in text.split() else "nchw"


class Omniconv:
    """`omniconv bench` on chunks of problems."""

    def __init__(self, options, folder, deadline):
        self.options, self.folder, self.deadline = options, folder, deadline

    def results(self, problems, is_gemm):
        """Of every pass and layout, each with the number of its problem as its name; the whole report, and whether it was cut short."""
        options, report = self.options, self.folder / "bench.json"
        report.unlink(missing_ok=True)
        (self.folder / "problems.txt").write_text("".join(f'{without_name(text)} "{number}"\n' for number, text in problems))
        command = [options.omniconv, "bench", "--problems", str(self.folder / "problems.txt"), "--device", options.device, "--type", options.type,
                   "--budget", str(options.budget), "--quiet", "--json", str(report)]
        command += [] if is_gemm else ["--pass", options.passes, "--layout", options.layouts]
        command += ["--vendor"] if "vendor" in options.peers else []
        command += shlex.split(options.asking)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            stopped = False
            try:
                _, error = process.communicate(timeout=max(1, self.deadline - time.monotonic()))
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                stopped = True
                process.send_signal(signal.SIGINT)  # it writes what it has
                try:
                    _, error = process.communicate(timeout=60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    _, error = process.communicate()
        found = json.loads(report.read_text()) if report.exists() else {}
        if "device" not in found and stopped:
            raise Stopped
        if "device" not in found or (not stopped and process.returncode not in (0, 1)):
            sys.exit(f"compare-convolutions: error: {error.strip()}")
        return found.get("results", []), found, stopped


class Comparison:
    """The rows of the report, of one problem and pass each, and what they still lack."""

    def __init__(self, options):
        self.options, self.rows, self.head = options, {}, {}
        self.layouts = options.layouts.split(",")
        for report in [options.resume] if options.resume else []:
            earlier = json.loads(pathlib.Path(report).read_text())
            if earlier["type"] != options.type:
                sys.exit(f"compare-convolutions: error: {report} is of {earlier['type']}; resume it with --type {earlier['type']}")
            self.head = {name: value for name, value in earlier.items() if name not in ("results", "means")}
            self.rows = {row["problem"]: row for row in earlier["results"]}
        self.earlier = json.loads(pathlib.Path(options.only_own).read_text()) if options.only_own else None

    def layouts_of(self, row):
        return ["plain"] if row["problem"].startswith("gemm") else self.layouts

    def lacks_own(self, row):
        return any(layout not in row["own"] and f"omniconv {layout}" not in row["missing"] for layout in self.layouts_of(row))

    def lacks(self, row, peer):
        return any(f"{peer} {layout}" not in {**row["peers"], **row["missing"]} for layout in self.layouts_of(row))

    def is_measured(self, line, passes):
        """By omniconv and the libraries that it calls, in every pass."""
        rows = [row for row in self.rows.values() if row["line"] == line]
        if {pass_of(row["problem"]) for row in rows} < passes:
            return False
        asked = "vendor" in self.options.peers
        return not any(self.lacks_own(row) or (asked and self.lacks(row, "cublas" if row["problem"].startswith("gemm") else "cudnn")) for row in rows)

    def add(self, lines, results, report):
        if self.earlier and self.earlier["device"]["name"] != report["device"]["name"]:
            sys.exit(f"compare-convolutions: error: {self.options.only_own} is of {self.earlier['device']['name']}, and this is {report['device']['name']}")
        for result in results:
            text, layout = same(result["problem"]), layout_of(result["problem"])
            line = lines[int(result["name"])]
            name = re.search(r'"([^"]*)"', line)
            row = self.rows.setdefault(text, {"problem": text, "line": line, "name": name[1] if name else "", "own": {}, "peers": {}, "missing": {}})
            library = LIBRARIES.get(result["solver"], "omniconv")
            if result["status"] != "ok":
                row["missing"][f"{library} {layout}"] = result["reason"]
                continue
            into, key = (row["peers"], f"{library} {layout}") if result["vendor"] else (row["own"], layout)
            into[key] = {name: result[name] for name in ("median_ms", "solver", "config", "error", "tflops")}
        if not self.head:
            self.head = {"schema": "omniconv-convolutions/1", "type": self.options.type} | {
                name: report[name] for name in ("version", "commit", "date", "device")}
            self.head["libraries"] = {}
            if self.options.asking:
                self.head["asking"] = self.options.asking
        if report["commit"] != self.head["commit"]:
            self.head["commits"] = sorted({*self.head.get("commits", [self.head["commit"]]), report["commit"]})
        self.head["libraries"] |= report.get("libraries", {})
        self.take_earlier()

    def take_earlier(self):
        if not self.earlier:
            return
        known = {row["problem"]: row for row in self.earlier["results"]}
        for text, row in self.rows.items():
            for peer, time_of in known.get(text, {"peers": {}})["peers"].items():
                row["peers"][peer] = {**time_of, "earlier": True}
        self.head["libraries"] = self.earlier.get("libraries", {})
        self.head["peers_from"] = {"report": pathlib.Path(self.options.only_own).name, "date": self.earlier["date"], "commit": self.earlier["commit"]}

    def add_pytorch(self, torch, deadline, lines):
        self.head["libraries"] |= torch.versions
        for row in self.rows.values():
            if row["line"] not in lines or not self.lacks(row, "pytorch"):
                continue
            if time.monotonic() > deadline:
                raise Stopped
            for layout in self.layouts_of(row):
                try:
                    median = torch.milliseconds(row["problem"], self.options.type, layout, self.options.budget)
                    row["peers"][f"pytorch {layout}"] = {"median_ms": median}
                except (RuntimeError, ValueError) as error:
                    row["missing"][f"pytorch {layout}"] = str(error).splitlines()[0]
        torch.release()

    def compare(self):
        for row in self.rows.values():
            if row["peers"]:
                row["peer"] = min(row["peers"], key=lambda name: row["peers"][name]["median_ms"])
                for own in row["own"].values():
                    own["ratio"] = row["peers"][row["peer"]]["median_ms"] / own["median_ms"]

    def means(self):
        means = {}
        for which, title in PASSES.items():
            for layout in ("nchw", "nhwc", "plain"):
                ratios = [row["own"][layout]["ratio"] for row in self.rows.values()
                          if pass_of(row["problem"]) == which and "ratio" in row["own"].get(layout, {})]
                if ratios:
                    means.setdefault(title, {})[layout] = {"geometric_mean": statistics.geometric_mean(ratios), "worst": min(ratios), "problems": len(ratios)}
        return means

    def write(self):
        if not self.head:
            return
        self.compare()
        whole = {**self.head, "means": self.means(), "results": list(self.rows.values())}
        target = pathlib.Path(self.options.json)
        target.with_suffix(".part").write_text(json.dumps(whole, indent=1) + "\n")
        target.with_suffix(".part").rename(target)  # whole, or as it was


def line_of(row):
    best = row["peers"][row["peer"]]["median_ms"] if row["peers"] else float("nan")
    text = f"{row['problem']:<52}{best:10.3f}  {row.get('peer', '-'):<14}"
    for layout in ("plain",) if row["problem"].startswith("gemm") else ("nchw", "nhwc"):
        own = row["own"].get(layout)
        text += f"{own['median_ms']:9.3f}{own.get('ratio', float('nan')):7.2f}" if own else f"{'-':>16}"
    return text


def passes_of(options):
    asked = [word.strip() for word in options.passes.split(",")]
    every = {"fwd": "", "bwd_data": "bwd_data", "bwd_filter": "bwd_filter"}
    return set(every.values()) if "all" in asked else {every[word] for word in asked if word in every}


def compare(options, folder):
    deadline = time.monotonic() + (options.seconds or 1e6)
    comparison, omniconv = Comparison(options), Omniconv(options, folder, deadline)
    torch = PyTorch(options.torch_limit) if "pytorch" in options.peers else None
    texts = [line.strip() for name in options.problems for line in pathlib.Path(name).read_text().splitlines()]
    once = {}  # by their texts without their names
    for line in texts:
        if line and not line.startswith("#"):
            once.setdefault(without_name(line), line)
    lines = list(once.values())
    print(f"{options.type}: milliseconds, and the peer's time divided by omniconv's\n"
          f"{'problem':<52}{'peer':>10}  {'which':<14}{'nchw':>9}{'ratio':>7}{'nhwc':>9}{'ratio':>7}", flush=True)
    try:
        for is_gemm in (False, True):
            mine = [(number, line) for number, line in enumerate(lines) if line.startswith("gemm") == is_gemm]
            passes = {"gemm"} if is_gemm else passes_of(options)
            for first in range(0, len(mine), options.chunk):
                chunk = mine[first:first + options.chunk]
                unmeasured = [(number, line) for number, line in chunk if not comparison.is_measured(line, passes)]
                stopped = False
                if unmeasured:
                    results, report, stopped = omniconv.results(unmeasured, is_gemm)
                    comparison.add(lines, results, report)
                    comparison.write()
                if stopped:
                    raise Stopped
                if torch:
                    comparison.add_pytorch(torch, deadline, {line for _, line in chunk})
                comparison.write()
                print("\n".join(line_of(row) for row in comparison.rows.values() if row["line"] in {line for _, line in chunk}), flush=True)
    except (Stopped, KeyboardInterrupt):
        comparison.write()
        print(f"stopped: {options.json} has what was found; --resume {options.json} goes on")
        return 130
    for title, layouts in comparison.means().items():
        for layout, mean in layouts.items():
            print(f"{title}, {layout}: geometric mean {mean['geometric_mean']:.2f}, worst {mean['worst']:.2f}, of {mean['problems']}")
    return 1 if any(comparison.lacks_own(row) or any(key.startswith("omniconv") for key in row["missing"]) for row in comparison.rows.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=[str(root / "data/problems/anchors.txt")])
    parser.add_argument("--type", default="f32", choices=["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--passes", "--pass", default="all", help="as --pass of `omniconv bench`")
    parser.add_argument("--layouts", default="nchw,nhwc")
    parser.add_argument("--device", default="cuda", help="PyTorch takes the first")
    parser.add_argument("--omniconv", default=str(root / "build/lean/bin/omniconv"))
    parser.add_argument("--budget", type=float, default=0.05, help="seconds for each time")
    parser.add_argument("--seconds", type=float, help="stop after so many")
    parser.add_argument("--chunk", type=int, default=25, help="problems of one process")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["vendor", "pytorch"], help="vendor,pytorch, or one of them")
    parser.add_argument("--torch-limit", type=int, default=10, help="algorithms that PyTorch times of each shape; 0: all")
    parser.add_argument("--json", default="convolutions.json")
    parser.add_argument("--resume", metavar="JSON", help="a report that lacks some")
    parser.add_argument("--only-own", metavar="JSON", help="the report that has the peers' times")
    parser.add_argument("--asking", default="", metavar="WORDS", help="more words for omniconv bench")
    options = parser.parse_args()
    if options.only_own:
        options.peers = []
    with tempfile.TemporaryDirectory() as folder:
        return compare(options, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
