#!/usr/bin/python3
"""Compares `omniconv conv` with NumPy in double precision: values and both gradients.

    compare_conv.py OMNICONV [--device DEVICE] [--problems FILE]

Needs numpy. Prints one line for each comparison; exits 1 on a mismatch.

Every pass is a product over slices of the padded input, one for each tap of the filter, in NumPy's own terms: the
forward pass adds up slices times weights, the gradient of the data adds to the slices, that of the filter sums over
them. A result must lie within (length of the sum / 2 + 4) units of fp32 of the sum of magnitudes, and half a unit of the
stored type.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

PASSES = ("fwd", "bwd_data", "bwd_filter")
MANTISSA = {"f64": 52, "f32": 23, "tf32": 23, "f16": 10, "bf16": 7}
FILES = {"f64": np.float64, "f16": np.float16}  # float32 of the others


class Problem:
    def __init__(self, line):
        self.text = line.split("#")[0].split('"')[0].strip()
        self.flip = "flip" in self.text.split()
        letters = dict.fromkeys(("ph", "pw"), 0) | dict.fromkeys(("uh", "uw", "dh", "dw", "g"), 1)
        for word in self.text.split():
            for name, value in re.findall(r"([a-z]+)(\d+)", word):
                both = {"p": ("ph", "pw"), "u": ("uh", "uw"), "d": ("dh", "dw")}.get(name, (name,))
                letters.update(dict.fromkeys(both, int(value)))
        self.l = letters
        self.pads = ((letters.get("pt", letters["ph"]), letters.get("pb", letters["ph"])),
                     (letters.get("pl", letters["pw"]), letters.get("pr", letters["pw"])))
        size = lambda extent, pads, taps, step, spread: (extent + sum(pads) - spread * (taps - 1) - 1) // step + 1
        self.p = size(letters["h"], self.pads[0], letters["r"], letters["uh"], letters["dh"])
        self.q = size(letters["w"], self.pads[1], letters["s"], letters["uw"], letters["dw"])

    def shapes(self):
        l = self.l
        return (l["n"], l["c"], l["h"], l["w"]), (l["k"], l["c"] // l["g"], l["r"], l["s"]), (l["n"], l["k"], self.p, self.q)

    def grouped(self, array, axis):
        g = self.l["g"]
        return array.reshape(array.shape[:axis] + (g, array.shape[axis] // g) + array.shape[axis + 1:])

    def padded(self, x):
        return self.grouped(np.pad(x, ((0, 0), (0, 0)) + self.pads), 1)  # n g c h w

    def taps(self):
        """Each tap of the filter, and the part of the padded input that it meets."""
        l = self.l
        for r in range(l["r"]):
            for s in range(l["s"]):
                top, left = (l["r"] - 1 - r, l["s"] - 1 - s) if self.flip else (r, s)
                rows = slice(top * l["dh"], top * l["dh"] + (self.p - 1) * l["uh"] + 1, l["uh"])
                columns = slice(left * l["dw"], left * l["dw"] + (self.q - 1) * l["uw"] + 1, l["uw"])
                yield r, s, (Ellipsis, rows, columns)

    def forward(self, x, w):
        x, w = self.padded(x), self.grouped(w, 0)
        y = sum(np.einsum("ngchw,gkc->ngkhw", x[part], w[..., r, s]) for r, s, part in self.taps())
        return y.reshape(self.shapes()[2])

    def backward_data(self, w, dy):
        dx, w, dy = self.padded(np.zeros(self.shapes()[0])), self.grouped(w, 0), self.grouped(dy, 1)
        for r, s, part in self.taps():
            dx[part] += np.einsum("ngkhw,gkc->ngchw", dy, w[..., r, s])
        (top, _), (left, _) = self.pads
        dx = dx.reshape((dx.shape[0], -1) + dx.shape[3:])
        return dx[:, :, top:top + self.l["h"], left:left + self.l["w"]]

    def backward_filter(self, x, dy):
        x, dy = self.padded(x), self.grouped(dy, 1)
        dw = self.grouped(np.zeros(self.shapes()[1]), 0)
        for r, s, part in self.taps():
            dw[..., r, s] = np.einsum("ngchw,ngkhw->gkc", x[part], dy)
        return dw.reshape(self.shapes()[1])

    def terms(self, name):
        l = self.l
        return {"fwd": l["c"] // l["g"] * l["r"] * l["s"], "bwd_data": l["k"] // l["g"] * l["r"] * l["s"],
                "bwd_filter": l["n"] * self.p * self.q}[name]


def rounded(values, kind):
    """What the type holds of these values, as doubles."""
    if kind in FILES:
        return values.astype(FILES[kind]).astype(np.float64)
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    lost = 23 - {"bf16": 7, "tf32": 10}.get(kind, 23)
    bits = (bits + (1 << lost >> 1) - (lost > 0) + ((bits >> np.uint64(lost)) & np.uint64(lost > 0))) >> np.uint64(lost) << np.uint64(lost)
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def compare(omniconv, device, problem, name, kind, layout, rng, folder):
    arrays = dict(zip(("x", "w", "dy"), (rng.uniform(-1, 1, shape).astype(FILES.get(kind, np.float32)) for shape in problem.shapes())))
    used = {"fwd": ("x", "w"), "bwd_data": ("w", "dy"), "bwd_filter": ("x", "dy")}[name]
    turn = (0, 2, 3, 1) if layout == "nhwc" else (0, 1, 2, 3)
    command = [omniconv, "conv", f"{name} {kind} {layout} {problem.text}", "-o", "-", "--quiet", "--device", device]
    for array in used:
        path = os.path.join(folder, array + ".npy")
        np.save(path, np.ascontiguousarray(arrays[array].transpose(turn)))
        command += ["--" + array, path]
    target = os.path.join(folder, "out.npy")
    with open(target, "wb") as file:
        subprocess.run(command, check=True, stdout=file)
    found = np.load(target)
    assert found.dtype == FILES.get(kind, np.float32), found.dtype
    found = found.astype(np.float64).transpose(np.argsort(turn))

    compute = {"fwd": problem.forward, "bwd_data": problem.backward_data, "bwd_filter": problem.backward_filter}[name]
    factors = [rounded(arrays[array], kind) for array in used]
    value, magnitude = compute(*factors), compute(*map(np.abs, factors))
    allowed = (problem.terms(name) / 2 + 4) * 2.0**-(52 if kind == "f64" else 23) * magnitude
    allowed += (np.abs(value) + allowed) * 2.0**-(MANTISSA[kind] + 1) + (2.0**-25 if kind == "f16" else 0)
    wrong = int((~(np.abs(found - value) <= allowed)).sum())
    share = np.max(np.abs(found - value) / np.where(allowed > 0, allowed, 1))
    print(f"{'FAIL' if wrong else 'ok  '} {command[2]}: {wrong} of {found.size} beyond the bound, the largest error {share:.2f} of it")
    return wrong > 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser()
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--problems", default=os.path.join(here, "../../data/problems/tails.txt"))
    options = parser.parse_args()
    rng, failures = np.random.default_rng(1), 0
    problems = [Problem(line) for line in open(options.problems) if line.split("#")[0].strip()]
    kinds = [("f32", "nchw")] + ([("f64", "nhwc")] if options.device == "cpu" else []) + [("f16", "nhwc"), ("bf16", "nchw"), ("tf32", "nhwc")]
    with tempfile.TemporaryDirectory() as folder:
        for i, problem in enumerate(problems):
            for name in PASSES:
                for kind, layout in (kinds[0], kinds[1 + i % (len(kinds) - 1)]):
                    failures += compare(options.omniconv, options.device, problem, name, kind, layout, rng, folder)
    print(f"{failures} comparisons failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
