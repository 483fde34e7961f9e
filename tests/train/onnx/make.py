#!/usr/bin/env python3
"""Makes the files beside it: small networks as PyTorch exports them, with what they give for one image.

    make.py        needs PyTorch; the files' bits depend on its version

Weights, images and everything between them are small whole numbers or halves of them, so that every order of sums gives the same
bits: NAME.txt has the image's numbers in a line, and the outputs in another.
"""
import pathlib

import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).parent


class Plain(nn.Module):
    """Convolution, ReLU, pooling, and two fully connected layers."""

    shape = (1, 8, 8)

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 3, 3, stride=2), nn.ReLU())
        self.classes = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.25), nn.Linear(6, 5))

    def forward(self, x):
        return self.classes(torch.flatten(self.features(x), 1))


class Block(nn.Module):
    """A residual block of He, Zhang, Ren and Sun; the shortcut has no parameters (option A)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.stride, self.more = stride, (outputs - inputs) // 2

    def forward(self, x):
        y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
        s = x if self.stride == 1 else functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more, self.more), "constant", 0)
        return functional.relu(y + s)


class Residual(nn.Module):
    shape = (3, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4)
        self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
        self.classes = nn.Linear(8, 5)

    def forward(self, x):
        x = self.blocks(functional.relu(self.norm(self.conv(x))))
        x = functional.avg_pool2d(x, int(x.size(3)))
        return self.classes(x.view(x.size(0), -1))


class Mean(nn.Module):
    """The mean of all pixels by ReduceMean, a matrix product without a bias, and shares."""

    shape = (2, 4, 4)

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, bias=False)
        self.classes = nn.Parameter(torch.zeros(3, 4))
        self.gives_shares = True

    def forward(self, x):
        logits = torch.mean(torch.relu(self.conv(x)), (2, 3)) @ self.classes
        return functional.softmax(logits, 1) if self.gives_shares else logits


def fill(network, generator):
    """Whole numbers from -1 to 1, and norms that subtract one and divide by one."""
    for name, tensor in network.state_dict().items():
        if name.endswith("running_var"):
            tensor.fill_(1 - 1e-5)
        elif tensor.dtype == torch.float32:
            tensor.copy_(torch.randint(-1, 2, tensor.shape, generator=generator))


def main():
    for name, network in (("plain", Plain()), ("residual", Residual()), ("mean", Mean())):
        generator = torch.Generator().manual_seed(3)
        fill(network, generator)
        network.eval()
        image = torch.randint(0, 4, (1, *network.shape), generator=generator).float()
        exports = {name: {}}
        if name == "residual":
            exports["residual-folded"] = {"training": torch.onnx.TrainingMode.EVAL}
        for file, options in exports.items():
            torch.onnx.export(network, image, str(HERE / f"{file}.onnx"), opset_version=13, input_names=["image"], output_names=["classes"],
                              **{"training": torch.onnx.TrainingMode.PRESERVE, "dynamic_axes": {"image": {0: "n"}, "classes": {0: "n"}}, **options})
        network.gives_shares = False  # its txt has what comes into Softmax
        with torch.no_grad():
            outputs = network(image)
        (HERE / f"{name}.txt").write_text("\n".join(" ".join(f"{float(one):g}" for one in of.flatten()) for of in (image, outputs)) + "\n")


if __name__ == "__main__":
    main()
