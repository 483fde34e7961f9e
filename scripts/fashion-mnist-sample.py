#!/usr/bin/env python3
"""Makes data/fashion-mnist-sample: of each class the first 400 images for training and the first 100 for the test, as they follow
each other in Fashion-MNIST's files.

    scripts/fashion-mnist-sample.py [--check] [FOLDER]

FOLDER has the set's four files with .gz, as Debian's dataset-fashion-mnist puts them into /usr/share/datasets/fashion-mnist.
--check writes nothing, and compares what the files hold that are there.
"""
import gzip
import pathlib
import struct
import subprocess
import sys

SIDE, CLASSES = 28, 10
EACH = {"train": 400, "t10k": 100}
TO = pathlib.Path(__file__).resolve().parent.parent / "data" / "fashion-mnist-sample"


def sample(folder, part):
    """The contents of the two files of one part, images and labels."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = file.read()
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = file.read()
    magic, count, *sides = struct.unpack(">4I", images[:16])
    if (magic, *sides) != (0x803, SIDE, SIDE) or struct.unpack(">2I", labels[:8]) != (0x801, count):
        sys.exit(f"{folder}: its {part} files are not those of Fashion-MNIST")
    left, chosen = CLASSES * [EACH[part]], []
    for i, label in enumerate(labels[8:]):
        if left[label] > 0:
            left[label] -= 1
            chosen.append(i)
    if any(left):
        sys.exit(f"{folder}: too few images of a class in its {part} files")
    size = SIDE * SIDE
    return {f"{part}-images-idx3-ubyte": struct.pack(">4I", 0x803, len(chosen), SIDE, SIDE) +
            b"".join(images[16 + i * size:16 + (i + 1) * size] for i in chosen),
            f"{part}-labels-idx1-ubyte": struct.pack(">2I", 0x801, len(chosen)) + bytes(labels[8 + i] for i in chosen)}


def main(words):
    check = "--check" in words
    folders = [word for word in words if word != "--check"]
    if len(folders) > 1 or any(folder.startswith("-") for folder in folders):
        sys.exit(__doc__)
    folder = pathlib.Path(folders[0] if folders else "/usr/share/datasets/fashion-mnist")
    for name, content in {**sample(folder, "train"), **sample(folder, "t10k")}.items():
        path = TO / f"{name}.gz"
        if check:
            if gzip.decompress(path.read_bytes()) != content:
                sys.exit(f"{path}: it holds something else than what is chosen from {folder}")
        else:
            path.write_bytes(subprocess.run(["gzip", "-9n"], input=content, stdout=subprocess.PIPE, check=True).stdout)
    print(f"{TO}: {'as it should be' if check else 'written'}")


main(sys.argv[1:])
