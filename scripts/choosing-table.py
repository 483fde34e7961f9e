#!/usr/bin/env python3
"""Writes a page for each report in docs/choosing/, predicted beside measured times; with --check, compares instead."""
import json
import pathlib
import sys

folder = pathlib.Path(__file__).resolve().parent.parent / "docs" / "choosing"


def milliseconds(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def page(name, report):
    device = report["device"]
    yield (f"# Predicted and measured: {device['name']}\n\nMade by `scripts/choosing-table.py` from [{name}]({name}), which\n"
           f"[`omniconv explain --measure`](../choosing.md#predicted-and-measured) wrote: {device['id']}, {device['compute_units']} threads,\n"
           f"commit {report['commit']}, {report['date'][:10]}. Measured just before: {device['peak_tflops']:.3f} TFLOP/s, {device['peak_gbps']:.1f} GB/s.\n\n"
           "| problem | solver | operations | predicted, ms | measured, ms (95 %) | measured ÷ predicted |\n| --- | --- | --- | --- | --- | --- |\n")
    for result in report["results"]:
        for candidate in result["candidates"]:
            measured = candidate.get("measured", {})
            if measured.get("status") != "ok":
                continue
            low, high = map(milliseconds, measured["ci95_ms"])
            predicted, median = candidate["predicted_ms"], measured["median_ms"]
            yield (f"| `{result['problem']}` | `{candidate['solver']}` | {candidate['operations']:.4g} | {milliseconds(predicted)} | "
                   f"{milliseconds(median)} ({low} to {high}) | {median / predicted:.2f} |\n")


for path in sorted(folder.glob("*.json")):
    text, target = "".join(page(path.name, json.loads(path.read_text()))), path.with_suffix(".md")
    if "--check" not in sys.argv:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        sys.exit(f"docs/choosing/{target.name} does not match {path.name}: run scripts/choosing-table.py")
