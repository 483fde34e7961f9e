#!/usr/bin/python3
"""Makes the pictures of docs/kernels.md, docs/borders.md and the README, and the table in docs/kernels.md.

    scripts/kernel-pictures.py [OMNICONV]        (build/release/bin/omniconv by default)

Every picture is filtered by omniconv itself, from the bundled photograph. Needs Python's numpy and cv2, which the tests
need too.
"""
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np

root = pathlib.Path(__file__).resolve().parent.parent
omniconv = sys.argv[1] if len(sys.argv) > 1 else str(root / "build/release/bin/omniconv")
work = pathlib.Path(tempfile.mkdtemp())
docs, pictures = root / "docs", root / "docs/images/kernels"
photo = cv2.imread(str(root / "data/photo/raccoon.jpg"))
WIDTH, HEIGHT = 320, 240
face = photo[30:30 + 2 * HEIGHT, 370:370 + 2 * WIDTH]

# A kernel, the options that make its result a picture, and what the picture shows.
MIDDLE = ["--bias", "128"]
KERNELS = [
    ("identity", [], "the image itself"),
    ("box:9", [], "every pixel the mean of 81"),
    ("gaussian:15", [], "a soft blur"),
    ("motion:31,30", [], "the smear of a camera that moved"),
    ("sharpen", [], "fine detail raised; noise too"),
    ("unsharp:9,2,1.5", [], "detail of a chosen size raised by a chosen amount"),
    ("sobel", [], "the strength of edges, whatever their direction"),
    ("sobel-x", MIDDLE, "upright edges: brighter to the right is light, darker is dark"),
    ("sobel-y", MIDDLE, "level edges"),
    ("prewitt", [], "as `sobel`, without its smoothing weights"),
    ("prewitt-x", MIDDLE, "as `sobel-x`, all rows alike"),
    ("prewitt-y", MIDDLE, "as `sobel-y`, all columns alike"),
    ("scharr", [], "as `sobel`, more even over directions"),
    ("scharr-x", ["--bias", "128", "--scale", "0.25"], "as `sobel-x`, more even over directions; a quarter of it"),
    ("scharr-y", ["--bias", "128", "--scale", "0.25"], "as `sobel-y`, likewise"),
    ("laplacian", MIDDLE, "second derivatives: both sides of each edge"),
    ("log:9,1.4", ["--bias", "128", "--scale", "8"], "the same after a blur, so that noise does not drown it; eight times"),
    ("emboss", [], "a relief lit from the upper left"),
]
MONTAGE = ["identity", "gaussian:15", "motion:31,30", "unsharp:9,2,1.5", "sobel", "laplacian", "log:9,1.4", "emboss"]
FONT = cv2.FONT_HERSHEY_SIMPLEX


def run(*arguments):
    done = subprocess.run([omniconv, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def filtered(image, kernel, options):
    source, target = work / "in.ppm", work / "out.ppm"
    cv2.imwrite(str(source), image)
    run("filter", str(source), str(target), "--device", "cpu", "--kernel", kernel, *options)
    return cv2.imread(str(target))


def weights_of(kernel):
    printed = run("filter", "--print-kernel", "--kernel", kernel)
    return np.array([[float(word) for word in line.split()] for line in printed.strip().splitlines()])


def weights_picture(weights, side=120):
    """Cells from blue (negative) over white to red (positive), the largest magnitude in full colour."""
    share = (weights / np.abs(weights).max())[..., None]
    red, blue = np.array([60, 60, 220.0]), np.array([220, 110, 40.0])
    cells = np.where(share > 0, 255 + share * (red - 255), 255 - share * (blue - 255)).astype(np.uint8)
    cell = max(side // max(weights.shape), 1)
    picture = np.kron(cells, np.ones((cell, cell, 1), np.uint8))
    return cv2.copyMakeBorder(picture, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=(160, 160, 160))


def numbers(weights):
    if weights.shape[0] > 3:
        return f"{weights.shape[0]} × {weights.shape[1]}, sum {round(weights.sum(), 6):g}"
    return "<br>".join(" ".join(f"{w:g}".replace("-", "−") for w in row) for row in weights)


def file_name(kernel):
    return kernel.replace(":", "-").replace(",", "-")


def captioned(picture, caption, band=26):
    picture = cv2.copyMakeBorder(picture, 0, band, 0, 0, cv2.BORDER_CONSTANT, value=(255, 255, 255))
    cv2.putText(picture, caption, (6, picture.shape[0] - 8), FONT, 0.5, (40, 40, 40), 1, cv2.LINE_AA)
    return cv2.copyMakeBorder(picture, 2, 2, 2, 2, cv2.BORDER_CONSTANT, value=(255, 255, 255))


def small(picture):
    return cv2.resize(picture, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)


def kernel_pages():
    """The pictures and the table."""
    pictures.mkdir(parents=True, exist_ok=True)
    rows = []
    detail = face[210:210 + HEIGHT, 190:190 + WIDTH]  # pixel for pixel, so that fine kernels show what they do
    for kernel, options, meaning in KERNELS:
        picture = filtered(detail, kernel, options)
        name = file_name(kernel)
        cv2.imwrite(str(pictures / f"{name}.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 85])
        shown = f"the magnitude of `{kernel}-x` and `{kernel}-y`"
        if kernel not in ("sobel", "prewitt", "scharr"):
            weights = weights_of(kernel)
            cv2.imwrite(str(pictures / f"{name}-weights.png"), weights_picture(weights))
            shown = f"![weights](images/kernels/{name}-weights.png)<br>{numbers(weights)}"
        command = " ".join(["--kernel", kernel, *options])
        rows.append(f"| `{command}` | {shown} | ![{kernel}](images/kernels/{name}.jpg)<br>{meaning} |\n")
    (docs / "kernels.md").write_text(
        "# The named kernels\n\n"
        "Made by `scripts/kernel-pictures.py`. Each picture is a detail of the [bundled photograph](../data/photo/README.md), pixel\n"
        "for pixel, filtered with the options beside it. Weights are drawn red where positive, blue where negative, white at\n"
        "zero. The formulas are in [cli.md](cli.md#named-kernels).\n\n"
        "Results are rounded and saturated to the range of the output: a kernel whose weights sum to zero gives values around 0,\n"
        "of which a picture of 8 bits keeps none below. `--bias 128` moves zero to the middle grey; `--depth s16` or `f32` keeps\n"
        "the signed values ([rounding](arithmetic.md#rounding-for-users)).\n\n"
        "| option | weights | result |\n| --- | --- | --- |\n" + "".join(rows))


def montage():
    tiles = []
    for kernel in MONTAGE:
        options = {name: options for name, options, _ in KERNELS}[kernel]
        picture = small(filtered(face, kernel, options))
        tiles.append(captioned(picture, "the photograph" if kernel == "identity" else " ".join([kernel, *options])))
    half = len(tiles) // 2
    cv2.imwrite(str(docs / "images/kernels.jpg"), np.vstack([np.hstack(tiles[:half]), np.hstack(tiles[half:])]),
                [cv2.IMWRITE_JPEG_QUALITY, 82])


def extended(image, border, by):
    """The image and `by` pixels around it as a filter sees them: four shifted copies, by kernels of a single 1."""
    rows, columns = image.shape[:2]
    result = np.zeros((rows + 2 * by, columns + 2 * by, 3), np.uint8)
    for y in (0, 2 * by):
        for x in (0, 2 * by):
            weights = np.zeros((2 * by + 1, 2 * by + 1))
            weights[y, x] = 1
            np.savetxt(work / "shift.txt", weights, "%g")
            result[y:y + rows, x:x + columns] = filtered(image, f"@{work}/shift.txt", ["--border", border])
    return result


def borders():
    image = cv2.resize(photo[270:530, 540:840], (90, 78), interpolation=cv2.INTER_AREA)
    by, tiles = 36, []
    for border in ("constant:255", "replicate", "reflect", "reflect101", "wrap"):
        picture = extended(image, border, by)
        scale = 2
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
        edge = by * scale
        cv2.rectangle(picture, (edge - 1, edge - 1), (edge + 90 * scale, edge + 78 * scale), (0, 230, 255), 1)
        tiles.append(captioned(cv2.copyMakeBorder(picture, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=(190, 190, 190)), border))
    cv2.imwrite(str(docs / "images/borders.jpg"), np.hstack(tiles), [cv2.IMWRITE_JPEG_QUALITY, 82])


kernel_pages()
montage()
borders()
