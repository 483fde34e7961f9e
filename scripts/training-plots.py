#!/usr/bin/python3
"""Draws docs/performance/training-curves.svg, losses by epoch, from the report that scripts/compare-training.py --accuracy wrote.

    scripts/training-plots.py [REPORT]    (docs/performance/h200-accuracies.json)

Needs Matplotlib, which scripts/setup.sh --bench installs.
"""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "omniconv"  # the same names in every run
import matplotlib.pyplot as plt

folder = pathlib.Path(__file__).resolve().parent.parent / "docs/performance"


def main():
    report = json.loads((pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "h200-accuracies.json").read_text())
    rows = report["rows"]
    figure, all_axes = plt.subplots(1, len(rows), figsize=(3.4 * len(rows), 3), squeeze=False)
    for axes, row in zip(all_axes[0], rows):
        for seed, curve in zip(row["seeds"], row["curves"]):
            epochs, losses = zip(*curve)
            axes.plot(epochs, losses, marker="." if len(epochs) < 20 else None, linewidth=1, label=f"seed {seed}")
        axes.set_title(f"{row['model']}, {row['dataset']}", fontsize=10)
        axes.set_xlabel("epoch")
        axes.set_yscale("log")
        axes.grid(alpha=0.3, which="both")
    all_axes[0][0].set_ylabel("mean loss of the training's images")
    all_axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "training-curves.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
