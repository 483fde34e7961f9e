#!/usr/bin/env python3
"""Writes docs/performance.md from the JSON files in docs/performance/; with --check, compares instead."""
import json
import pathlib
import sys

docs = pathlib.Path(__file__).resolve().parent.parent / "docs"


def compared(report):
    yield (f"## filter2d beside OpenCV {report['opencv']}'s `filter2D`\n\n{report['cpu']}, {report['threads']} threads, commit {report['commit']}, "
           f"{report['date'][:10]}; {report['peak_tflops']:.3f} TFLOP/s of multiply-adds, {report['peak_gbps']:.1f} GB/s of copying, measured in the same "
           "run. Random full-rank weights, no integers; border `replicate`. The last column is the largest difference of the two results.\n\n"
           "| problem | omniconv, Mpixel/s | OpenCV, Mpixel/s | ratio (95 %) | difference |\n| --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        height, width = (int(result["problem"].split("h")[1].split("w")[0]), int(result["problem"].split("w")[1].split("c")[0]))
        rate = lambda milliseconds: f"{height * width / milliseconds / 1e3:.0f}"
        low, high = result["ratio_ci95"]
        yield (f"| `{result['problem']}` | {rate(result['median_ms'])} | {rate(result['opencv_median_ms'])} | {result['ratio']:.2f} "
               f"({low:.2f} to {high:.2f}) | {result['largest_difference']:g} |\n")


def benched(report):
    device = report["device"]
    yield (f"## {device['name']} ({device['driver']})\n\nCommit {report['commit']}, {report['date'][:10]}; {device['peak_tflops']:.1f} TFLOP/s of "
           f"multiply-adds, {device['peak_gbps']:.0f} GB/s of copying, measured.\n\n"
           "| problem | solver | ms (95 %) | TFLOP/s | GB/s | share of the floor |\n| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        low, high = result["ci95_ms"]
        yield (f"| `{result['problem']}` | `{result['solver']}` | {result['median_ms']:.3f} ({low:.3f} to {high:.3f}) | {result['tflops']:.2f} | "
               f"{result['gbps']:.0f} | {100 * result['roofline']:.0f} % |\n")


def table():
    yield "# Performance\n\nMade by `scripts/performance-table.py` from the JSON in `docs/performance/`. How it was measured: [measuring](measuring.md).\n"
    makers = {"omniconv-compare/1": compared, "omniconv-bench/1": benched}
    for path in sorted((docs / "performance").glob("*.json")):
        report = json.loads(path.read_text())
        yield "\n"
        yield from makers[report["schema"]](report)


text, target = "".join(table()), docs / "performance.md"
if "--check" not in sys.argv:
    target.write_text(text)
elif target.read_text() != text:
    sys.exit("docs/performance.md does not match docs/performance/*.json: run scripts/performance-table.py")
