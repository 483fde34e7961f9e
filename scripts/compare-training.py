#!/usr/bin/env python3
"""Trains omniconv's built-in models beside PyTorch's on the first CUDA device, and prints images a second of both.

  scripts/compare-training.py --omniconv build/release/bin/omniconv --data ~/data [--models mnist-big cifar10-vgg3] [--batches 64 1024]
                              [--device cpu --threads 2] [--json FILE]
  scripts/compare-training.py --omniconv … --data ~/data --accuracy [--models resnet20] [--json FILE]
  scripts/compare-training.py --omniconv … --data ~/data --devices cuda opencl [--models cifar10-vgg3] [--precisions f32 f16] [--json FILE]

PyTorch (fp32, TF32 off, cuDNN's own choice by measurement) gets its whole step as one CUDA graph: the batch gathered from standardised
images that lie on the device, forward, loss, backward, SGD with momentum. Both memory formats are tried and the faster one counts.
omniconv's is that of its command, data and all. Both are the median of several epochs' speeds, and run one after the other for each model and
batch. On the CPU PyTorch has no graphs: its steps are submitted one by one.

--devices trains omniconv's models on each of these devices, in turns: images a second, without PyTorch.

--accuracy trains omniconv's models alone, to their end, with three seeds each, and prints what they find in the images for the test.
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


# What is trained for its accuracy, and how.
TRAININGS = [("mnist-big", "mnist", []), ("mnist-conv", "fashion-mnist", []), ("cifar10-vgg3", "cifar-10", ["--epochs", "10"]),
             ("resnet20", "cifar-10", ["--epochs", "60", "--batch", "128", "--optimizer", "nesterov", "--rate", "0.1", "--schedule", "warm-up:5,cosine",
                                       "--l2", "5e-4", "--augment", "flip,crop4"])]
SEEDS = (1, 2, 3)
TURNS = 3  # of devices beside each other


def input_of(model):
    return INPUTS[re.split("-", model)[0]]


def text_of(omniconv, model):
    """The model as omniconv lists it."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([omniconv, "train", model, "--list-models", "--quiet", "--json", file.name], check=True)
        with open(file.name, encoding="utf-8") as listed:
            return json.load(listed)["models"][0]["text"]


def options_of(words):
    return {words[i]: int(words[i + 1]) for i in range(len(words) - 1) if words[i] in ("pad", "stride")}


def torch_layer(nn, line, shape):
    """The layer and the shape that it gives; None for one that the model does by itself."""
    channels, height, width = shape
    word, *rest = line.split()
    options = options_of(rest)
    if word in ("conv", "maxpool", "avgpool"):
        extent = int(rest[1 if word == "conv" else 0].split("x")[0])
        pad, stride = options.get("pad", 0), options.get("stride", 1 if word == "conv" else extent)
        after = tuple((x + 2 * pad - extent) // stride + 1 for x in (height, width))
        if word == "conv":
            return nn.Conv2d(channels, int(rest[0]), extent, padding=pad, stride=stride, bias="nobias" not in rest), (int(rest[0]), *after)
        return (nn.MaxPool2d if word == "maxpool" else nn.AvgPool2d)(extent, stride), (channels, *after)
    if word == "dense":
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, int(rest[0]))), (int(rest[0]), 1, 1)
    known = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "batchnorm": lambda: nn.BatchNorm2d(channels)}
    if word not in known:
        raise ValueError(f"no such layer for PyTorch here: {line}")
    return known[word](), shape


def torch_model(torch, text):
    """The model of a text; a shortcut is strided and padded with channels of zeros."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            lines = text.strip().split("\n")
            shape = tuple(int(number) for number in lines[0].split()[1:])
            self.work, shapes, layers = [], {}, []
            for line in lines[1:]:
                word, *rest = line.split()
                if word == "mark":
                    shapes[rest[0]] = shape
                elif word != "add":
                    layer, shape = torch_layer(torch.nn, line, shape)
                    self.work.append(("layer", len(layers)))
                    layers.append(layer)
                    continue
                else:
                    stride, before = -(-shapes[rest[0]][1] // shape[1]), (shape[0] - shapes[rest[0]][0]) // 2
                    behind = shape[0] - shapes[rest[0]][0] - before
                    rest += [stride, before, behind]
                self.work.append((word, *rest))
            self.layers = torch.nn.ModuleList(layers)

        def forward(self, x):
            marked = {}
            for what, of, *more in self.work:
                if what == "layer":
                    x = self.layers[of](x)
                elif what == "mark":
                    marked[of] = x
                else:
                    stride, before, behind = more
                    shortcut = marked[of]
                    if stride > 1 or before + behind > 0:
                        shortcut = torch.nn.functional.pad(shortcut[:, :, ::stride, ::stride], (0, 0, 0, 0, before, behind))
                    x = x + shortcut
            return x

    return Model()


def torch_speed(torch, text, shape, batch, precision, channels_last, arguments):
    """Images a second of a whole step, on CUDA as one graph."""
    torch.manual_seed(1)
    where = "cuda" if arguments.device == "cuda" else "cpu"
    images = min(IMAGES[shape], arguments.train_size or IMAGES[shape])
    model = torch_model(torch, text).to(where)
    data = torch.randn(images, *shape, device=where)
    if channels_last:
        model, data = model.to(memory_format=torch.channels_last), data.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (images,), device=where)
    order = torch.randperm(images, device=where)[:batch]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    criterion = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        x, wanted = data.index_select(0, order), labels.index_select(0, order)
        with torch.autocast(where, torch.bfloat16, enabled=precision == "bf16"):
            loss = criterion(model(x), wanted)
        loss.backward()
        optimizer.step()

    if where == "cuda":
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
    for _ in range(arguments.epochs + 1):
        if where == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            graph.replay() if where == "cuda" else step()  # pylint: disable=expression-not-assigned
        if where == "cuda":
            torch.cuda.synchronize()
        speeds.append(steps * batch / (time.perf_counter() - begin))
    return statistics.median(speeds[1:])


def trained(arguments, model, dataset, options, seed):
    """The report of a training."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([arguments.omniconv, "train", model, "--data", arguments.data, "--dataset", dataset, "--device", arguments.device, "--seed", str(seed),
                        "--quiet", "--json", file.name] + options, check=True, timeout=580)
        with open(file.name, encoding="utf-8") as report:
            return json.load(report)


def keep(path, json_text):
    """The file appears whole, and anew after each row."""
    if path:
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(json_text)
        os.replace(path + ".part", path)


def accuracies(arguments):
    rows = []
    print(f"{'model':14} {'set':14} {'accuracies':24} {'seconds':>8}", flush=True)
    for model, dataset, options in TRAININGS:
        if arguments.models and model not in arguments.models:
            continue
        reports = [trained(arguments, model, dataset, options, seed) for seed in SEEDS]
        rows.append({"model": model, "dataset": dataset, "options": " ".join(options), "epochs": len(reports[0]["epochs"]), "seeds": list(SEEDS),
                     "accuracies": [report["test"]["accuracy"] for report in reports],
                     "seconds": statistics.median(sum(epoch["seconds"] for epoch in report["epochs"]) for report in reports),
                     "curves": [[[epoch["epoch"], epoch["loss"]] for epoch in report["epochs"]] for report in reports]})
        print(f"{model:14} {dataset:14} {' '.join(f'{100 * one:.2f}' for one in rows[-1]['accuracies']):24} {rows[-1]['seconds']:8.1f}", flush=True)
        keep(arguments.json, json.dumps({"schema": "omniconv-accuracies/1", "commit": reports[0]["commit"], "date": reports[0]["date"],
                                         "device": reports[0]["device"], "rows": rows}, indent=1))
    return 0


def own_speed(arguments, model, batch, precision):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [arguments.omniconv, "train", model, "--data", arguments.data, "--batch", str(batch), "--epochs", str(arguments.epochs + 1), "--device",
                   arguments.device, "--quiet", "--json", file.name] + arguments.asking.split()
        if precision != "f32":
            command += ["--precision", precision]
        if arguments.train_size:
            command += ["--train-size", str(arguments.train_size), "--test-size", "100"]
        if arguments.threads:
            command += ["--threads", str(arguments.threads)]
        if input_of(model) == (1, 28, 28):
            command += ["--dataset", "mnist"]
        subprocess.run(command, check=True, timeout=300)
        with open(file.name, encoding="utf-8") as report:
            found = json.load(report)
    return statistics.median(epoch["images_per_second"] for epoch in found["epochs"][1:]), found


def by_device(arguments):
    """Images a second on each device, medians of several turns."""
    rows = []
    for model in arguments.models or ["mnist-big", "cifar10-vgg3"]:
        for batch in arguments.batches:
            for precision in arguments.precisions:
                speeds = {device: [] for device in arguments.devices}
                for _ in range(TURNS):
                    for arguments.device in arguments.devices:
                        speed, report = own_speed(arguments, model, batch, precision)
                        speeds[arguments.device].append(speed)
                medians = {device: statistics.median(found) for device, found in speeds.items()}
                rows.append({"model": model, "batch": batch, "precision": precision, "speeds": medians, "turns": speeds})
                print(f"{model:14} {batch:5} {precision:4} " + " ".join(f"{device} {speed:.0f}" for device, speed in medians.items()), flush=True)
                keep(arguments.json, json.dumps({"schema": "omniconv-training-devices/1", "commit": report["commit"], "date": report["date"],
                                                 "device": report["device"], "devices": arguments.devices, "rows": rows}, indent=1))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--omniconv", default="build/release/bin/omniconv")
    parser.add_argument("--data", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--accuracy", action="store_true", help="train to the end, and say what is found")
    parser.add_argument("--devices", nargs="+", help="omniconv's alone, beside each other")
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 1024])
    parser.add_argument("--precisions", nargs="+", default=["f32"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of both, on the CPU")
    parser.add_argument("--train-size", type=int, help="images of an epoch, where all of them take too long")
    parser.add_argument("--asking", default="", help="more options of omniconv train")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.accuracy:
        return accuracies(arguments)
    if arguments.devices:
        return by_device(arguments)
    import torch  # pylint: disable=import-outside-toplevel
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows = []
    print(f"{'model':14} {'batch':>5} {'type':4} {'omniconv':>10} {'PyTorch':>10} {'ratio':>6}", flush=True)
    for model in arguments.models or ["mnist-big", "mnist-large", "cifar10-vgg3", "resnet20"]:
        text = text_of(arguments.omniconv, model)
        for batch in arguments.batches:
            for precision in arguments.precisions:
                own, report = own_speed(arguments, model, batch, precision)
                peer = max(torch_speed(torch, text, input_of(model), batch, precision, last, arguments) for last in (False, True))
                if arguments.device == "cuda":
                    torch.cuda.empty_cache()
                rows.append({"model": model, "batch": batch, "precision": precision, "omniconv": own, "pytorch": peer})
                print(f"{model:14} {batch:5} {precision:4} {own:10.0f} {peer:10.0f} {own / peer:6.2f}", flush=True)
                keep(arguments.json, json.dumps({"schema": "omniconv-training-peers/1", "commit": report["commit"], "date": report["date"],
                                                 "device": report["device"], "threads": arguments.threads, "pytorch": torch.__version__, "rows": rows},
                                                indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
