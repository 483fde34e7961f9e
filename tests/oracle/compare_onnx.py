#!/usr/bin/env python3
"""Compares networks of `omniconv export` in ONNX Runtime with `omniconv predict`.

    compare_onnx.py OMNICONV [--device DEVICE]

Networks come from a step of training on a set that is made here. First with parameters that are replaced by whole numbers, for
which every sum is below 2^24 and so exact in any order: the logits must be the same bits. Then, of a small one, with those of the
training: an output of n products lies within (n + 1) 2^-24 (1 + ...) times the sum of their magnitudes of the real one, and what came in
wrong goes on by the magnitudes of the weights; twice that is between the two programs. Exit status 77 where ONNX Runtime is missing.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}: scripts/setup.sh --tests fetches it")
    sys.exit(77)
import cv2
import numpy as np
import torch
from torch.nn import functional

UNIT = 2.0**-24
MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
SMALL = "input 1 28 28\nconv 8 3x3 pad 1\nrelu\nmaxpool 2x2\ndense 10\n"


def run(arguments, *words):
    done = subprocess.run([arguments.omniconv, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"omniconv {' '.join(words)}\n{done.stdout}{done.stderr}")


def put_set(folder, shape, numbers):
    """Twelve images for training and ten for the test, of noise."""
    folder.mkdir(exist_ok=True)
    if shape == MNIST:
        for part, count in (("train", 12), ("t10k", 10)):
            pixels = numbers.integers(0, 256, count * 28 * 28, np.uint8)
            (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + pixels.tobytes())
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, count) + bytes(i % 10 for i in range(count)))
    else:
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            records = b"".join(bytes([i % 10]) + numbers.integers(0, 256, 3072, np.uint8).tobytes() for i in range(12))
            (folder / name).write_bytes(records)


class Checkpoint:
    """The files of a checkpoint, read and written."""

    def __init__(self, folder):
        self.json_path = sorted(folder.glob("step-*.json"))[-1]
        self.tensor_path = self.json_path.with_suffix(".safetensors")
        self.json = json.loads(self.json_path.read_text())
        data = self.tensor_path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        self.header, self.begin, self.data = json.loads(data[8:8 + length]), 8 + length, bytearray(data)

    def names(self):
        return [name for name in self.header if name.startswith("layers.")]

    def tensor(self, name):
        first, last = self.header[name]["data_offsets"]
        return np.frombuffer(self.data, np.float32, (last - first) // 4, self.begin + first).reshape(self.header[name]["shape"])

    def set(self, name, values):
        self.tensor(name)[...] = values

    def save(self):
        self.tensor_path.write_bytes(self.data)
        checksum = 0xCBF29CE484222325  # FNV-1a
        for byte in self.data:
            checksum = (checksum ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        self.json["tensors_checksum"] = f"{checksum:016x}"
        self.json_path.write_text(json.dumps(self.json))


def make_whole(checkpoint, numbers):
    """Few products an output, by 1 or -1, one alone in deep networks; norms that divide by 1; pixels as they are in the file."""
    taps = 1 if len(checkpoint.names()) > 20 else 3
    for name in checkpoint.names():
        shape = checkpoint.tensor(name).shape
        if name.endswith("running_var"):
            values = np.float32(1 - 1e-5)
        elif name.endswith("weight") and len(shape) == 4:
            values = np.zeros((shape[0], int(np.prod(shape[1:]))))
            for row in values:
                row[numbers.choice(row.size, taps, replace=False)] = numbers.choice([-1, 1], taps)
            values = values.reshape(shape)
        elif name.endswith("weight"):
            values = numbers.choice([-1, 1], shape)
        else:
            values = numbers.integers(-1, 2, shape)
        checkpoint.set(name, values)
    checkpoint.json["mean"] = [0.0] * len(checkpoint.json["mean"])
    checkpoint.json["deviation"] = [1 / 255] * len(checkpoint.json["mean"])
    checkpoint.save()


def stride_of(words):
    return int(words[words.index("stride") + 1]) if "stride" in words else 1


def layers_of(checkpoint):
    return [line.split() for line in checkpoint.json["model"].splitlines()[1:]]


def largest_sum(checkpoint, images):
    """Of magnitudes, in any layer: with it every sum of whole numbers, in any order, is exact below 2^24."""
    x, largest, marks, number, scale = torch.from_numpy(images).double(), 0.0, {}, 0, 1
    for words in layers_of(checkpoint):
        def tensor(which):
            return torch.from_numpy(checkpoint.tensor(f"layers.{number}.{which}").copy()).double().abs()
        if words[0] == "mark":
            marks[words[1]] = x
            continue
        if words[0] == "conv":
            pad = int(words[words.index("pad") + 1]) if "pad" in words else 0
            x = functional.conv2d(x, tensor("weight"), None if "nobias" in words else tensor("bias"), stride_of(words), pad)
        elif words[0] == "dense":
            x = functional.conv2d(x, tensor("weight"), scale * tensor("bias"))
        elif words[0] == "batchnorm":
            x = x + (tensor("running_mean") + tensor("bias")).view(1, -1, 1, 1)
        elif words[0] == "maxpool":
            x = functional.max_pool2d(x, 2)
        elif words[0] == "avgpool":  # numbers behind it are parts of whole ones: so many times themselves
            scale = x.shape[2] * x.shape[3]
            x = x.sum((2, 3), keepdim=True)
        elif words[0] == "add":
            x = x + marks[words[1]].amax()
        largest, number = max(largest, float(x.max())), number + 1
    return largest


def small_bound(checkpoint, x):
    """Of SMALL: the real outputs, and how far from them an order of sums may end."""
    def gamma(count):
        return count * UNIT / (1 - count * UNIT)
    def tensor(name):
        return torch.from_numpy(checkpoint.tensor(f"layers.{name}").copy()).double()
    x = torch.from_numpy(x).double()
    w, bias = tensor("0.weight"), tensor("0.bias")
    y = functional.conv2d(x, w, bias, padding=1)
    error = gamma(w[0].numel() + 1) * functional.conv2d(x.abs(), w.abs(), bias.abs(), padding=1)
    y, error = functional.max_pool2d(torch.relu(y), 2), functional.max_pool2d(error, 2)  # neither makes errors larger
    w, bias = tensor("3.weight"), tensor("3.bias")
    more = functional.conv2d(error, w.abs())
    sums = functional.conv2d(y.abs() + error, w.abs(), bias.abs())
    return functional.conv2d(y, w, bias).flatten(1).numpy(), (more + gamma(w[0].numel() + 1) * sums).flatten(1).numpy()


def compare(arguments, folder, model, shape, whole, numbers):
    put_set(folder / ("mnist" if shape == MNIST else "cifar-10-batches-bin"), shape, numbers)
    saved = folder / "saved"
    run(arguments, "train", model, "--data", str(folder), "--epochs", "1", "--batch", "6", "--train-size", "12", "--test-size", "2", "--device", "cpu",
        "--quiet", "--checkpoint", str(saved))
    checkpoint = Checkpoint(saved)
    if whole:
        make_whole(checkpoint, numbers)
    images = numbers.integers(0, 4 if whole else 256, (3, *shape), np.uint8)
    paths = []
    for i, image in enumerate(images):
        paths.append(str(folder / f"{i}.png"))
        cv2.imwrite(paths[-1], image.transpose(1, 2, 0)[:, :, ::-1] if shape[0] == 3 else image[0])
    run(arguments, "export", str(saved), "--onnx", str(folder / "net.onnx"))
    run(arguments, "predict", str(saved), *paths, "--device", arguments.device, "--solver", "conv2d=conv2d/direct", "--quiet", "--json",
        str(folder / "found.json"))
    ours = np.array([one["logits"] for one in json.loads((folder / "found.json").read_text())["images"]], np.float32)
    mean, deviation = (np.array(checkpoint.json[name]).reshape(1, -1, 1, 1) for name in ("mean", "deviation"))
    standardised = ((images / 255 - mean) / deviation).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(folder / "net.onnx"), options, providers=["CPUExecutionProvider"])
    theirs = session.run(["logits"], {"input": standardised})[0]
    name = pathlib.Path(model).stem
    if len({tuple(row) for row in ours.tolist()}) != len(ours) or not np.abs(ours).max() > 0:
        sys.exit(f"{name}: its images give the same logits: nothing is tested")
    if whole:
        if not np.array_equal(standardised, images):
            sys.exit(f"{name}: pixels are not whole numbers")
        largest = largest_sum(checkpoint, standardised)
        if largest >= 2**24:
            sys.exit(f"{name}: sums up to {largest:g} are not exact")
        if not np.array_equal(ours, theirs):
            sys.exit(f"{name}: logits of whole numbers differ:\n{ours}\n{theirs}")
        print(f"{name}: the same bits, of sums up to {largest:g}")
        return
    real, bound = small_bound(checkpoint, standardised)
    for what, found in (("predict's", ours), ("ONNX Runtime's", theirs)):
        share = float((np.abs(found - real) / bound).max())
        if not share <= 1:
            sys.exit(f"{name}: {what} logits lie {share:g} bounds from the real ones")
        print(f"{name}: {what} logits within {share:.2g} of the bound, {float(bound.max()):.2g} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    numbers = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "small.txt").write_text(SMALL)
        for model, shape, whole in (("mnist-conv", MNIST, True), ("cifar10-vgg1", CIFAR, True), ("resnet20", CIFAR, True),
                                    (str(root / "small.txt"), MNIST, False)):
            folder = root / pathlib.Path(model).stem
            folder.mkdir()
            compare(arguments, folder, model, shape, whole, numbers)


if __name__ == "__main__":
    main()
