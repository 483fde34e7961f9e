#!/usr/bin/env python3
"""scripts/performance-table.py refuses what does not fit together; its floor of a filter is the one that omniconv reports."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(__file__).resolve().parents[2]
script = source / "scripts" / "performance-table.py"
sys.path.insert(0, str(script.parent))
from performance_headlines import filter_floor_ms  # noqa: E402


def checked(change, status, *parts):
    """`change` gets the folder of a copy of tests/docs/reports; --check must then end so, and say `parts`."""
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "docs"
        shutil.copytree(source / "tests" / "docs", folder)
        change(folder / "reports")
        done = subprocess.run([sys.executable, script, "--check", folder / "reports"], capture_output=True, text=True, check=False)
        assert done.returncode == status and all(part in done.stderr for part in parts), done


def edit(name, edited):
    def change(reports):
        content = json.loads((reports / name).read_text())
        edited(content)
        (reports / name).write_text(json.dumps(content))
    return change


def without_marks(reports):
    (reports / ".." / "summary.md").write_text("# Summary\n")


checked(lambda reports: None, 0)
checked(edit("bench-gemm-and-filters.json", lambda report: report["results"][1].update(median_ms=0.003)), 1, "performance.md does not match")
checked(edit("compare-gemm.json", lambda report: report["results"][0].update(ratio=1.7)), 1, "all.md does not match")
checked(edit("compare-layers.json", lambda report: report["results"][1]["own"]["nhwc"].update(ratio=0.7)), 1, "all.md does not match")
checked(edit("compare-layers.json", lambda report: report["libraries"].update(cuDNN="9.1.0")), 1, "all.md does not match")
checked(edit("operations.json", lambda report: report["steps"][1].update(floor_by="bytes")), 1, "all.md does not match")
checked(edit("operations.json", lambda report: report["device"].update(launch_seconds=2e-6)), 1, "all.md does not match")
checked(edit("operations.json", lambda report: report["floors"].update(launches=3e-6)), 1, "all.md does not match")
checked(lambda reports: (reports / "all.md").unlink(), 1, "all.md does not match")
checked(lambda reports: shutil.copy(reports / "gpu-check.json", reports / "another.json"), 1, "another.json 0 times")
checked(lambda reports: (reports / "gpu-check.json").unlink(), 1, "gpu-check.json 1 times, and the file is not there")
checked(edit("pages.json", lambda pages: pages["headlines"][0]["rows"][0].update(problem="gemm f32 nn m1n1k1")), 1, "no result of 'gemm f32 nn m1n1k1'")
checked(edit("pages.json", lambda pages: pages["headlines"][1]["rows"][0].update(problem="n1c1h1w1k1r1s1")), 1, "no result of 'n1c1h1w1k1r1s1'")
checked(edit("pages.json", lambda pages: pages["summary"]["rows"][0].update(report="bench-conv.json", problem="bwd_filter n32c256h56w56k256r3s3p1")), 1, "has no peer")
checked(without_marks, 1, "summary.md has no marks")

compared = 0
for path in (source / "docs" / "performance").glob("*.json"):
    report = json.loads(path.read_text())
    if report.get("schema") != "omniconv-bench/1":
        continue
    for result in report["results"]:
        if result["problem"].startswith("filter2d"):
            floor = filter_floor_ms(result["problem"], report["device"]["peak_tflops"], report["device"]["peak_gbps"])
            assert abs(floor / result["floor_ms"] - 1) < 1e-9, (result["problem"], floor, result["floor_ms"])
            compared += 1
assert compared > 0
print(f"ok: {compared} floors")
