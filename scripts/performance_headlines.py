"""The short tables of docs/performance.md and README.md: single results out of reports, chosen in pages.json."""
import re

from performance_layers import NAMES

# Bytes of an element, and the multiply-adds of an output element that weights of a kind allow (docs/cli.md, `floor_ms`).
BYTES = {"u8": 1, "u16": 2, "s16": 2, "f16": 2, "s32": 4, "f32": 4, "f64": 8}


def filter_extents(problem):
    """The extents of a filter's problem text by their letters."""
    return {letter: int(value) for letter, value in re.findall(r"([hwcrs])(\d+)", problem.split()[2])}


def allowed_multiply_adds(problem):
    extents, kernel = filter_extents(problem), re.search(r"kernel:(\w+)", problem)
    rows, columns = extents["r"], extents["s"]
    of_rank_one = rows + columns
    return {"gaussian": of_rank_one, "box": 4, "equal": 4, "sobel": 2 * of_rank_one}.get(kernel[1] if kernel else "", rows * columns)


def filter_floor_ms(problem, peak_tflops, peak_gbps):
    """Each element read once and written once, or the multiply-adds, whichever takes longer."""
    extents = filter_extents(problem)
    elements = extents["h"] * extents["w"] * extents.get("c", 1)
    read, _, written = problem.split()[1].partition(">")  # both types are one, or "u8>f32"
    memory = elements * (BYTES[read] + BYTES[written or read]) / (peak_gbps * 1e6)
    return max(memory, elements * 2 * allowed_multiply_adds(problem) / (peak_tflops * 1e9))


def key(report, result):
    """What names a result within its report."""
    schema = report["schema"]
    if schema == "omniconv-files/1":
        return f"{result['format']}, {result['kernel']}"
    if schema == "omniconv-peers/1":
        return f"filter2d u8 h{result['side']}w{result['side']}c{result['channels']}r{result['size']}s{result['size']}"
    if schema == "omniconv-huge/1":
        return result["run"]
    return result["problem"].split(' "')[0]


def find(name, report, wanted):
    for result in report["results"]:
        if key(report, result) == wanted and result.get("status", "ok") == "ok":
            return result
    raise SystemExit(f"pages.json: {name} has no result of '{wanted}'; name one that it has")


def share(report, result):
    if "roofline" in result:
        return result["roofline"]
    return filter_floor_ms(result["problem"], report["peak_tflops"], report["peak_gbps"]) / result["median_ms"]


def file_rate(report, program, result):
    return report["pixels"] / result["programs"][program]["median_seconds"] / 1e6


def filter_rate(result, milliseconds):
    extents = filter_extents(result["problem"])
    return extents["h"] * extents["w"] / milliseconds / 1e3


def peer_named(result, name):
    return next(peer for peer in result["peers"] if peer["name"] == name)


# What a column may show of a report and one of its results.
VALUES = {
    "ms": lambda report, result: f"{result['median_ms']:.3f}",
    "share": lambda report, result: f"{100 * share(report, result):.0f} %",
    "tflops": lambda report, result: f"{result['tflops']:.{1 if result['tflops'] >= 1 else 3}f}",
    "gflops": lambda report, result: f"{result['gflops']:.0f}",
    "onednn gflops": lambda report, result: f"{result['onednn_gflops']:.0f}",
    "mpixels": lambda report, result: f"{filter_rate(result, result['median_ms']):.0f}",
    "opencv": lambda report, result: f"`{result['peer']}`",
    "opencv mpixels": lambda report, result: f"{filter_rate(result, result['opencv_median_ms']):.0f}",
    "ratio": lambda report, result: f"{result['ratio']:.2f}",
    "ratio to CuPy": lambda report, result: f"{peer_named(result, 'CuPy')['ratio']:.1f}",
    "ratio to NPP": lambda report, result: f"{peer_named(result, 'NPP')['ratio']:.1f}",
    "ratio to CV-CUDA": lambda report, result: f"{peer_named(result, 'CV-CUDA')['ratio']:.1f}",
    "file mpixels": lambda report, result: f"{file_rate(report, 'omniconv', result):.0f}",
    "ratio to ImageMagick": lambda report, result: f"{file_rate(report, 'omniconv', result) / file_rate(report, 'ImageMagick', result):.1f}",
    "ratio to libvips": lambda report, result: f"{file_rate(report, 'omniconv', result) / file_rate(report, 'libvips integer', result):.1f}",
    "codec": lambda report, result: f"{100 * result['codec_share']:.0f} %",
    "peer ms": lambda report, result: f"{result['peers'][result['peer']]['median_ms']:.3f}",
    "nchw ms": lambda report, result: f"{result['own']['nchw']['median_ms']:.3f}",
    "nchw ratio": lambda report, result: f"{result['own']['nchw']['ratio']:.2f}",
    "nhwc ms": lambda report, result: f"{result['own']['nhwc']['median_ms']:.3f}",
    "nhwc ratio": lambda report, result: f"{result['own']['nhwc']['ratio']:.2f}",
    "seconds": lambda report, result: f"{result['seconds']:.0f}",
    "peak MB": lambda report, result: f"{result['peak_bytes'] / 2**20:.0f}",
}


def machine(report):
    device = report.get("device") or report["results"][0].get("device")
    return device["name"] if device and device.get("gpu", True) else f"CPU, {report.get('threads') or report['host']['threads']} threads"


def source(folder, name, report):
    return f"[{name}]({folder}/{name}): {machine(report)}, commit {report['commit']}, {report['date'][:10]}"


def section(folder, chosen, reports):
    """One table of performance.md, reports being in `folder` as seen from it: a row for each problem, a column for each value of a report."""
    columns = chosen["columns"]
    yield f"\n## {chosen['heading']}\n\n{chosen['text']}\n\n"
    yield f"| | {' | '.join(column['title'] for column in columns)} |\n| --- |{' --- |' * len(columns)}\n"
    for row in chosen["rows"]:
        cells = []
        for column in columns:
            # A row says by `without` which reports do not have it, so that no figure is missing unnoticed.
            if column["report"] in row.get("without", []):
                cells.append("")
                continue
            report = reports[column["report"]]
            result = find(column["report"], report, row["problem"])
            cells.append(VALUES[column["value"]](report, result))
        yield f"| {row['what']} | {' | '.join(cells)} |\n"
    names = dict.fromkeys(column["report"] for column in columns)
    yield "\nFrom " + "; ".join(source(folder, name, reports[name]) for name in names) + ".\n"


def beside(report, result, peer):
    """omniconv's figure, the peer's, and how many times as fast omniconv was in that run."""
    schema = report["schema"]
    if schema == "omniconv-compare/1":
        return (f"{filter_rate(result, result['median_ms']):.0f} Mpixel/s", f"OpenCV: {filter_rate(result, result['opencv_median_ms']):.0f}", result["ratio"])
    if schema == "omniconv-compare-conv2d/1":
        return f"{result['gflops']:.0f} GFLOP/s", f"oneDNN: {result['onednn_gflops']:.0f}", result["ratio"]
    if schema == "omniconv-compare-gemm/1":
        return f"{result['tflops']:.1f} TFLOP/s", f"CLBlast: {result['clblast_tflops']:.1f}", result["ratio"]
    if schema == "omniconv-convolutions/1":
        own = max(result["own"].values(), key=lambda one: one["ratio"])
        return f"{own['tflops']:.1f} TFLOP/s", f"{NAMES[result['peer'].split()[0]]}: {own['tflops'] / own['ratio']:.1f}", own["ratio"]
    if schema == "omniconv-files/1":
        ours, theirs = file_rate(report, "omniconv", result), file_rate(report, peer, result)
        return f"{ours:.0f} Mpixel/s", f"{peer.split()[0]}: {theirs:.0f}", ours / theirs
    if schema == "omniconv-peers/1":
        other = peer_named(result, peer)
        return f"{result['omniconv'][other['border']]['median_ms']:.2f} ms", f"{peer}: {other['median_ms']:.2f}", other["ratio"]
    raise SystemExit(f"pages.json: a report of the form {schema} has no peer; name one that compares")


def summary(rows, reports):
    """The one table of README.md."""
    yield "| | on | omniconv | beside | times as fast |\n| --- | --- | --- | --- | --- |\n"
    for row in rows:
        report = reports[row["report"]]
        ours, theirs, ratio = beside(report, find(row["report"], report, row["problem"]), row.get("peer"))
        yield f"| {row['what']} | {machine(report)} | {ours} | {theirs} | {ratio:.2f} |\n"
