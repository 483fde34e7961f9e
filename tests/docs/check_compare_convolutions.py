#!/usr/bin/env python3
"""scripts/compare-convolutions.py on the CPU, beside a stand-in for PyTorch: check_compare_convolutions.py OMNICONV"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

source = pathlib.Path(__file__).resolve().parents[2]
PROBLEMS = """# a comment
n1c4h9w8k6r3s3p1 "first"
n1c4h7w9k4r3s3pt1u2g2

gemm f32 tn m17n18k19batch2 "a product"
n1c4h9w8k6r3s3p1 "again"
"""


def run(folder, status, *options):
    command = [sys.executable, source / "scripts" / "compare-convolutions.py", "problems.txt", "--omniconv", sys.argv[1], "--device", "cpu", "--budget", "0.002", *options]
    environment = {**os.environ, "PYTHONPATH": str(source / "tests" / "docs" / "fake_torch"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done
    return done


def report(folder, name):
    return json.loads((folder / name).read_text())


with tempfile.TemporaryDirectory() as work:
    here = pathlib.Path(work)
    (here / "problems.txt").write_text(PROBLEMS)

    run(here, 0, "--json", "all.json", "--chunk", "1")
    whole = report(here, "all.json")
    rows = {row["problem"]: row for row in whole["results"]}
    assert len(rows) == 7, rows.keys()  # three passes of two problems, and a product
    assert whole["libraries"]["PyTorch"] == "0.0" and whole["device"]["id"] == "cpu" and whole["commit"], whole
    for text, row in rows.items():
        layouts = ["plain"] if text.startswith("gemm") else ["nchw", "nhwc"]
        assert list(row["own"]) == layouts, row
        library = "cublas" if text.startswith("gemm") else "cudnn"
        assert all("CUDA devices" in row["missing"][f"{library} {layout}"] for layout in layouts), row
        if "g2" in text:  # its paddings differ
            assert row["missing"]["pytorch nchw"] == "PyTorch has no paddings that differ" and not row["peers"], row
            continue
        assert row["peers"][row["peer"]]["median_ms"] == min(peer["median_ms"] for peer in row["peers"].values()), row
        assert all(own["ratio"] == row["peers"][row["peer"]]["median_ms"] / own["median_ms"] for own in row["own"].values()), row
    assert rows["n1c4h9w8k6r3s3p1"]["name"] == "first" and set(whole["means"]) == {"forward", "backward-data", "backward-filter", "product"}, whole

    # A report that lacks some goes on where it was: what is there stays as it is.
    part = {**whole, "results": [row for row in whole["results"] if row["line"].startswith("gemm")]}
    part["results"][0]["peers"].pop("pytorch plain")
    (here / "part.json").write_text(json.dumps(part))
    run(here, 0, "--json", "resumed.json", "--resume", "part.json")
    resumed = {row["problem"]: row for row in report(here, "resumed.json")["results"]}
    product = next(text for text in rows if text.startswith("gemm"))
    assert resumed.keys() == rows.keys() and resumed[product]["own"]["plain"]["median_ms"] == rows[product]["own"]["plain"]["median_ms"], resumed
    assert "pytorch plain" in resumed[product]["peers"], resumed[product]
    assert "resume it with --type f32" in run(here, 1, "--resume", "part.json", "--type", "f16").stderr

    # The peers of an earlier report, of a device of the same name.
    run(here, 0, "--json", "own.json", "--only-own", "all.json", "--passes", "fwd", "--layouts", "nhwc")
    own = report(here, "own.json")
    assert own["peers_from"]["report"] == "all.json" and own["peers_from"]["commit"] == whole["commit"], own
    forward = next(row for row in own["results"] if row["problem"] == "n1c4h9w8k6r3s3p1")
    assert list(forward["own"]) == ["nhwc"] and len(own["results"]) == 3, own
    assert all(peer["earlier"] and peer["median_ms"] == rows[forward["problem"]]["peers"][name]["median_ms"] for name, peer in forward["peers"].items()), forward
    (here / "other.json").write_text(json.dumps({**whole, "device": {**whole["device"], "name": "another"}}))
    assert "other.json is of another" in run(here, 1, "--only-own", "other.json").stderr

    # Cut short: what was found is there, and nothing half found.
    (here / "problems.txt").write_text("\n".join(f"n1c{c}h40w40k64r3s3p1" for c in range(1, 400)))
    run(here, 130, "--json", "short.json", "--seconds", "2", "--peers", "vendor", "--budget", "0.02", "--passes", "fwd", "--chunk", "1000")
    if (here / "short.json").exists():
        found = report(here, "short.json")["results"]
        assert len(found) < 399 and all(row["own"] or row["missing"] for row in found), found
print("ok")
