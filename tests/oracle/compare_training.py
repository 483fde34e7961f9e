#!/usr/bin/env python3
"""Compares `omniconv train` with the same training in PyTorch: all that ten steps have changed.

    compare_training.py OMNICONV [--device DEVICE] [--batch N] [--models NAME,...] [--optimizers NAME,...] [--clip-norm N] [--json FILE] [--tensors]
    compare_training.py OMNICONV --faults ...

training_oracle.py draws the first weights, orders and augmentations by itself, and trains in float64 and in float32. omniconv may
deviate from float64 by LIMIT times what PyTorch's float32 does, and a rounding; and by what decisions are worth that float32 may make
otherwise (Oracle). With --faults the oracle is made wrong in one way after another, each of which must be found.

Models are `small`, built-in ones, and built-in ones with tanh in the place of ReLU: in "resnet20-tanh" nothing is decided, so that it
shows the least faults of gradients. Where decisions are worth more than PyTorch's own deviation, as in cifar10-vgg3, only faults are
seen that are worth more than they are.
"""
import argparse
import dataclasses
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch

from training_oracle import FAULTS, FAULTS_OF_CLIPPING, Images, Trained

# Every kind of layer but dropout, and every word of theirs.
SMALL = """input 3 32 32
conv 6 3x3 pad 1 stride 2 nobias
batchnorm
relu
mark a
conv 9 3x3 pad 1 stride 2 nobias
batchnorm epsilon 0.001 momentum 0.25
add a
relu
maxpool 3x3 stride 2
conv 8 2x1
tanh
avgpool 2x1
dense 13 nobias
sigmoid
dense 11
"""
MODELS = ["small", "mnist-medium", "mnist-conv", "cifar10-vgg1", "resnet20-tanh", "resnet20"]
OPTIMIZERS = ["sgd", "nesterov", "adam"]
LIMIT = 2  # times PyTorch's float32: of all tensors of a kind together
# And of a tensor by itself. The least have some ten numbers: of two norms of ten errors that are independent, normal and equally large,
# one is more than 6.7 times the other once in a million (F distribution of 10 and 10), and there are some hundreds of tensors.
LIMIT_OF_ONE = 8
ROUNDING = 2.0**-24  # of a number that is stored as f32, relatively
SUMS = "conv2d=conv2d/im2col_gemm"  # a solver that adds up the products themselves


@dataclasses.dataclass
class Case:
    """A training of ten steps: of two epochs each leaves out three images."""

    model: str
    optimizer: str
    batch: int
    clip_norm: float = 0  # 0: none
    seed: int = 5
    momentum: float = 0.9
    l2: float = 0.005

    def __post_init__(self):
        self.rate = 0.0001 if self.optimizer == "adam" else 0.001
        self.epochs = 2 if self.model in ("small", "mnist-conv") else 1
        self.images = 5 * self.batch + 3 if self.epochs == 2 else 10 * self.batch
        self.augment = "flip,crop4" if self.model in ("small", "cifar10-vgg1") else ""
        self.flip, self.shift = bool(self.augment), 4 if self.augment else 0


def made_images(count, shape):
    """Noise, and in it what makes a class: brighter rows of one channel."""
    generator = np.random.default_rng(5)
    labels = generator.integers(0, 10, count).astype(np.uint8)
    pixels = generator.integers(0, 200, (count, *shape)).astype(np.uint8)
    for image, label in zip(pixels, labels):
        image[label % shape[0], 2 * label:2 * label + 6] += 55
    return pixels, labels


def write_set(folder, shape, train, test):
    if shape[0] == 3:
        files = [("data_batch_1", train), ("test_batch", test)] + [(f"data_batch_{i}", test) for i in range(2, 6)]
        for name, (pixels, labels) in files:
            (folder / f"{name}.bin").write_bytes(np.concatenate([labels[:, None], pixels.reshape(len(labels), -1)], 1).tobytes())
        return
    for name, (pixels, labels) in [("train", train), ("t10k", test)]:
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, len(labels), *shape[1:]) + pixels.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, len(labels)) + labels.tobytes())


def read_tensors(path):
    """A safetensors file: eight bytes, how long the JSON is; the JSON; the numbers."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name not in ("__metadata__", "progress.losses"):
            first, last = entry["data_offsets"]
            found[name] = np.frombuffer(data[begin + first:begin + last], "<f4").reshape(entry["shape"]).astype(np.float64)
    return found


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def model_of(omniconv, name, folder):
    """What omniconv takes for the model, and the model's text."""
    built_in = name.removesuffix("-tanh")
    if name in ("small", built_in + "-tanh"):
        text = SMALL if name == "small" else model_of(omniconv, built_in, folder)[1].replace("relu", "tanh")
        (folder / "model.txt").write_text(text)
        return str(folder / "model.txt"), text
    return name, run([omniconv, "train", name, "--list-models", "--json", "-"])["models"][0]["text"]


def train(arguments, model, case, folder, more):
    """The tensors of omniconv's last checkpoint, and its report."""
    command = [arguments.omniconv, "train", model, "--data", str(folder), "--train-size", str(case.images), "--batch", str(case.batch),
               "--epochs", str(case.epochs), "--optimizer", case.optimizer, "--rate", str(case.rate), "--l2", str(case.l2),
               "--seed", str(case.seed), "--deterministic", "--device", arguments.device, "--json", "-", *more]
    command += [] if case.optimizer == "adam" else ["--momentum", str(case.momentum)]
    command += ["--augment", case.augment] if case.augment else []
    command += ["--clip-norm", str(case.clip_norm)] if case.clip_norm else []
    with tempfile.TemporaryDirectory() as kept:
        report = run(command + ["--checkpoint", kept])
        return read_tensors(sorted(pathlib.Path(kept).glob("*.safetensors"))[-1]), report


def growth_of(report):
    """How many times the error of a sum of products its solvers may make, in the mean over independent inputs: 1, or Winograd's.

    Of F(4 x 4, 3 x 3), y = A' ((G g) * (B' d)), each product by itself is rounded relatively. Of independent g and d that is, along one
    axis, the root of the mean over outputs p of the sum over points e of (A[e][p] |G[e]| |B[e]|)^2, over the square of what y is, 3.
    The other forms make less. docs/arithmetic.md has what it is at worst.
    """
    if not any(step["solver"].startswith("conv2d/winograd") for step in report["steps"]):
        return 1.0
    points = [0, 0.5, -0.5, 2, -2]
    mean = 0
    for e, p in enumerate(points + [None]):
        others = [q for i, q in enumerate(points) if i != e]
        a = [0, 0, 0, 1] if p is None else [p**i for i in range(4)]
        g = [0, 0, 1] if p is None else np.array([p**j for j in range(3)]) / np.prod([p - q for q in others])
        mean += np.mean(np.square(a)) * np.sum(np.square(g)) * np.sum(np.square(np.poly(others)))
    return mean / 3  # two axes, each of the root


class Oracle:
    """The training in float64, in float32, and once more in float64, where what float32 may decide otherwise is decided otherwise.

    A ReLU whose input is nearer to 0 than LIMIT times the deviation of PyTorch's float32 in this layer and step, and a window of whose
    two largest the difference is, are open: whether a gradient passes is a matter of rounding. What that is worth the third run finds, and
    LIMIT times that is allowed, since what single decisions do may cancel in part where all are made otherwise.
    """

    def __init__(self, text, case, images, fault):
        self.reference, self.single = (Trained(text, dtype, case, fault) for dtype in (torch.float64, torch.float32))
        self.other = Trained(text, torch.float64, case, fault) if "relu" in text or "maxpool" in text else self.reference
        self.open, self.slopes = 0, {}
        for pixels, labels in images.batches(case):
            pairs = list(zip(self.reference.forward(pixels, labels), self.single.forward(pixels, labels)))
            turned = [(one.abs() <= LIMIT * (one - other).abs().max()) & (one != 0) for one, other in pairs]
            self.open += sum(int(one.sum()) for one in turned)
            if self.other is not self.reference:
                self.other.forward(pixels, labels, turned)
            for trained in dict.fromkeys(self.runs()):
                trained.update()
            if case.optimizer == "adam":
                self.add_slopes()

    def runs(self):
        return self.reference, self.single, self.other

    def add_slopes(self):
        """A step of Adam's changes with the gradient by 1 / sqrt(v), which has no bound: deviations are divided by the sum of steps."""
        for name, parameter in self.reference.network.parameters.items():
            state = self.reference.optimizer.state[parameter]
            root = (state["exp_avg_sq"] / (1 - 0.999 ** int(state["step"]))).sqrt() + 1e-8
            self.slopes[name] = self.slopes.get(name, 0) + 1 / root.numpy()


def kinds_of(names):
    """Those of a kind together, then each by itself."""
    together = {}
    for name in names:
        begin = name.split(".")[0]
        kind = "parameters" if begin == "layers" else "first moments" if begin == "momentum" else "second moments"
        together.setdefault("running moments" if ".running_" in name else kind, []).append(name)
    return [(kind, own, False) for kind, own in together.items()] + [(name, [name], True) for name in names]


def row_of(kind, norm, deviations, rounding, limit, is_one=False):
    ours, single, decided = deviations
    row = {"kind": kind, "norm": norm, "omniconv": ours, "pytorch": single, "decisions": decided, "rounding": rounding, "limit": limit,
           "share": ours / (limit * single + LIMIT * decided + rounding + 1e-300), "is_one": is_one}
    return {name: float(value) if isinstance(value, np.floating) else value for name, value in row.items()}


def rows_of_tensors(oracle, found, growth):
    """Norms of deviations, relative to the tensors' own, and their largest elements; of Adam's parameters both over the slopes."""
    reference, single, other = (trained.tensors() for trained in oracle.runs())
    if {name: tensor.shape for name, tensor in found.items()} != {name: tensor.shape for name, tensor in reference.items()}:
        sys.exit(f"other tensors: {sorted(found)}\nnot {sorted(reference)}")
    rows = []
    for kind, names, is_one in kinds_of(sorted(reference)):
        def joined(numbers):
            return np.concatenate([(numbers(name) / oracle.slopes.get(name, 1)).ravel() for name in names])
        values = joined(lambda name: reference[name])
        deviations = [joined(lambda name, own=own: own[name] - reference[name]) for own in (found, single, other)]
        limit = growth * (LIMIT_OF_ONE if is_one else LIMIT)
        norm = np.linalg.norm(values) + 1e-300
        rows.append(row_of(kind, "norm", [np.linalg.norm(one) / norm for one in deviations], ROUNDING, limit, is_one))
        largest = [np.abs(one).max() for one in deviations]
        rows.append(row_of(kind, "largest", largest, ROUNDING * np.abs(values).max(), limit, is_one))
    return rows


def rows_of_losses(oracle, case, images, test, report, growth):
    """Of means of losses: PyTorch's deviation is that of single losses, in the mean of squares, which a mean of them cannot pass."""
    pixels, labels = images.standardised(test[0]), torch.from_numpy(test[1].astype(np.int64))
    steps = len(oracle.reference.losses) // case.epochs
    parts = [(f"loss of epoch {i + 1}", one["loss"], [torch.cat(each.losses[i * steps:(i + 1) * steps]) for each in oracle.runs()])
             for i, one in enumerate(report["epochs"])]
    parts.append(("loss of the test", report["test"]["loss"], [each.test_losses(pixels, labels) for each in oracle.runs()]))
    rows = []
    for kind, ours, losses in parts:
        mean = float(losses[0].mean())
        deviations = [abs(ours - mean)] + [float((one - losses[0]).square().mean().sqrt()) for one in losses[1:]]
        rows.append(row_of(kind, "mean", deviations, ROUNDING * mean, growth * LIMIT))
    return rows


class Comparison:
    """omniconv's training, once more by sums of products where its own solvers do otherwise, and what an oracle says of it."""

    def __init__(self, arguments, case):
        self.case, self.trainings = case, []
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model, self.text = model_of(arguments.omniconv, case.model, folder)
            shape = tuple(int(extent) for extent in self.text.split("\n")[0].split()[1:])
            pixels, labels = made_images(case.images + 11, shape)
            self.train_set, self.test_set = (pixels[:-11], labels[:-11]), (pixels[-11:], labels[-11:])
            write_set(folder, shape, self.train_set, self.test_set)
            found, report = train(arguments, model, case, folder, [])
            growth = growth_of(report)
            self.trainings.append(("", found, report, growth))
            if growth > 1:
                self.trainings.append((SUMS, *train(arguments, model, case, folder, ["--solver", SUMS]), 1.0))

    def rows(self, fault=None):
        images = Images(*self.train_set, fault)
        oracle = Oracle(self.text, self.case, images, fault)
        if self.case.clip_norm and not fault and not 0 < oracle.reference.clipped < len(oracle.reference.losses):
            sys.exit(f"{self.case.model} {self.case.optimizer}: of {len(oracle.reference.losses)} gradients {oracle.reference.clipped} are longer than {self.case.clip_norm}")
        found = []
        for solver, tensors, report, growth in self.trainings:
            rows = rows_of_tensors(oracle, tensors, growth)
            rows += rows_of_losses(oracle, self.case, images, self.test_set, report, growth)
            about = {"model": self.case.model, "optimizer": self.case.optimizer, "solver": solver, "open": oracle.open}
            found += [{**about, **row} for row in rows]
        return found


HEADINGS = ("model", "optimizer", "", "", "omniconv", "pytorch", "ratio", "decisions", "limit", "share")
FORMAT = "{:<14} {:<9} {:<28} {:<8} {:>8} {:>8} {:>6} {:>9} {:>6} {:>6}"


def text_of(row):
    numbers = [f"{row[name]:.1e}" for name in ("omniconv", "pytorch", "decisions")]
    ratio = f"{row['omniconv'] / row['pytorch']:.2f}" if row["pytorch"] else "-"
    optimizer = row["optimizer"] + ("+" if row["solver"] else "")
    return FORMAT.format(row["model"], optimizer, row["kind"], row["norm"], *numbers[:2], ratio, numbers[2], f"{row['limit']:.1f}",
                         f"{row['share']:.2f}")


def show(rows, with_tensors):
    for row in rows:
        if with_tensors or not row["is_one"] or not row["share"] <= 1:
            print(text_of(row), flush=True)


def unseen_faults(comparison):
    """Those of which the comparison does not tell."""
    unseen = []
    for fault, optimizers in (FAULTS_OF_CLIPPING if comparison.case.clip_norm else FAULTS).items():
        if comparison.case.optimizer in optimizers:
            worst = max(comparison.rows(fault), key=lambda row: row["share"])
            about = f"{comparison.case.model} {comparison.case.optimizer}: {fault}"
            print(f"{about}: {worst['share']:.3g} times what {worst['kind']} may have", flush=True)
            unseen += [fault] if worst["share"] <= 1 else []
    return unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8, help="images of a step")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    parser.add_argument("--clip-norm", type=float, default=0, help="gradients are clipped to this norm, which some must be longer than and some not")
    parser.add_argument("--json", help="a file for the table, and for each tensor by itself")
    parser.add_argument("--tensors", action="store_true", help="show each tensor by itself")
    parser.add_argument("--faults", action="store_true", help="make the oracle wrong, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the matrices are small, and other tests run beside this one
    rows, unseen = [], []
    print(FORMAT.format(*HEADINGS))
    for model in arguments.models.split(","):
        for optimizer in arguments.optimizers.split(","):
            comparison = Comparison(arguments, Case(model, optimizer, arguments.batch, arguments.clip_norm))
            rows += (own := comparison.rows())
            show(own, arguments.tensors)
            unseen += unseen_faults(comparison) if arguments.faults else []
    if arguments.json:
        about = {"device": arguments.device, "batch": arguments.batch, "pytorch": torch.__version__}
        pathlib.Path(arguments.json).write_text(json.dumps({**about, "rows": rows}, indent=1))
    above = [row for row in rows if not row["share"] <= 1]
    for row in above:
        print(f"{row['model']} {row['optimizer']} {row['solver']}: {row['kind']}, {row['norm']}: {row['omniconv']:g} is above its limit: "
              f"{row['share']:.3g} times what may be")
    for fault in unseen:
        print(f"not seen: {fault}")
    sys.exit(bool(above or unseen))


if __name__ == "__main__":
    main()
