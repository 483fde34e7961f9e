"""Times of PyTorch's convolutions and products on the first CUDA device, for comparison."""
import math
import re
import statistics

ROTATION_BYTES, MOST_SETS = 256 << 20, 32
WARM_UPS, LEAST_SAMPLES, MOST_SAMPLES = 3, 7, 400
# The device waits so many cycles before each sample: the host has submitted all of it by then, and its own time is not measured.
CYCLES_AHEAD = 400_000


def extents_of(text):
    """The numbers and words of a problem's text, as docs/notation.md has them."""
    words = re.sub(r'"[^"]*"', "", text).split()
    extents = [word for word in words if re.fullmatch(r"([a-z]+\d+){2,}|batch\d+", word)]
    return {"words": set(words) - set(extents)} | {letter: int(number) for letter, number in re.findall(r"([a-z]+)(\d+)", " ".join(extents))}


def geometry(text):
    """Of a convolution, with what the text leaves out."""
    found = {"p": 0, "u": 1, "d": 1, "g": 1} | extents_of(text)
    for letter in "hw":
        found[f"u{letter}"] = found.get(f"u{letter}", found["u"])
        found[f"d{letter}"] = found.get(f"d{letter}", found["d"])
    for side, both in (("t", "h"), ("b", "h"), ("l", "w"), ("r", "w")):
        found[f"p{side}"] = found.get(f"p{side}", found.get(f"p{both}", found["p"]))
    return found


class PyTorch:
    def __init__(self, benchmark_limit):
        import torch  # pylint: disable=import-outside-toplevel
        self.torch = torch
        self.versions = {"PyTorch": torch.__version__, "its cuDNN": str(torch.backends.cudnn.version())}
        torch.backends.cudnn.benchmark = True  # once for each shape, in the first warm-up
        torch.backends.cudnn.benchmark_limit = benchmark_limit

    def milliseconds(self, problem, kind, layout, seconds):
        """The median; throws where PyTorch has no such operation."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind == "tf32"
        self.dtype = {"f16": torch.float16, "bf16": torch.bfloat16}.get(kind, torch.float32)
        make_set, run = self.product(problem) if problem.startswith("gemm") else self.convolution(problem, layout)
        first = make_set()
        of_a_set = sum(array.numel() * array.element_size() for array in first)
        sets = [first] + [make_set() for _ in range(max(0, min(MOST_SETS - 1, ROTATION_BYTES // max(of_a_set, 1))))]
        return self.median(lambda i: run(*sets[i % len(sets)]), seconds)

    def release(self):
        """Lets others have the device's memory that was used."""
        self.torch.cuda.empty_cache()

    def random(self, shape):
        return self.torch.randn(shape, device="cuda").to(self.dtype)

    def convolution(self, problem, layout):
        torch, g = self.torch, geometry(problem)
        if g["pt"] != g["pb"] or g["pl"] != g["pr"]:
            raise ValueError("PyTorch has no paddings that differ")
        which = next((word for word in ("bwd_data", "bwd_filter") if word in g["words"]), "")
        form = torch.channels_last if layout == "nhwc" else torch.contiguous_format
        p = (g["h"] + g["pt"] + g["pb"] - g["dh"] * (g["r"] - 1) - 1) // g["uh"] + 1
        q = (g["w"] + g["pl"] + g["pr"] - g["dw"] * (g["s"] - 1) - 1) // g["uw"] + 1
        shapes = [(g["n"], g["c"], g["h"], g["w"]), (g["k"], g["c"] // g["g"], g["r"], g["s"]), (g["n"], g["k"], p, q)]
        place = ([g["uh"], g["uw"]], [g["pt"], g["pl"]], [g["dh"], g["dw"]])

        def run(x, w, y):
            if which:
                mask = [which == "bwd_data", which == "bwd_filter", False]
                return torch.ops.aten.convolution_backward(y, x, w, None, *place, False, [0, 0], g["g"], mask)
            return torch.nn.functional.conv2d(x, w, None, *place, g["g"])

        return lambda: [self.random(shape).contiguous(memory_format=form) for shape in shapes], run

    def product(self, problem):
        g = extents_of(problem)
        form = next(word for word in ("nn", "nt", "tn", "tt") if word in g["words"])
        batch = (g["batch"],) if g.get("batch", 1) > 1 else ()

        def operand(rows, columns, transposed):
            return self.random((*batch, columns, rows)).transpose(-1, -2) if transposed else self.random((*batch, rows, columns))

        return lambda: [operand(g["m"], g["k"], form[0] == "t"), operand(g["k"], g["n"], form[1] == "t")], self.torch.matmul

    def median(self, run, seconds):
        cuda = self.torch.cuda

        def timed(i):
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            cuda._sleep(CYCLES_AHEAD)  # pylint: disable=protected-access
            begin.record()
            run(i)
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)

        for i in range(WARM_UPS):
            run(i)
        cuda.synchronize()
        first = max(timed(0), 1e-3)
        count = max(LEAST_SAMPLES, min(MOST_SAMPLES, math.ceil(seconds * 1e3 / first)))
        return statistics.median(timed(i) for i in range(count))
