#!/usr/bin/env python3
"""Adds up reports of `omniconv verify --random N --seed S --json FILE` of one device and commit, whose seeds follow each other.

    scripts/merge-random.py REPORT.json ... >docs/performance/h200-random-cuda.json

Each solver's counts are summed, and its largest ratio of error to bound kept with the problem. Exit status 1 where reports do not belong together.
"""
import json
import sys


def merged(reports):
    reports.sort(key=lambda report: report["random"]["seed"])
    first, drawn = reports[0], [report["random"] for report in reports]
    seeds = [one["seed"] for one in drawn]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise SystemExit(f"the seeds {seeds} do not follow each other")
    for report in reports:
        if (report["commit"], report["device"]["name"], report["random"]["problems"]) != (first["commit"], first["device"]["name"], drawn[0]["problems"]):
            raise SystemExit(f"seed {report['random']['seed']} is of another commit, device or number of problems than seed {seeds[0]}")
        if report["random"]["given_up"]:
            raise SystemExit(f"seed {report['random']['seed']} was not drawn to its end")
    solvers = {}
    for solver in (solver for one in drawn for solver in one["solvers"]):
        total = solvers.setdefault(solver["solver"], dict(solver, passed=0, failed=0, refused=0))
        for count in ("passed", "failed", "refused"):
            total[count] += solver[count]
        if solver["largest_ratio"] > total["largest_ratio"]:
            total.update(largest_ratio=solver["largest_ratio"], problem=solver["problem"])
    head = {name: first[name] for name in ("version", "commit", "date", "host", "device")}
    return {"schema": "omniconv-random/1"} | head | {
        "seeds": [seeds[0], seeds[-1]], "problems_of_a_seed": drawn[0]["problems"], "problems": sum(one["problems"] for one in drawn),
        "unserved": sum(one["unserved"] for one in drawn), "solvers": [solvers[name] for name in sorted(solvers)]}


if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
reports = []
for path in sys.argv[1:]:
    with open(path) as file:
        reports.append(json.load(file))
json.dump(merged(reports), sys.stdout, indent=2)
print()
