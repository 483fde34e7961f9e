#!/usr/bin/python3
"""Compares `omniconv filter --alpha premultiply` with the formula in double precision, and with ImageMagick.

    compare_alpha.py OMNICONV [--device DEVICE]

Needs numpy; ImageMagick (`convert`) where it is installed. Prints one line for each comparison; exits 1 on a mismatch.

The formula is the textbook's: colours times opacity, filtered, divided by filtered opacity, in doubles, with border
arithmetic of this file's own. A stored result must be its rounding, or lie no further from the exact value than half a
unit and the error of fp32 chains. ImageMagick works in 16 bits and rounds in other places: one unit of 255 is allowed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

BORDERS = ["constant:0", "constant:90", "replicate", "reflect", "reflect101", "wrap", "valid"]


def gaussian(size, sigma):
    x = np.arange(size) - (size - 1) / 2
    g = np.exp(-x * x / (2 * sigma * sigma))
    return np.outer(g, g) / np.outer(g, g).sum()


def pad(image, r, s, border):
    before = ((r // 2, r - 1 - r // 2), (s // 2, s - 1 - s // 2), (0, 0))
    if border == "valid":
        return image
    if border.startswith("constant"):
        return np.pad(image, before, constant_values=float(border.split(":")[1]))
    return np.pad(image, before, {"replicate": "edge", "reflect": "symmetric", "reflect101": "reflect", "wrap": "wrap"}[border])


def correlate(image, kernel):
    r, s = kernel.shape
    h, w = image.shape[0] - r + 1, image.shape[1] - s + 1
    return sum(kernel[i, j] * image[i:i + h, j:j + w] for i in range(r) for j in range(s))


def expected(image, kernel, border, white):
    """Values before rounding, and how far an fp32 result may be from them."""
    x = pad(image.astype(np.float64), *kernel.shape, border)
    kernel = kernel.astype(np.float32).astype(np.float64)
    opacity = x[:, :, -1:] / white
    mean = correlate(opacity, kernel) / kernel.sum()
    shares, some = correlate(x[:, :, :-1] * opacity, kernel), mean > 0
    color = np.where(some, shares / np.where(some, mean, 1), 0)
    magnitudes = correlate(opacity, np.abs(kernel)) / kernel.sum()
    steps = (kernel.size / 2 + 6) * 2.0**-23
    slack = np.where(some, (correlate(x[:, :, :-1] * opacity, np.abs(kernel)) + 2 * np.abs(color) * magnitudes) /
                     np.where(some, mean, 1), 0)
    values = np.concatenate([color, mean * white], axis=2)
    slack = np.where(np.abs(mean) <= 2 * steps * magnitudes, np.inf, steps * slack)  # rounding decides whether any is left
    return values, np.concatenate([np.broadcast_to(slack, color.shape), 2 * steps * magnitudes * white], axis=2)


def write_pam(path, image, white):
    kind = "GRAYSCALE_ALPHA" if image.shape[2] == 2 else "RGB_ALPHA"
    head = f"P7\nWIDTH {image.shape[1]}\nHEIGHT {image.shape[0]}\nDEPTH {image.shape[2]}\nMAXVAL {white}\nTUPLTYPE {kind}\nENDHDR\n"
    with open(path, "wb") as file:
        file.write(head.encode() + image.astype(">u2" if white > 255 else "u1").tobytes())


def read_pam(path):
    head, pixels = open(path, "rb").read().split(b"ENDHDR\n", 1)
    field = dict(line.split(maxsplit=1) for line in head.decode().splitlines()[1:])
    shape = [int(field[name]) for name in ("HEIGHT", "WIDTH", "DEPTH")]
    return np.frombuffer(pixels, ">u2" if int(field["MAXVAL"]) > 255 else "u1").reshape(shape).astype(np.int64)


def random_image(rng, h, w, c, white):
    image = rng.integers(0, white + 1, (h, w, c))
    kinds = rng.integers(0, 4, (h, w))
    image[:, :, -1][kinds == 0] = 0
    image[:, :, -1][kinds == 1] = white
    image[:h // 3, :w // 3, -1] = 0
    image[-h // 3:, -w // 3:, -1] = white
    return image


def run(arguments, image, white, folder):
    source, target = os.path.join(folder, "in.pam"), os.path.join(folder, "out.pam")
    write_pam(source, image, white)
    subprocess.run(arguments(source, target), check=True)
    return read_pam(target)


def is_imagemagick(command):
    """Whether it is there, and not another program of that name."""
    if shutil.which(command) is None:
        return False
    told = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
    return told.startswith("Version: ImageMagick")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("omniconv")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    rng, failures = np.random.default_rng(1), 0
    kernels = {"gaussian 5": gaussian(5, 1.1), "box 4x3": np.full((4, 3), 1 / 12), "random 3x5": rng.random((3, 5)) / 8,
               "sharpen": np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0.0]]), "row": np.array([[0.2, 0.3, 0.5]])}

    def report(name, wrong, detail):
        nonlocal failures
        failures += wrong > 0
        print(f"{'FAIL' if wrong else 'ok  '} {name}: {detail}")

    # In memory where that can be had: every output waits until its disk has it.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for name, kernel in kernels.items():
            text = os.path.join(folder, "kernel.txt")
            np.savetxt(text, kernel, fmt="%.17g")
            for white in (255, 65535, 1000):
                for channels in (2, 4):
                    for border in BORDERS:
                        image = random_image(rng, 24, 31, channels, white)
                        found = run(lambda a, b: [options.omniconv, "filter", a, b, "--kernel", "@" + text, "--border", border,
                                                  "--device", options.device, "--quiet"], image, white, folder)
                        values, slack = expected(image, kernel, border, white)
                        values, top = np.clip(values, 0, 65535 if white > 255 else 255), white
                        found, values = np.minimum(found, top), np.minimum(values, top)
                        wrong = int((np.abs(found - values) > 0.5 + slack).sum())
                        other = int((found != np.rint(values)).sum())
                        report(f"{name} {white} c{channels} {border}", wrong,
                               f"{wrong} of {found.size} beyond the bound, {other} not the rounded double")
        if is_imagemagick("convert"):
            image = random_image(rng, 40, 50, 4, 255)
            kernel = "5x5:" + ",".join(f"{w:.9g}" for w in gaussian(5, 1.1).ravel())
            peer = run(lambda a, b: ["convert", a, "-virtual-pixel", "edge", "-morphology", "Correlate", kernel,
                                     "-depth", "8", b], image, 255, folder)
            found = run(lambda a, b: [options.omniconv, "filter", a, b, "--kernel", "gaussian:5,1.1", "--device", options.device,
                                      "--quiet"], image, 255, folder)
            difference = np.abs(found - peer)
            report("ImageMagick, gaussian 5", int((difference > 1).sum()), f"largest difference {difference.max()}")
        else:
            print("ImageMagick is not installed: not compared")
    print(f"{failures} comparisons failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
