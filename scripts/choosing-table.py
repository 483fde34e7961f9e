#!/usr/bin/env python3
"""Writes the tables of docs/choosing.md from the JSON in docs/choosing/; with --check, compares instead."""
import json
import pathlib
import re
import sys

docs = pathlib.Path(__file__).resolve().parent.parent / "docs"
TABLES = re.compile(r"(<!-- tables: scripts/choosing-table.py -->\n).*?(<!-- end of tables -->)", re.S)


def milliseconds(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(report):
    device = report["device"]
    yield (f"\n**{device['name']}** ({device['id']}, {device['compute_units']} threads), commit {report['commit']}, {report['date'][:10]}; measured just "
           f"before: {device['peak_tflops']:.3f} TFLOP/s, {device['peak_gbps']:.1f} GB/s.\n\n"
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


reports = [json.loads(path.read_text()) for path in sorted((docs / "choosing").glob("*.json"))]
target = docs / "choosing.md"
old = target.read_text()
new = TABLES.sub(lambda marks: marks[1] + "".join(line for report in reports for line in table(report)) + "\n" + marks[2], old)
if "--check" not in sys.argv:
    target.write_text(new)
elif new != old:
    sys.exit("docs/choosing.md does not match docs/choosing/*.json: run scripts/choosing-table.py")
