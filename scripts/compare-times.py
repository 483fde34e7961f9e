#!/usr/bin/env python3
"""Times two builds of omniconv in turns, each with the solver that it chooses, over lists of problems.

    scripts/compare-times.py BEFORE AFTER [--device cuda] [--lists gpu-gemm gpu-conv ...] [--json before-after.json]

BEFORE and AFTER are two `omniconv` commands. Some problems at a time are timed before, after, after, before by `omniconv bench`, so that what slows
the machine for a while slows both. A ratio is AFTER's time divided by BEFORE's, the least median of each; its interval reaches from AFTER's lowest
end over BEFORE's highest to AFTER's highest over BEFORE's lowest, of all turns. Convolutions are timed in all passes. A problem that is refused or
fails on one side is named.

Exit status 1 where an interval lies wholly beyond --most (1.03), a side failed, or nothing was compared.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
TURNS = ["before", "after", "after", "before"]


class Failure(Exception):
    pass


def problems_of(name):
    lines = (line.split("#")[0].strip() for line in (root / "data" / "problems" / f"{name}.txt").read_text().splitlines())
    return [line for line in lines if line]


class Command:
    def __init__(self, command, folder, options):
        self.command, self.folder, self.options = command, folder, options
        self.environment = dict(os.environ, OMNICONV_CACHE_DIR=str(folder / "cache"))

    def bench(self, problems, passes):
        """The report over some problems."""
        self.folder.mkdir(exist_ok=True)
        listed, report = self.folder / "problems.txt", self.folder / "report.json"
        listed.write_text("\n".join(problems) + "\n")
        report.unlink(missing_ok=True)
        done = subprocess.run([self.command, "bench", "--problems", listed, "--device", self.options.device, "--budget", str(self.options.budget), "--quiet",
                               "--json", report, *passes], env=self.environment, capture_output=True, text=True, check=False)
        found = json.loads(report.read_text()) if report.exists() else {}
        if "results" not in found:
            raise Failure(f"{self.command}: {(done.stderr or done.stdout or 'no report').strip().splitlines()[-1]}")
        return found


def ratio_of(before, after):
    """The ratio of two lists of results, and its interval."""
    least = lambda results: min(result["median_ms"] for result in results)
    low, high = (lambda results: min(result["ci95_ms"][0] for result in results)), (lambda results: max(result["ci95_ms"][1] for result in results))
    return least(after) / least(before), [low(after) / high(before), high(after) / low(before)]


def side(results):
    best = min(results, key=lambda result: result["median_ms"])
    return {key: best[key] for key in ("solver", "median_ms", "ci95_ms")}


def compared(name, turns):
    """The rows of a list, of {problem: {"before": results, "after": results}}."""
    for problem, sides in turns.items():
        bad = next((result for results in sides.values() for result in results if result["status"] != "ok"), None)
        if bad or len(sides) < 2:
            yield {"list": name, "problem": problem, "status": "failed", "reason": bad["reason"] if bad else f"only {next(iter(sides))} has it"}
            continue
        ratio, interval = ratio_of(sides["before"], sides["after"])
        yield {"list": name, "problem": problem, "status": "ok", "before": side(sides["before"]), "after": side(sides["after"]), "ratio": ratio, "ratio_ci95": interval}


def timed_list(name, commands, options, end, report):
    passes = ["--pass", "all"] if name in ("anchors", "resnet50", "tails", "studies") else []
    problems, turns, cut = problems_of(name), {}, None
    for i in range(0, len(problems), options.at_a_time):
        if time.monotonic() > end:
            cut = f"{name}: the time was up after {i} of {len(problems)} problems"
            break
        for turn in TURNS:
            found = commands[turn].bench(problems[i:i + options.at_a_time], passes)
            report[turn] = {"version": found["version"], "commit": found["commit"]}
            if turn == "after":
                report["commit"] = found["commit"]
            report["device"] = {key: found["device"][key] for key in ("id", "name", "gpu", "driver")}
            for result in found["results"]:
                turns.setdefault(result["problem"], {}).setdefault(turn, []).append(result)
    return list(compared(name, turns)), cut


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def print_list(name, rows, most):
    good = [row for row in rows if row["status"] == "ok"]
    for row in rows:
        if row["status"] != "ok":
            print(f"  {row['problem']}: {row['reason']}")
        elif row["ratio"] > most or row["before"]["solver"] != row["after"]["solver"]:
            low, high = row["ratio_ci95"]
            print(f"  {row['problem']}: {row['before']['median_ms']:.4f} ms {row['before']['solver']}, {row['after']['median_ms']:.4f} ms {row['after']['solver']}: "
                  f"{row['ratio']:.3f} ({low:.3f} to {high:.3f})")
    if good:
        print(f"{name}: {len(good)} compared, geometric mean {geometric_mean([row['ratio'] for row in good]):.3f}, "
              f"most {max(row['ratio'] for row in good):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", metavar="BEFORE", help="an omniconv command")
    parser.add_argument("after", metavar="AFTER", help="another")
    parser.add_argument("--device", default="cpu", metavar="ID", help="as omniconv names it (default: cpu)")
    parser.add_argument("--lists", nargs="+", default=["filters", "anchors", "gemm"], metavar="NAME", help="files of data/problems (default: filters anchors gemm)")
    parser.add_argument("--budget", type=float, default=0.1, metavar="SECONDS", help="of a problem in a turn (default: 0.1)")
    parser.add_argument("--at-a-time", type=int, default=6, metavar="N", help="problems of a turn (default: 6)")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="SECONDS", help="no portion begins later; what is left is said")
    parser.add_argument("--most", type=float, default=1.03, metavar="RATIO", help="that an interval may begin with (default: 1.03)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all rows")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    report = {"schema": "omniconv-before-after/1", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "most": options.most, "results": []}
    try:
        with tempfile.TemporaryDirectory() as folder:
            commands = {name: Command(command, pathlib.Path(folder) / name, options) for name, command in (("before", options.before), ("after", options.after))}
            for name in options.lists:
                rows, cut = timed_list(name, commands, options, end, report)
                print_list(name, rows, options.most)
                report["results"] += rows
                if cut:
                    print(cut)
    except (Failure, OSError, json.JSONDecodeError) as failure:
        sys.exit(f"compare-times: error: {failure}")
    finally:
        if options.json and report["results"]:
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    failed = sum(row["status"] != "ok" for row in report["results"])
    slower = sum(row["status"] == "ok" and row["ratio_ci95"][0] > options.most for row in report["results"])
    print(f"{len(report['results']) - failed} compared, {slower} slower, {failed} failed")
    sys.exit(1 if slower or failed or not report["results"] else 0)


if __name__ == "__main__":
    main()
