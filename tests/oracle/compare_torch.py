#!/usr/bin/env python3
"""Compares `omniconv run` with PyTorch: values and gradients of random layers, each pass, layout and type.

    compare_torch.py OMNICONV [--device DEVICE] [--layers N]

PyTorch computes in double precision, gradients by its autograd. Every element must lie within the bound of docs/arithmetic.md for
chains of all terms: (L / 2 + 3) * epsilon * sum |a * b|, and half a unit in the last place of what is stored. Integers must be equal.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch

EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-23, "bf16": 2.0**-23}
STORED = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}  # relative rounding of what is stored
FILES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.float32}


class Layer:
    """A random problem: its text, and how PyTorch says the same."""

    def __init__(self, choose, types):
        self.type = choose.choice(types)
        self.nhwc = choose.random() < 0.5
        self.flip = choose.random() < 0.2
        self.groups = choose.choice([1, 1, 2, 3])
        self.n, self.c, self.k = choose.randint(1, 3), self.groups * choose.randint(1, 5), self.groups * choose.randint(1, 6)
        self.r, self.s = choose.randint(1, 4), choose.randint(1, 4)
        self.stride = (choose.randint(1, 3), choose.randint(1, 3))
        self.dilation = (choose.randint(1, 2), choose.randint(1, 2))
        self.pads = [choose.randint(0, 2) for _ in range(4)]  # top, bottom, left, right
        self.h = choose.randint(self.dilation[0] * (self.r - 1) + 1, 12)
        self.w = choose.randint(self.dilation[1] * (self.s - 1) + 1, 40)

    def text(self, direction):
        top, bottom, left, right = self.pads
        words = [direction, self.type, "nhwc" if self.nhwc else "nchw"] + (["flip"] if self.flip else [])
        return " ".join(words) + (
            f" n{self.n}c{self.c}h{self.h}w{self.w}k{self.k}r{self.r}s{self.s}pt{top}pb{bottom}pl{left}pr{right}"
            f"uh{self.stride[0]}uw{self.stride[1]}dh{self.dilation[0]}dw{self.dilation[1]}g{self.groups}")

    def convolve(self, x, w):
        top, bottom, left, right = self.pads
        padded = torch.nn.functional.pad(x, (left, right, top, bottom))
        return torch.nn.functional.conv2d(padded, w.flip(2, 3) if self.flip else w, stride=self.stride,
                                          dilation=self.dilation, groups=self.groups)

    def three(self, x, w, dy):
        """y, dx, dw."""
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = self.convolve(x, w)
        y.backward(dy)
        return y.detach(), x.grad, w.grad

    def stored(self, tensor):
        """As the layout has it, in the type of files."""
        array = tensor.permute(0, 2, 3, 1) if self.nhwc else tensor
        return np.ascontiguousarray(array.numpy().astype(FILES[self.type]))

    def loaded(self, array):
        tensor = torch.from_numpy(array.astype(np.float64))
        return tensor.permute(0, 3, 1, 2) if self.nhwc else tensor


def rounded(tensor, kind):
    """Values that the type holds."""
    to = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}[kind]
    return tensor.to(to).to(torch.float64)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def compare(layer, arguments, folder, integers, generator):
    shape_y = layer.convolve(torch.zeros(layer.n, layer.c, layer.h, layer.w, dtype=torch.float64),
                             torch.zeros(layer.k, layer.c // layer.groups, layer.r, layer.s, dtype=torch.float64)).shape
    def fresh(shape):
        if integers:
            return torch.randint(-3, 4, shape, generator=generator).to(torch.float64)
        return rounded(torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1, layer.type)
    x, w = fresh((layer.n, layer.c, layer.h, layer.w)), fresh((layer.k, layer.c // layer.groups, layer.r, layer.s))
    dy = fresh(shape_y)
    values, magnitudes = layer.three(x, w, dy), layer.three(x.abs(), w.abs(), dy.abs())
    terms = (layer.c // layer.groups * layer.r * layer.s, layer.k // layer.groups * layer.r * layer.s,
             layer.n * shape_y[2] * shape_y[3])
    files = {"x": x, "w": w, "dy": dy}
    for name, tensor in files.items():
        np.save(folder / f"{name}.npy", layer.stored(tensor))
    passes = {"fwd": ("x", "w"), "bwd_data": ("w", "dy"), "bwd_filter": ("x", "dy")}
    worst = 0.0
    for (direction, inputs), value, magnitude, length in zip(passes.items(), values, magnitudes, terms):
        command = [arguments.omniconv, "run", layer.text(direction), "--device", arguments.device, "--quiet", "-o", str(folder / "out.npy")]
        for name in inputs:
            command += [f"--{name}", str(folder / f"{name}.npy")]
        run(command)
        found = layer.loaded(np.load(folder / "out.npy"))
        if found.shape != value.shape:
            sys.exit(f"{layer.text(direction)}: shape {tuple(found.shape)}, not {tuple(value.shape)}")
        error = (found - value).abs()
        allowed = STORED[layer.type] * value.abs() + (2.0**-25 if layer.type == "f16" else 0)
        if not integers:
            allowed = allowed * (1 + 2.0**-10) + (length / 2 + 3) * EPSILON[layer.type] * magnitude
        if bool((error > allowed).any()):
            sys.exit(f"{layer.text(direction)}: an element differs by {float((error - allowed).max()):g} more than may be")
        worst = max(worst, float((error / (allowed + 1e-300)).max()))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int, default=40)
    arguments = parser.parse_args()
    # f64 is the CPU's alone.
    types = ["f32", "f32", "f64", "f16", "bf16"] if arguments.device == "cpu" else ["f32", "f32", "f16", "bf16"]
    choose, generator, worst = random.Random(5), torch.Generator().manual_seed(5), 0.0
    with tempfile.TemporaryDirectory() as name:
        for number in range(arguments.layers):
            worst = max(worst, compare(Layer(choose, types), arguments, pathlib.Path(name), number % 2 == 0, generator))
    print(f"{arguments.layers} layers, three passes each: equal to PyTorch {torch.__version__} within the bound; the largest share of it: {worst:.2f}")


if __name__ == "__main__":
    main()
