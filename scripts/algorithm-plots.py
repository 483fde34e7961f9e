#!/usr/bin/python3
"""Plots of convolution's algorithms beside each other: their times by the filter's size, their errors beside their bounds.

    scripts/algorithm-plots.py [--measure NAME [OMNICONV]]

--measure runs omniconv (build/release/bin/omniconv by default) on the CPU and writes a report of that name, which says
the processor, to docs/algorithms/. Then, and always, every such report becomes plots beside it, and docs/algorithms.md
shows them all.
Needs Matplotlib, which scripts/setup.sh --bench installs.
"""
import json
import pathlib
import subprocess
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "omniconv"  # the same names in every run
import matplotlib.pyplot as plt

root = pathlib.Path(__file__).resolve().parent.parent
folder = root / "docs/algorithms"

PASSES = [("fwd", "forward"), ("bwd_data", "back to the data"), ("bwd_filter", "back to the filter")]
# What is timed: title, and problems by filter size.
SIZES = [1, 3, 5, 7, 9, 11, 15, 21, 31]
TIMED = [
    ("one channel of 512 × 512", "n1c1h512w512k1r{r}s{r}p{p}"),
    ("16 to 16 channels of 112 × 112", "n1c16h112w112k16r{r}s{r}p{p}"),
    ("64 to 64 channels of 56 × 56", "n1c64h56w56k64r{r}s{r}p{p}"),
    ("each of 64 channels of 112 × 112", "n1c64h112w112k64r{r}s{r}p{p}g64"),
]
# Whose errors: title, filter size, and solvers with their tunings.
CHANNELS = [1, 4, 16, 64, 256, 1024]
ERRORS = [
    ("3 × 3", "n1c{c}h24w24k16r3s3p1", [("blocked", ""), ("im2col_gemm", ""), ("shifted_panels", ""), ("direct", ""),
                                        ("winograd", "tile=2 tiles=256 steps=512"), ("winograd", "tile=4 tiles=256 steps=512"), ("fft", "")]),
    ("5 × 5", "n1c{c}h24w24k16r5s5p2", [("blocked", ""), ("im2col_gemm", ""), ("shifted_panels", ""), ("winograd", ""),
                                        ("fft", "")]),
]


def run(command, *options):
    """The report of an omniconv command on the CPU."""
    done = subprocess.run([command, *options, "--device", "cpu", "--quiet", "--json", "-"], capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"{' '.join(options)}: {done.stderr}")
    return json.loads(done.stdout)


def short(solver):
    return solver.split("/")[1]


def measure(name, command):
    times, errors = [], []
    for title, problem in TIMED:
        for r in SIZES:
            problems = [f"{pass_} {problem.format(r=r, p=r // 2)}" for pass_, _ in PASSES]
            report = run(command, "bench", *problems, "--solver", "all", "--budget", "0.15")
            for result in report["results"]:
                if result["status"] == "ok":
                    first = result["problem"].split()[0]
                    times.append({"title": title, "pass": first if first.startswith("bwd") else "fwd", "r": r,
                                  "solver": short(result["solver"]), "ms": result["median_ms"]})
        print(f"  timed {title}")
    for title, problem, solvers in ERRORS:
        for c in CHANNELS:
            for solver, tuning in solvers:
                for pass_, _ in PASSES:
                    options = ["--tuning", tuning] if tuning else []
                    report = run(command, "verify", f"{pass_} {problem.format(c=c)}", "--solver", f"conv2d/{solver}/cpu.1", *options)
                    for result in report["results"]:
                        if result["status"] == "ok":
                            errors.append({"title": title, "pass": pass_, "c": c, "solver": " ".join([solver, *tuning.split()[:1]]),
                                           "error": result["error"], "bound": result["bound"], "unit": result["unit"]})
        print(f"  checked {title}")
    head = {key: report[key] for key in ("commit", "date", "host")}
    (folder / f"{name}.json").write_text(json.dumps({**head, "times": times, "errors": errors}, indent=1) + "\n")


# A solver's colour and mark are its own in every plot.
NAMES = ["blocked", "im2col_gemm", "shifted_panels", "depthwise", "winograd", "winograd tile=4", "winograd tile=2", "fft", "direct"]


def style(solver):
    i = NAMES.index(solver) if solver in NAMES else len(NAMES)
    return {"color": f"C{i}", "marker": "osD^v<>Px*"[i], "markersize": 4, "label": solver}


def lines(axes, rows, x, y):
    for solver in sorted({row["solver"] for row in rows}, key=lambda name: NAMES.index(name) if name in NAMES else 99):
        of_solver = sorted((row[x], row[y]) for row in rows if row["solver"] == solver)
        axes.plot(*zip(*of_solver), **style(solver))
    axes.set_yscale("log")
    axes.grid(True, which="major", alpha=0.3)


def plot(path, title, rows, groups, x, y, labels):
    figure, all_axes = plt.subplots(len(groups), len(PASSES), figsize=(12, 3.2 * len(groups)), squeeze=False)
    for row, group in zip(all_axes, groups):
        for axes, (pass_, name) in zip(row, PASSES):
            lines(axes, [r for r in rows if r["title"] == group and r["pass"] == pass_], x, y)
            axes.set_title(f"{group}, {name}", fontsize=9)
            axes.set_xlabel(labels[0]), axes.set_ylabel(labels[1])
            if x == "c":
                axes.set_xscale("log", base=2)
    by_name = {}
    for axes in all_axes.flat:
        by_name.update(dict(zip(*reversed(axes.get_legend_handles_labels()))))
    figure.suptitle(title)
    figure.legend(by_name.values(), by_name.keys(), loc="lower center", ncol=len(by_name), frameon=False)
    figure.tight_layout(rect=(0, 0.02 + 0.03 / len(groups), 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def pages():
    text = ["# Algorithms beside each other\n\nMade by `scripts/algorithm-plots.py` from the reports in `docs/algorithms/`.\n"]
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        for row in report["errors"]:
            row["share"] = row["error"] / row["bound"]
        where = f"{report['host']['cpu']} ({path.stem}), {report['host']['threads']} threads"
        plot(folder / f"{path.stem}-times.svg", f"Time of a run, {where}", report["times"], [title for title, _ in TIMED], "r", "ms",
             ("filter's side", "ms"))
        plot(folder / f"{path.stem}-errors.svg", f"Largest error ÷ bound, {where}", report["errors"], [title for title, _, _ in ERRORS],
             "c", "share", ("channels of x", "error ÷ bound"))
        text.append(f"""
## {path.stem}

{where}, commit {report['commit']}, {report['date'][:10]}. nchw, f32, from [{path.name}](algorithms/{path.name}).

Where lines cross, the choice should change ([choosing](choosing.md)).

![times by filter size](algorithms/{path.stem}-times.svg)

Each solver's largest error on random numbers, divided by its own bound: how much of what is promised was needed. Bounds
are in norms of their own ([arithmetic](arithmetic.md)): those of `winograd` and `fft` allow for the largest input of a tile,
and random numbers come nowhere near it.

![errors beside bounds by channels](algorithms/{path.stem}-errors.svg)
""")
    (root / "docs/algorithms.md").write_text("".join(text))


if len(sys.argv) > 1:
    if sys.argv[1] != "--measure" or len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    measure(sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else str(root / "build/release/bin/omniconv"))
pages()
