"""The tables of reports by scripts/compare-convolutions.py: a short one of means, then one of each pass."""
import re
import statistics

PASSES = {"forward": "", "backward-data": "bwd_data", "backward-filter": "bwd_filter", "product": "gemm"}
NAMES = {"cudnn": "cuDNN", "cublas": "cuBLAS", "pytorch": "PyTorch"}


def rows_of(report, which):
    rows = report["results"]
    if which in ("bwd_data", "bwd_filter", "gemm"):
        return [row for row in rows if row["problem"].split()[0] == which]
    return [row for row in rows if row["problem"].split()[0] not in PASSES.values()]


def layouts_of(report, which):
    """Those that any row of the pass was asked for, in one order."""
    return [layout for layout in ("nchw", "nhwc", "plain")
            if any(layout in row["own"] or f"omniconv {layout}" in row["missing"] for row in rows_of(report, which))]


def of_layout(layout):
    return "" if layout == "plain" else f", {layout}"


def ratios(report, which, layout):
    return [(row["own"][layout]["ratio"], row) for row in rows_of(report, which) if "ratio" in row["own"].get(layout, {})]


def short(row):
    """The problem without the words that its table says for all, and its name."""
    text = re.sub(r"^(bwd_data|bwd_filter|gemm) ", "", row["problem"])
    return f"`{text}`{' ' + row['name'] if row['name'] else ''}"


def best_peer(row):
    if "peer" not in row:
        return "", "none"
    library, layout = row["peer"].split()
    return f"{row['peers'][row['peer']]['median_ms']:.3f}", NAMES[library] + of_layout(layout)


def mean_cells(report, which, layout):
    found = ratios(report, which, layout)
    if not found:
        return "", "", ""
    worst, row = min(found, key=lambda one: one[0])
    return f"{statistics.geometric_mean(ratio for ratio, _ in found):.2f}", f"{worst:.2f}, {short(row)}", f"{sum(ratio >= 1 for ratio, _ in found)} of {len(found)}"


def means(report):
    yield "| pass | layout | geometric mean | worst | at least as fast |\n| --- | --- | --- | --- | --- |\n"
    for title, which in PASSES.items():
        for layout in layouts_of(report, which):
            yield f"| {title} | {layout} | {' | '.join(mean_cells(report, which, layout))} |\n"


def of_pass(report, title, which):
    layouts = layouts_of(report, which)
    head = "".join(f" omniconv{of_layout(layout)} (ms) | ratio |" for layout in layouts)
    yield f"\n### {report['type']}, {title}\n\n| problem | fastest peer (ms) | which |{head}\n| --- | --- | --- |{' --- | --- |' * len(layouts)}\n"
    for row in rows_of(report, which):
        cells = [short(row), *best_peer(row)]
        for layout in layouts:
            own = row["own"].get(layout)
            cells += [f"{own['median_ms']:.3f}" if own else row["missing"].get(f"omniconv {layout}", ""), f"{own['ratio']:.2f}" if own and "ratio" in own else ""]
        yield f"| {' | '.join(cells)} |\n"
    for what, place in (("geometric mean", 0), ("worst", 1)):
        cells = [f"*{what}*", "", ""]
        for layout in layouts:
            cells += ["", mean_cells(report, which, layout)[place].split(",")[0]]
        yield f"| {' | '.join(cells)} |\n"


def layers(report):
    libraries = ", ".join(f"{name} {version}" for name, version in report["libraries"].items())
    earlier = report.get("peers_from")
    times_of_peers = f" The others' times are those of {earlier['date'][:10]} (commit {earlier['commit']})." if earlier else ""
    asking = f", `{report['asking']}`" if report.get("asking") else ""
    yield (f"## {report['type']} on {report['device']['name']}{asking}\n\nBeside {libraries or 'nothing'}; commit {', '.join(report.get('commits', [report['commit']]))}, {report['date'][:10]}, "
           f"driver {report['device']['driver']}; {report['device']['peak_tflops']:.1f} TFLOP/s of fp32 multiply-adds and {report['device']['peak_gbps']:.0f} GB/s of copying, "
           f"measured.{times_of_peers} The ratio is the fastest peer's time, in either layout, divided by omniconv's.\n\n")
    yield from means(report)
    for title, which in PASSES.items():
        if rows_of(report, which):
            yield from of_pass(report, title, which)
