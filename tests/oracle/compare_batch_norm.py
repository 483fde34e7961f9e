#!/usr/bin/env python3
"""Compares `omniconv run "batch_norm ..."` with PyTorch: every pass of random layers, with and without relu, each layout and type.

    compare_batch_norm.py OMNICONV [--device DEVICE] [--layers N]

PyTorch computes in double precision, gradients by its autograd, from the mean and the deviation of its own batch. Every element must
lie within the bound of src/operations/batch_norm/direct/README.md, and half a unit in the last place of what is stored.
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
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
ROUNDINGS = 400  # that a sum passes, of these layers on any device


def rounded(tensor, kind):
    """Values that the type holds."""
    return tensor.to(TYPES[kind]).to(torch.float64)


class Layer:
    """A random layer: its text, its arrays, and the files that hold them."""

    def __init__(self, choose, generator, types, folder):
        self.folder, self.type = folder, choose.choice(types)
        self.numbers = "f64" if self.type == "f64" else "f32"
        self.nhwc, self.relu = choose.random() < 0.5, choose.random() < 0.5
        self.shape = [choose.randint(2, 5), choose.randint(1, 9), choose.randint(1, 9), choose.randint(1, 12)]
        self.epsilon, self.momentum = choose.choice([1e-5, 2.0**-7]), choose.choice([0.1, 0.5])
        channels = self.shape[1]

        def fresh(shape, kind, factor=1.0, more=0.0):
            return rounded((torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1) * factor + more, kind)
        self.x = rounded(fresh(self.shape, self.type) + torch.arange(channels).view(1, -1, 1, 1) % 3 * 4, self.type)
        self.dy = fresh(self.shape, self.type)
        self.gamma, self.beta = fresh(channels, self.numbers, 1, 1.5), fresh(channels, self.numbers)
        self.running_mean, self.running_var = fresh(channels, self.numbers), fresh(channels, self.numbers, 0.5, 1)

    def text(self, direction):
        n, c, h, w = self.shape
        words = ["batch_norm", direction, self.type, "nhwc" if self.nhwc else "nchw"] + (["relu"] if self.relu else [])
        return " ".join(words) + f" n{n}c{c}h{h}w{w}"

    def path(self, name):
        return str(self.folder / f"{name}.npy")

    def save(self, name, tensor):
        image = tensor.dim() == 4
        array = tensor.permute(0, 2, 3, 1) if image and self.nhwc else tensor
        np.save(self.path(name), np.ascontiguousarray(array.detach().numpy().astype(FILES[self.type if image else self.numbers])))

    def load(self, name):
        tensor = torch.from_numpy(np.load(self.path(name)).astype(np.float64))
        return tensor.permute(0, 3, 1, 2) if tensor.dim() == 4 and self.nhwc else tensor

    def run(self, arguments, direction, inputs, first, others, scalars=()):
        for name in inputs:
            self.save(name, getattr(self, name))
        command = [arguments.omniconv, "run", self.text(direction), "--device", arguments.device, "--quiet", "-o", self.path(first)]
        for name in [*inputs, *others]:
            command += [f"--{name}", self.path(name)]
        for name in scalars:
            command += ["--scalar", f"{name}={getattr(self, name)!r}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")

    def compare(self, direction, name, value, norm, constant):
        found, kind = self.load(name), self.type if value.dim() == 4 else self.numbers
        units = ((0 if direction == "inference" else ROUNDINGS) / 2 + constant) * EPSILON[self.type]
        allowed = STORED[kind] * value.abs() + (2.0**-25 if kind == "f16" else 0)
        allowed = allowed * (1 + 2.0**-8) + units * norm * 1.01
        error = (found - value).abs()
        if not bool((error <= allowed).all()):
            sys.exit(f"{self.text(direction)}: {name} differs by {float((error - allowed).max()):g} more than may be")
        return float((error / allowed).max())


def of_channel(numbers):
    return numbers.view(1, -1, 1, 1)


def mean_of(tensor):
    return tensor.mean((0, 2, 3))


def forward(layer, arguments):
    layer.run(arguments, "fwd", ["x", "gamma", "beta", "running_mean", "running_var"], "y", ["mean", "invstd"], ["epsilon", "momentum"])
    running_mean, running_var = layer.running_mean.clone(), layer.running_var.clone()
    x, gamma, beta = (tensor.clone().requires_grad_() for tensor in (layer.x, layer.gamma, layer.beta))
    before = torch.nn.functional.batch_norm(x, running_mean, running_var, gamma, beta, True, layer.momentum, layer.epsilon)
    y = torch.relu(before) if layer.relu else before
    mean, variance = mean_of(layer.x), layer.x.var((0, 2, 3), unbiased=False)
    invstd, count = 1 / torch.sqrt(variance + layer.epsilon), layer.x.numel() / layer.shape[1]
    distance = layer.x - layer.x[0, :, 0, 0].view(1, -1, 1, 1)
    near, square = mean_of(distance.abs()), mean_of(distance**2)
    off = 1 + 7 * square * invstd**2
    of_y = of_channel(layer.gamma.abs() * invstd) * (of_channel(mean.abs() / 10 + near) + (layer.x - of_channel(mean)).abs() * of_channel(off))
    kept = 1 - layer.momentum
    worst = [layer.compare("fwd", "y", y.detach(), of_y + of_channel(layer.beta.abs()), 5),
             layer.compare("fwd", "mean", mean, mean.abs() / 10 + near, 5),
             layer.compare("fwd", "invstd", invstd, invstd * off, 5),
             layer.compare("fwd", "running_mean", running_mean,
                           (kept * layer.running_mean).abs() + layer.momentum * (mean.abs() / 2 + near), 5),
             layer.compare("fwd", "running_var", running_var,
                           kept * layer.running_var + layer.momentum * 14 * square * count / (count - 1), 5)]
    return max(worst)


def inference(layer, arguments):
    layer.run(arguments, "inference", ["x", "gamma", "beta", "running_mean", "running_var"], "y", [], ["epsilon"])
    y = torch.nn.functional.batch_norm(layer.x, layer.running_mean, layer.running_var, layer.gamma, layer.beta, False, 0, layer.epsilon)
    scale = layer.gamma.abs() / torch.sqrt(layer.running_var + layer.epsilon)
    norm = of_channel(scale) * (layer.x - of_channel(layer.running_mean)).abs() + of_channel(layer.beta.abs())
    return layer.compare("inference", "y", torch.relu(y) if layer.relu else y, norm, 4)


def backward(layer, arguments):
    """By autograd of the formula with mean and invstd of the files, through which the gradient goes as if they were of the batch."""
    mean = rounded(mean_of(layer.x), layer.numbers)
    layer.mean, layer.invstd = mean, rounded(1 / torch.sqrt(layer.x.var((0, 2, 3), unbiased=False) + layer.epsilon), layer.numbers)
    layer.run(arguments, "bwd", ["x", "gamma", "beta", "mean", "invstd", "dy"], "dx", ["dgamma", "dbeta"])
    x, gamma, beta = (tensor.clone().requires_grad_() for tensor in (layer.x, layer.gamma, layer.beta))
    before = torch.nn.functional.batch_norm(x, None, None, gamma, beta, True, 0, layer.epsilon)
    (torch.relu(before) if layer.relu else before).backward(layer.dy)
    g = layer.dy * (before.detach() > 0) if layer.relu else layer.dy
    deviation, scale = (layer.x - of_channel(mean)).abs(), of_channel(layer.gamma.abs() * layer.invstd)
    products, invstd = mean_of(g.abs() * deviation), of_channel(layer.invstd)
    count = layer.x.numel() / layer.shape[1]
    # mean and invstd are rounded here, and not in PyTorch: relatively a unit of the mean's and of the deviation's.
    lost = of_channel(1 + mean.abs() * layer.invstd)
    norm = scale * (g.abs() + of_channel(mean_of(g.abs())) + deviation * invstd**2 * of_channel(products)) * lost
    worst = [layer.compare("bwd", "dx", x.grad, norm, 6),
             layer.compare("bwd", "dgamma", gamma.grad, products * count * layer.invstd + mean_of(g.abs()) * count * lost.view(-1), 6),
             layer.compare("bwd", "dbeta", beta.grad, mean_of(g.abs()) * count, 6)]
    return max(worst)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int, default=40)
    arguments = parser.parse_args()
    # f64 is the CPU's alone.
    types = ["f32", "f32", "f64", "f16", "bf16"] if arguments.device == "cpu" else ["f32", "f32", "f16", "bf16"]
    choose, generator, worst = random.Random(7), torch.Generator().manual_seed(7), 0.0
    with tempfile.TemporaryDirectory() as name:
        for _ in range(arguments.layers):
            layer = Layer(choose, generator, types, pathlib.Path(name))
            worst = max(worst, forward(layer, arguments), inference(layer, arguments), backward(layer, arguments))
    print(f"{arguments.layers} layers, three passes each: equal to PyTorch {torch.__version__} within the bound; the largest share of it: {worst:.2f}")


if __name__ == "__main__":
    main()
