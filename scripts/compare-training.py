#!/usr/bin/env python3
"""Trains omniconv's built-in models beside PyTorch's on the first CUDA device, and prints images a second of both.

  scripts/compare-training.py --omniconv build/release/bin/omniconv --data ~/data [--models mnist-big cifar10-vgg3] [--batches 64 1024]
                              [--json FILE]

PyTorch (fp32, TF32 off, cuDNN's own choice by measurement) gets its whole step as one CUDA graph: the batch gathered from standardised
images that lie on the device, forward, loss, backward, SGD with momentum. Both memory formats are tried and the faster one counts; a second
figure leaves the gathering out. omniconv's is that of its command, data and all. Both are the median of several epochs' speeds, and run one
after the other for each model and batch.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

INPUTS = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32), "resnet20": (3, 32, 32)}
IMAGES = {(1, 28, 28): 60000, (3, 32, 32): 50000}


def input_of(model):
    return INPUTS[re.split("-", model)[0]]


def layers_of(omniconv, model):
    """The model's lines as omniconv lists them."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([omniconv, "train", model, "--list-models", "--quiet", "--json", file.name], check=True)
        with open(file.name, encoding="utf-8") as listed:
            return [layer["layer"] for layer in json.load(listed)["models"][0]["layers"]]


def torch_model(torch, layers, shape):
    """The same layers, in order; a residual block is a module of its own."""
    nn = torch.nn
    made, channels, height, width = [], *shape
    flat = False
    for layer in layers:
        word, *rest = layer.split()
        options = {rest[i]: int(rest[i + 1]) for i in range(len(rest) - 1) if rest[i] in ("pad", "stride")}
        if word == "conv":
            filters, extent = int(rest[0]), int(rest[1].split("x")[0])
            pad, stride = options.get("pad", 0), options.get("stride", 1)
            made.append(nn.Conv2d(channels, filters, extent, padding=pad, stride=stride))
            channels, height, width = filters, (height + 2 * pad - extent) // stride + 1, (width + 2 * pad - extent) // stride + 1
        elif word in ("maxpool", "avgpool"):
            extent = int(rest[0].split("x")[0])
            made.append((nn.MaxPool2d if word == "maxpool" else nn.AvgPool2d)(extent, options.get("stride", extent)))
            height, width = (height - extent) // options.get("stride", extent) + 1, (width - extent) // options.get("stride", extent) + 1
        elif word == "dense":
            if not flat:
                made.append(nn.Flatten())
            flat = True
            made.append(nn.Linear(channels * height * width, int(rest[0])))
            channels, height, width = int(rest[0]), 1, 1
        elif word in ("relu", "sigmoid", "tanh"):
            made.append({"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}[word]())
        else:
            raise ValueError(f"no such layer for PyTorch here: {layer}")
    return nn.Sequential(*made)


def torch_speed(torch, layers, shape, batch, precision, channels_last, gathers, epochs):
    """Images a second of a whole step as one graph."""
    torch.manual_seed(1)
    images = IMAGES[shape]
    model = torch_model(torch, layers, shape).cuda()
    data = torch.randn(images, *shape, device="cuda")
    if channels_last:
        model, data = model.to(memory_format=torch.channels_last), data.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (images,), device="cuda")
    order = torch.randperm(images, device="cuda")[:batch]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    criterion = torch.nn.CrossEntropyLoss()
    static, static_labels = data[order].contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format), labels[order]

    def step():
        optimizer.zero_grad(set_to_none=True)
        x, wanted = (data.index_select(0, order), labels.index_select(0, order)) if gathers else (static, static_labels)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = criterion(model(x), wanted)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    steps = images // batch
    speeds = []
    for _ in range(epochs + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            graph.replay()
        torch.cuda.synchronize()
        speeds.append(steps * batch / (time.perf_counter() - begin))
    return statistics.median(speeds[1:])


def own_speed(arguments, model, batch, precision):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [arguments.omniconv, "train", model, "--data", arguments.data, "--batch", str(batch), "--epochs", str(arguments.epochs + 1), "--device",
                   arguments.device, "--quiet", "--json", file.name] + arguments.asking.split()
        if precision != "f32":
            command += ["--precision", precision]
        if input_of(model) == (1, 28, 28):
            command += ["--dataset", "mnist"]
        subprocess.run(command, check=True, timeout=300)
        with open(file.name, encoding="utf-8") as report:
            found = json.load(report)
    return statistics.median(epoch["images_per_second"] for epoch in found["epochs"][1:]), found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--omniconv", default="build/release/bin/omniconv")
    parser.add_argument("--data", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+", default=["mnist-big", "mnist-large", "cifar10-vgg3"])
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 1024])
    parser.add_argument("--precisions", nargs="+", default=["f32"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--asking", default="", help="more options of omniconv train")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows = []
    print(f"{'model':14} {'batch':>5} {'type':4} {'omniconv':>10} {'PyTorch':>10} {'no gather':>10} {'ratio':>6}", flush=True)
    for model in arguments.models:
        layers = layers_of(arguments.omniconv, model)
        for batch in arguments.batches:
            for precision in arguments.precisions:
                own, report = own_speed(arguments, model, batch, precision)
                peer = {gathers: max(torch_speed(torch, layers, input_of(model), batch, precision, last, gathers, arguments.epochs)
                                     for last in (False, True)) for gathers in (True, False)}
                torch.cuda.empty_cache()
                rows.append({"model": model, "batch": batch, "precision": precision, "omniconv": own, "pytorch": peer[True],
                             "pytorch_without_gathering": peer[False], "report": report})
                print(f"{model:14} {batch:5} {precision:4} {own:10.0f} {peer[True]:10.0f} {peer[False]:10.0f} {own / peer[True]:6.2f}", flush=True)
                if arguments.json:
                    with open(arguments.json + ".part", "w", encoding="utf-8") as file:
                        json.dump({"schema": "omniconv-training-peers/1", "device": torch.cuda.get_device_name(0), "pytorch": torch.__version__,
                                   "rows": rows}, file, indent=1)
                    os.replace(arguments.json + ".part", arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
