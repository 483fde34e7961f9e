"""Small files for the commands of documents: images, matrices of weights, arrays of the extents that a problem's text says."""
import math
import re
import shutil
import struct
import zlib

HEIGHT, WIDTH = 48, 64


def pixels():
    return bytes((3 * row + 5 * column + 80 * channel) % 256 for row in range(HEIGHT) for column in range(WIDTH) for channel in range(3))


def png():
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = b"".join(b"\0" + pixels()[row * WIDTH * 3:(row + 1) * WIDTH * 3] for row in range(HEIGHT))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def tiff():
    """Gray, 8 bits, one strip behind the list of entries (tag, type, count, value)."""
    gray = pixels()[:HEIGHT * WIDTH]
    entries = [(256, WIDTH), (257, HEIGHT), (258, 8), (259, 1), (262, 1), (273, 8 + 2 + 12 * 9 + 4), (277, 1), (278, HEIGHT), (279, len(gray))]
    listed = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + listed + struct.pack("<I", 0) + gray


def npy(kind, shape, values):
    extents = ", ".join(str(extent) for extent in shape) + ("," if len(shape) == 1 else "")
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + values


def put_image(path, photograph):
    makers = {".png": png, ".tif": tiff, ".ppm": lambda: b"P6 %d %d 255\n" % (WIDTH, HEIGHT) + pixels(), ".npy": lambda: npy("|u1", (HEIGHT, WIDTH, 3), pixels())}
    if path.suffix == ".jpg":
        shutil.copy(photograph, path)
    elif path.suffix in makers:
        path.write_bytes(makers[path.suffix]())
    else:
        raise SystemExit(f"{path.name}: no image of this kind is made here; use one of .jpg {' '.join(makers)}")


def put_weights(path):
    path.write_text("1 2 1\n2 4 2\n1 2 1\n")


# Of required letters that a text leaves to the arrays.
LEFT_TO_ARRAYS = {"n": 2, "c": 4, "h": 9, "w": 8, "k": 6, "r": 3, "s": 3, "m": 5}
# What `.npy` files call types of problems; those of others are f4.
KINDS = {"f16": "<f2", "f64": "<f8", "u8": "|u1", "u16": "<u2", "s16": "<i2", "s32": "<i4"}


def extents_of(problem):
    is_filter = problem.startswith("filter2d")
    said = {letters: int(value) for word in problem.split() if re.fullmatch(r"(?:[a-z]+\d+)+", word)
            and not re.fullmatch(r"b?f\d+|tf32", word) and not (is_filter and word in KINDS)
            for letters, value in re.findall(r"([a-z]+)(\d+)", word)}
    return {**LEFT_TO_ARRAYS, **({"c": 1} if is_filter else {}), **said}


def outputs_along(e, axis, size, window):
    """Of a window along h or w, where padding and stride are said for all sides, for an axis, or for a side."""
    sides = {"h": ("pt", "pb"), "w": ("pl", "pr")}[axis]
    padding = sum(e.get(side, e.get("p" + axis, e.get("p", 0))) for side in sides)
    dilation, stride = e.get("d" + axis, e.get("d", 1)), e.get("u" + axis, e.get("u", 1))
    return (e[size] + padding - dilation * (e[window] - 1) - 1) // stride + 1


def shapes(problem):
    """Extents of each array of a problem by the option that names its file."""
    words = problem.split()
    e = extents_of(problem)
    if words[0] == "gemm":
        a, b = [e["m"], e["k"]], [e["k"], e["n"]]
        form = next(word for word in words if word in ("nn", "nt", "tn", "tt"))
        a, b = a[::-1] if form[0] == "t" else a, b[::-1] if form[1] == "t" else b
        batch = [e["batch"]] if "batch" in e else []
        return {"--a": batch + a, "--b": batch + b}
    if words[0] == "filter2d":
        return {"--x": [e["h"], e["w"], e["c"]]}
    if words[0] == "update":
        return {**dict.fromkeys(("--g", "--w", "--m", "--v", "--copy"), [e["n"]]), "--factor": [1], "--stop": [1]}
    if words[0] == "norm":
        return {"--g": [e["n"]], "--sum": [1]}
    if words[0] == "batch":
        return {"--images": [e["m"], e["c"], e["h"], e["w"]], "--labels": [e["m"]], "--order": [e["m"]], "--table": [e["c"], 256]}
    if words[0] == "dropout":
        return {"--x": [e["n"]]}
    last = "nhwc" in words

    def image(n, c, h, w):
        return [n, h, w, c] if last else [n, c, h, w]

    if words[0] == "activation":
        x = image(e["n"], e["c"], e["h"], e["w"])
        return {"--x": x, "--y": x, "--dy": x}
    if words[0] == "bias_add":
        x = image(e["n"], e["c"], e["h"], e["w"])
        return {"--x": x, "--b": [e["c"]], "--dy": x, "--y": x}
    if words[0] == "add":
        s = image(e["n"], e["c"], e["h"], e["w"])
        stride = e.get("u", 1)
        y = image(e["n"], e["k"], (e["h"] - 1) // stride + 1, (e["w"] - 1) // stride + 1)
        return {"--x": y, "--s": s, "--dy": y, "--d": s}
    if words[0] == "batch_norm":
        x = image(e["n"], e["c"], e["h"], e["w"])
        numbers = ("--gamma", "--beta", "--mean", "--invstd", "--running_mean", "--running_var", "--dgamma", "--dbeta")
        return {**dict.fromkeys(("--x", "--dy"), x), **dict.fromkeys(numbers, [e["c"]])}
    if words[0] == "loss":
        x = [e["n"], e["c"]]
        return {"--x": x, "--t": x, "--labels": [e["n"]], "--y": [e["n"]]}
    output = [outputs_along(e, "h", "h", "r"), outputs_along(e, "w", "w", "s")]
    x = image(e["n"], e["c"], e["h"], e["w"])
    if words[0] == "pool2d":
        y = image(e["n"], e["c"], *output)
        return {"--x": x, "--dy": y, "--indices": y}
    y = image(e["n"], e["k"], *output)
    w = image(e["k"], e["c"] // e.get("g", 1), e["r"], e["s"])
    return {"--x": x, "--w": w, "--dy": y, "--bias-array": [e["k"]], "--bias": [e["k"]], "--y": y, "--y0": y, "--dx": x, "--dw": w}


def put_array(path, option, problem):
    known = shapes(problem)
    if option not in known:
        raise SystemExit(f"'{problem}': no extents are known of {option}; name them in {__file__}")
    shape, words = known[option], problem.split()
    kinds_of_options = {"--indices": "<i4", "--labels": "<i4", "--stop": "<i4"}
    if words[0] == "batch":
        kinds_of_options = {"--images": "|u1", "--labels": "|u1", "--order": "<i4", "--table": "<f4"}
    if words[0] == "update" and "f64" not in words:
        kinds_of_options |= dict.fromkeys(("--w", "--m", "--v", "--factor"), "<f4")
    if words[0] == "norm" and "f64" not in words:
        kinds_of_options["--sum"] = "<f4"
    if words[0] == "batch_norm" and "f64" not in words and option not in ("--x", "--dy"):
        kinds_of_options[option] = "<f4"
    kind = kinds_of_options.get(option) or next((KINDS[word] for word in words if word in KINDS), "<f4")
    element = {"|u1": "B", "<u2": "H", "<i2": "h", "<i4": "i", "<f2": "e", "<f4": "f", "<f8": "d"}[kind]
    # An index names an element of a window, or a class, whose first there always is. A second moment is not negative.
    numbers = 7 * [0] if kind == "<i4" else range(7) if element in "BH" or option in ("--v", "--running_var") else range(-3, 4)
    pattern = struct.pack(f"<7{element}", *numbers)
    count, size = math.prod(shape), int(kind[2])
    path.write_bytes(npy(kind, shape, (pattern * (count // 7 + 1))[:count * size]))
