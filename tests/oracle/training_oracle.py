"""Training as docs/training.md says it, once more: the draws in numpy, layers, gradients and updates in PyTorch, in any type.

Nothing here is taken from omniconv but a model's text. compare_training.py trains in float64 and in float32 and compares.
"""
import numpy as np
import torch
import torch.nn.functional as F

WEIGHTS, ORDER, BATCH = 0, 1, 3  # what the generator's numbers are for

# What can be made wrong here, and with which optimisers it shows.
FAULTS = {
    "weights of another stream": ["sgd"],
    "deviation of a sample": ["sgd"],
    "each epoch's order is the first's": ["sgd"],
    "two images in each other's step": ["sgd"],
    "crop to the other side": ["sgd"],
    "another bit of flip": ["sgd"],
    "a filter's gradient of 1.0001": ["sgd", "nesterov", "adam"],
    "a bias's gradient of 1.0001": ["sgd"],
    "a shortcut of the other pixels": ["sgd"],
    "a shortcut's channels first": ["sgd"],
    "a shortcut without a gradient": ["sgd"],
    "a running variance over N": ["sgd"],
    "an epsilon of 2e-5": ["sgd"],
    "a momentum of 0.89": ["sgd", "nesterov"],
    "the other momentum": ["sgd", "nesterov"],
    "no l2": ["sgd", "adam"],
    "no l2 of biases": ["sgd", "nesterov", "adam"],
    "a divisor's epsilon of 1e-7": ["adam"],
}
# And of a training whose gradients are clipped by their norm.
FAULTS_OF_CLIPPING = {
    "no clipping": ["sgd", "nesterov", "adam"],
    "a norm of 1.0001": ["sgd", "nesterov", "adam"],
    "a norm of each tensor": ["sgd", "nesterov", "adam"],
    "a norm with l2": ["sgd", "nesterov", "adam"],
}


def philox(counter, key):
    """Philox4x32-10 of four arrays of words: Salmon, Moraes, Dror, Shaw, 2011."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.asarray(word, np.uint64) for word in counter]
    key = list(key)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [b >> shift ^ c[1] ^ np.uint64(key[0]), b & low, a >> shift ^ c[3] ^ np.uint64(key[1]), a & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def key_of(seed):
    return seed & 0xFFFFFFFF, seed >> 32


def words(seed, use, stream, count):
    """The first words of a stream: four of each block, whose number is the counter."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    zeros = np.zeros_like(blocks)
    return np.stack(philox((blocks, zeros, zeros + np.uint64(stream), zeros + np.uint64(use)), key_of(seed)), 1).ravel()[:count]


def order_of(seed, epoch, count):
    """Fisher and Yates, from behind."""
    order, drawn = list(range(count)), words(seed, ORDER, epoch, count + 1)
    for i in range(count, 1, -1):
        other = int(drawn[i]) * i >> 32
        order[i - 1], order[other] = order[other], order[i - 1]
    return order


def augmented(pixels, number, epoch, seed, flip, shift, fault):
    """An image of bytes, mirrored or not and moved, black where nothing is."""
    drawn = [int(word) for word in philox((number, 0, epoch, BATCH), key_of(seed))]
    down, right = (drawn[i] * (2 * shift + 1) // 2**32 - shift for i in (1, 2))
    if fault == "crop to the other side":
        right = -right
    if flip and drawn[0] >> (30 if fault == "another bit of flip" else 31) & 1:
        pixels, right = pixels[:, :, ::-1], -right
    moved = np.zeros_like(pixels)
    height, width = pixels.shape[1:]
    def inside(offset, extent):  # of the result, and of what is moved
        return slice(max(0, -offset), min(extent, extent - offset)), slice(max(0, offset), min(extent, extent + offset))
    (to_p, from_p), (to_q, from_q) = inside(down, height), inside(right, width)
    moved[:, to_p, to_q] = pixels[:, from_p, from_q]
    return moved


class Images:
    """A set's bytes, and batches of them in float64."""

    def __init__(self, pixels, labels, fault=None):
        self.pixels, self.labels, self.fault = pixels, labels, fault
        ends = (0, 2, 3)
        self.mean = pixels.mean(ends, np.float64)[None, :, None, None]
        self.deviation = pixels.std(ends, np.float64, ddof=fault == "deviation of a sample")[None, :, None, None]

    def standardised(self, pixels):
        return torch.from_numpy((pixels.astype(np.float64) - self.mean) / self.deviation)

    def batches(self, case):
        """Of each step, the images and their classes."""
        count = len(self.pixels)
        for epoch in range(1, case.epochs + 1):
            order = order_of(case.seed, 1 if self.fault == "each epoch's order is the first's" else epoch, count)
            if self.fault == "two images in each other's step":
                order[0], order[case.batch] = order[case.batch], order[0]
            for step in range(count // case.batch):
                chosen = order[step * case.batch:(step + 1) * case.batch]
                pixels = self.pixels[chosen]
                if case.augment:
                    pixels = np.stack([augmented(self.pixels[o], o, epoch, case.seed, case.flip, case.shift, self.fault) for o in chosen])
                yield self.standardised(pixels), torch.from_numpy(self.labels[chosen].astype(np.int64))


def layers_of(text):
    """A model's lines, each as its words; of add the number of the layer that it adds."""
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    lines = [line for line in lines if line]
    layers, marks = [], {}
    for words_of in lines[1:]:
        if words_of[0] == "mark":
            marks[words_of[1]] = len(layers) - 1
        elif words_of[0] == "add":
            layers.append(["add", marks[words_of[1]]])
        else:
            layers.append(words_of)
    return tuple(int(extent) for extent in lines[0][1:]), layers


def option(line, name, usual, kind=int):
    return kind(line[line.index(name) + 1]) if name in line else usual


class Network:
    """A model's parameters in a type, and its steps.

    Where a ReLU's input lies near 0, or two of a window near each other, rounding decides which way a gradient goes. Those inputs are
    kept in `inputs`; forward is given masks of the decisions that are to be made the other way.
    """

    def __init__(self, text, dtype, seed, fault=None):
        self.dtype, self.fault = dtype, fault
        self.shape, self.layers = layers_of(text)
        self.parameters, self.running = {}, {}
        with torch.no_grad():
            self.seed = seed
            self.forward(torch.zeros(2, *self.shape, dtype=dtype), draws=True)  # extents follow from images that go through
        for tensor in self.parameters.values():
            tensor.requires_grad_()

    def draw(self, i, shape, has_bias):
        bound, count = np.sqrt(6 / np.prod(shape[1:])), int(np.prod(shape))
        stream = i + 1 if self.fault == "weights of another stream" else i
        unit = (words(self.seed, WEIGHTS, stream, count) >> np.uint64(8)).astype(np.float64) * 2.0**-23 - 1
        weights = torch.from_numpy((unit * bound).astype(np.float32)).view(*shape)
        self.parameters[f"layers.{i}.weight"] = weights.to(self.dtype)
        if has_bias:
            self.parameters[f"layers.{i}.bias"] = torch.zeros(shape[0], dtype=self.dtype)

    def filtered(self, i, line, x, draws):
        """conv N RxS [pad P] [stride U] [nobias], dense N [nobias]."""
        is_dense = line[0] == "dense"
        extents = x.shape[2:] if is_dense else tuple(int(e) for e in line[2].split("x"))
        if draws:
            self.draw(i, (int(line[1]), x.shape[1], *extents), "nobias" not in line)
        weight, bias = self.parameters[f"layers.{i}.weight"], self.parameters.get(f"layers.{i}.bias")
        if self.fault == "a filter's gradient of 1.0001" and i == 0:
            weight = weight * 1.0001 - weight.detach() * 0.0001
        if self.fault == "a bias's gradient of 1.0001" and bias is not None:
            bias = bias * 1.0001 - bias.detach() * 0.0001
        if is_dense:
            return F.linear(x.flatten(1), weight.flatten(1), bias)[:, :, None, None]
        return F.conv2d(x, weight, bias, option(line, "stride", 1), option(line, "pad", 0))

    def normalised(self, i, line, x, draws, trains):
        name, channels = f"layers.{i}.", x.shape[1]
        if draws:
            self.parameters[name + "weight"] = torch.ones(channels, dtype=self.dtype)
            self.parameters[name + "bias"] = torch.zeros(channels, dtype=self.dtype)
            self.running[name + "running_mean"] = torch.zeros(channels, dtype=self.dtype)
            self.running[name + "running_var"] = torch.ones(channels, dtype=self.dtype)
        mean, variance = self.running[name + "running_mean"], self.running[name + "running_var"]
        before = variance.clone()
        epsilon = option(line, "epsilon", 2e-5 if self.fault == "an epsilon of 2e-5" else 1e-5, float)
        share = option(line, "momentum", 0.1, float)
        gamma, beta = self.parameters[name + "weight"], self.parameters[name + "bias"]
        y = F.batch_norm(x, mean, variance, gamma, beta, trains and not draws, share, epsilon)
        if trains and self.fault == "a running variance over N":
            elements = x.numel() // channels
            more = variance - before * (1 - share)
            self.running[name + "running_var"] = variance - more / elements
        return y

    def shortcut(self, s, x):
        """Option A of He, Zhang, Ren, Sun, 2015: every so many pixels, channels of 0 around."""
        stride = -(-s.shape[2] // x.shape[2])
        if self.fault == "a shortcut of the other pixels" and stride > 1:
            s = s[:, :, 1:, 1:]
        s = s[:, :, ::stride, ::stride]
        if self.fault == "a shortcut without a gradient":
            s = s.detach()
        more = x.shape[1] - s.shape[1]
        before = 0 if self.fault == "a shortcut's channels first" else more // 2
        return F.pad(s, (0, 0, 0, 0, before, more - before))

    def relu(self, z, turned):
        self.inputs.append(z.detach())
        passes = z > 0
        if turned is not None:
            passes = passes ^ turned
        return z * passes.to(self.dtype)

    def largest(self, line, x, turned):
        extents = tuple(int(e) for e in line[1].split("x"))
        stride = option(line, "stride", None)
        n, c, h, w = x.shape
        windows = F.unfold(x.reshape(n * c, 1, h, w), extents, stride=stride or extents)
        two, places = windows.topk(2, 1)
        self.inputs.append((two[:, 0] - two[:, 1]).detach())
        first = places[:, :1] if turned is None else torch.where(turned[:, None], places[:, 1:], places[:, :1])
        rows = (h - extents[0]) // (stride or extents[0]) + 1
        return windows.gather(1, first).view(n, c, rows, -1)

    def forward(self, x, turned=None, draws=False, trains=True):
        self.inputs, outputs = [], []
        turned = iter(turned) if turned is not None else None
        def decisions():
            return None if turned is None else next(turned)
        for i, line in enumerate(self.layers):
            kind = line[0]
            if kind in ("conv", "dense"):
                x = self.filtered(i, line, x, draws)
            elif kind == "batchnorm":
                x = self.normalised(i, line, x, draws, trains)
            elif kind == "add":
                x = x + self.shortcut(outputs[line[1]], x)
            elif kind == "relu":
                x = self.relu(x, decisions())
            elif kind == "maxpool":
                x = self.largest(line, x, decisions())
            elif kind == "avgpool":
                x = F.avg_pool2d(x, tuple(int(e) for e in line[1].split("x")), option(line, "stride", None))
            elif kind in ("sigmoid", "tanh"):
                x = getattr(torch, kind)(x)
            else:
                raise ValueError(f"layer {i}, {kind}: the oracle has none")
            outputs.append(x)
        return x.flatten(1)


def optimizer_of(network, case, fault=None):
    parameters = list(network.parameters.values())
    l2 = 0 if fault == "no l2" else case.l2
    if fault == "no l2 of biases":
        parameters = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": l2},
                      {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0}]
    if case.optimizer == "adam":
        return torch.optim.Adam(parameters, case.rate, eps=1e-7 if fault == "a divisor's epsilon of 1e-7" else 1e-8, weight_decay=l2)
    momentum = 0.89 if fault == "a momentum of 0.89" else case.momentum
    nesterov = (case.optimizer == "nesterov") != (fault == "the other momentum")
    return torch.optim.SGD(parameters, case.rate, momentum, weight_decay=l2, nesterov=nesterov)


class Trained:
    """A network with its optimiser."""

    def __init__(self, text, dtype, case, fault=None):
        self.network = Network(text, dtype, case.seed, fault)
        self.case, self.fault, self.clipped = case, fault, 0
        self.optimizer = optimizer_of(self.network, case, fault)
        self.losses = []

    def forward(self, images, labels, turned=None):
        self.loss = F.cross_entropy(self.network.forward(images.to(self.network.dtype), turned), labels, reduction="none")
        self.losses.append(self.loss.detach().to(torch.float64))
        return self.network.inputs

    def update(self):
        self.optimizer.zero_grad()
        self.loss.mean().backward()
        if self.case.clip_norm and self.fault != "no clipping":
            self.clip(list(self.network.parameters.values()), self.case.clip_norm)
        self.optimizer.step()

    def clip(self, parameters, most):
        if self.fault == "a norm with l2":
            for one in parameters:
                one.grad += self.case.l2 * one.detach()
        if self.fault == "a norm of each tensor":
            for one in parameters:
                torch.nn.utils.clip_grad_norm_([one], most)
            return
        norm = torch.nn.utils.clip_grad_norm_(parameters, most * (1.0001 if self.fault == "a norm of 1.0001" else 1))
        self.clipped += bool(norm > most)
        if self.fault == "a norm with l2":
            for one in parameters:
                one.grad -= self.case.l2 * one.detach()

    def test_losses(self, images, labels):
        with torch.no_grad():
            outputs = self.network.forward(images.to(self.network.dtype), trains=False)
            return F.cross_entropy(outputs, labels, reduction="none").to(torch.float64)

    def tensors(self):
        """By the names of a checkpoint, in float64."""
        found = {**self.network.parameters, **self.network.running}
        for name, parameter in self.network.parameters.items():
            state = self.optimizer.state[parameter]
            for before, key in (("momentum.", "momentum_buffer"), ("momentum.", "exp_avg"), ("second_moment.", "exp_avg_sq")):
                if key in state:
                    found[before + name] = state[key]
        return {name: tensor.detach().to(torch.float64).numpy() for name, tensor in found.items()}
