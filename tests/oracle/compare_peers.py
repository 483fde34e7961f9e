#!/usr/bin/python3
"""Compares `omniconv filter` with SciPy, NumPy and OpenCV, border by border.

    compare_peers.py OMNICONV [--device DEVICE] [--solver SOLVER]

Needs numpy, scipy and cv2. Prints one line for each comparison and one at the end; exits 1 on any mismatch, 2 when the
program cannot be run. What each kind of comparison demands, and why peers may differ at all, is in docs/borders.md.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile

import cv2
import numpy as np
from scipy import ndimage, signal

VALUE = 37  # of the constant border
BORDERS = ["constant", "replicate", "reflect", "reflect101", "wrap"]
SCIPY_MODES = {"constant": "constant", "replicate": "nearest", "reflect": "reflect", "reflect101": "mirror",
               "wrap": "wrap"}
NUMPY_MODES = {"constant": "constant", "replicate": "edge", "reflect": "symmetric", "reflect101": "reflect",
               "wrap": "wrap"}
OPENCV_BORDERS = {"constant": cv2.BORDER_CONSTANT, "replicate": cv2.BORDER_REPLICATE, "reflect": cv2.BORDER_REFLECT,
                  "reflect101": cv2.BORDER_REFLECT_101, "wrap": cv2.BORDER_WRAP}
DEPTHS = {np.dtype(np.uint8): "u8", np.dtype(np.uint16): "u16", np.dtype(np.int16): "s16", np.dtype(np.int32): "s32",
          np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}

SINGLE, DOUBLE = 2.0**-23, 2.0**-52  # the spacing of fp32 and f64 at 1

# Rows and columns of kernels. OpenCV turns to a Fourier transform from 50 weights on, whose error is another matter.
SIZES = [(3, 3), (5, 5), (7, 7), (2, 2), (4, 3), (2, 6), (1, 4), (5, 1)]


class Case:
    """One filtering: an image, a kernel and how they meet."""

    def __init__(self, image, kernel, border, output, anchor=None, convolve=False, name=None):
        self.image, self.kernel, self.border = image, kernel, border
        self.name = name  # of a pair of kernels: `kernel` and its transpose
        self.output = np.dtype(output)
        self.anchor = anchor  # row, column
        self.convolve = convolve

    def __str__(self):
        image = "x".join(str(extent) for extent in self.image.shape)
        kernel = self.name or "x".join(str(extent) for extent in self.kernel.shape)
        types = DEPTHS[self.image.dtype] + ">" + DEPTHS[self.output]
        anchor = "" if self.anchor is None else f" anchor row {self.anchor[0]} column {self.anchor[1]}"
        return f"{types} {image} kernel {kernel} {self.border}{anchor}{' convolve' if self.convolve else ''}"

    def placed_anchor(self):
        """The anchor, floor(size / 2) where none was given."""
        return self.anchor or (self.kernel.shape[0] // 2, self.kernel.shape[1] // 2)

    def correlation(self):
        """Kernel and anchor of the correlation that this case amounts to."""
        row, column = self.placed_anchor()
        if not self.convolve:
            return self.kernel, (row, column)
        rows, columns = self.kernel.shape
        return self.kernel[::-1, ::-1], (rows - 1 - row, columns - 1 - column)


def border_indices(border, extent, before, after):
    """Which pixels stand at -before .. extent + after - 1; -1 for the constant."""
    i = np.arange(-before, extent + after)
    if border in ("constant", "valid"):
        return np.where((i < 0) | (i >= extent), -1, i)
    if border == "replicate":
        return np.clip(i, 0, extent - 1)
    if border == "wrap":
        return i % extent
    if border == "reflect":
        i = i % (2 * extent)
        return np.where(i < extent, i, 2 * extent - 1 - i)
    if extent == 1:
        return np.zeros_like(i)
    i = i % (2 * extent - 2)
    return np.where(i < extent, i, 2 * extent - 2 - i)


def definition(case, dtype=np.float64):
    """The sum of the definition, and the same sum of magnitudes, from index arithmetic of this file's own."""
    kernel, (row, column) = case.correlation()
    rows, columns = kernel.shape
    h, w = case.image.shape[:2]
    if case.border == "valid":
        padded, h, w = case.image.astype(dtype), h - rows + 1, w - columns + 1
    else:
        y = border_indices(case.border, h, row, rows - 1 - row)
        x = border_indices(case.border, w, column, columns - 1 - column)
        padded = case.image.astype(dtype)[y][:, x]
        padded[y < 0] = VALUE
        padded[:, x < 0] = VALUE
    total = np.zeros((h, w) + case.image.shape[2:], dtype)
    magnitude = np.zeros_like(total)
    for r, s in itertools.product(range(rows), range(columns)):
        product = padded[r:r + h, s:s + w] * dtype(kernel[r, s])
        total += product
        magnitude += np.abs(product)
    return total, magnitude


def by_channel(function, image):
    if image.ndim == 2:
        return function(image)
    return np.stack([function(image[:, :, channel]) for channel in range(image.shape[2])], axis=2)


def scipy_filter(case):
    """In doubles. SciPy counts its origin from the middle; convolve() mirrors it as we mirror the anchor."""
    row, column = case.placed_anchor()
    origin = (row - case.kernel.shape[0] // 2, column - case.kernel.shape[1] // 2)
    function = ndimage.convolve if case.convolve else ndimage.correlate
    kernel = case.kernel.astype(np.float64)
    return by_channel(lambda plane: function(plane, kernel, mode=SCIPY_MODES[case.border], cval=VALUE, origin=origin),
                      case.image.astype(np.float64))


def scipy_valid(case):
    function = signal.convolve2d if case.convolve else signal.correlate2d
    return by_channel(lambda plane: function(plane, case.kernel.astype(np.float64), mode="valid"),
                      case.image.astype(np.float64))


def numpy_can(case):
    """Before 1.25, NumPy's wrap of more than the whole image begins at the wrong place."""
    kernel, anchor = case.correlation()
    reach = [max(anchor[i], kernel.shape[i] - 1 - anchor[i]) for i in (0, 1)]
    recent = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (1, 25)
    return recent or case.border != "wrap" or all(reach[i] <= case.image.shape[i] for i in (0, 1))


def numpy_filter(case):
    """Integers: np.pad, then windows."""
    kernel, (row, column) = case.correlation()
    rows, columns = kernel.shape
    width = [(row, rows - 1 - row), (column, columns - 1 - column)] + [(0, 0)] * (case.image.ndim - 2)
    options = {"constant_values": VALUE} if case.border == "constant" else {}
    padded = np.pad(case.image.astype(np.int64), width, NUMPY_MODES[case.border], **options)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (rows, columns), axis=(0, 1))
    return np.tensordot(windows, kernel.astype(np.int64), axes=([-2, -1], [0, 1]))


def opencv_filter(case):
    """cv2.filter2D knows neither a value nor wrap: for these the image is extended first and the middle is cut out."""
    kernel, (row, column) = case.correlation()
    rows, columns = kernel.shape
    depth = {"u8": cv2.CV_8U, "u16": cv2.CV_16U, "s16": cv2.CV_16S, "f32": cv2.CV_32F}[DEPTHS[case.output]]
    kernel = np.ascontiguousarray(kernel, dtype=np.float32)
    border = OPENCV_BORDERS[case.border]
    if case.border not in ("constant", "wrap"):
        return cv2.filter2D(case.image, depth, kernel, anchor=(column, row), borderType=border)
    h, w = case.image.shape[:2]
    image = cv2.copyMakeBorder(case.image, rows, rows, columns, columns, border, value=(VALUE,) * 4)
    return cv2.filter2D(image, depth, kernel, anchor=(column, row))[rows:rows + h, columns:columns + w]


def opencv_blur(case):
    """cv2.blur, the mean; its borders as in opencv_filter."""
    row, column = case.placed_anchor()
    rows, columns = case.kernel.shape
    options = {"ksize": (columns, rows), "anchor": (column, row)}
    border = OPENCV_BORDERS[case.border]
    if case.border not in ("constant", "wrap"):
        return cv2.blur(case.image, borderType=border, **options)
    h, w = case.image.shape[:2]
    image = cv2.copyMakeBorder(case.image, rows, rows, columns, columns, border, value=(VALUE,) * 4)
    return cv2.blur(image, **options)[rows:rows + h, columns:columns + w]


def scipy_uniform(case):
    """In doubles. SciPy centres even sizes as we do."""
    return by_channel(lambda plane: ndimage.uniform_filter(plane, case.kernel.shape, mode=SCIPY_MODES[case.border],
                                                           cval=VALUE), case.image.astype(np.float64))


class Comparison:
    def __init__(self, arguments, folder):
        self.command = [arguments.omniconv, "filter"]
        self.options = ["--quiet", "--device", arguments.device, "--solver", arguments.solver]
        self.folder = folder
        self.count = self.mismatches = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def omniconv(self, case):
        """The result, or None and a message."""
        np.save(self.path("in.npy"), case.image)
        np.save(self.path("k.npy"), case.kernel)
        border = f"constant:{VALUE}" if case.border == "constant" else case.border
        kernel = case.name or "@" + self.path("k.npy")
        command = self.command + [self.path("in.npy"), self.path("out.npy"), "--kernel", kernel,
                                  "--border", border, "--depth", DEPTHS[case.output]] + self.options
        if case.anchor is not None:
            command += ["--anchor", f"{case.anchor[1]},{case.anchor[0]}"]
        if case.convolve:
            command.append("--convolve")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return None, f"omniconv exits {done.returncode}: {done.stderr.strip()}"
        result = np.load(self.path("out.npy"))
        os.remove(self.path("out.npy"))
        if result.dtype != case.output:
            return None, f"omniconv wrote {result.dtype}"
        return result, ""

    def check(self, peer, case, peer_result, judge):
        """`judge` says what is wrong (or nothing) and what is worth noting."""
        result, wrong = self.omniconv(case)
        note = ""
        if result is not None and result.shape != peer_result.shape:
            wrong = f"the shape is {result.shape}, the peer's {peer_result.shape}"
        elif result is not None:
            wrong, note = judge(case, result, peer_result)
        self.count += 1
        self.mismatches += bool(wrong)
        print(f"{'MISMATCH' if wrong else 'ok':8} {peer:14} {case}: {wrong or note}", flush=True)


def same_bits(case, result, peer):
    different = np.count_nonzero(result != peer)
    return (f"{different} of {result.size} values differ" if different else ""), "equal"


def bounds(case, epsilon, peer_epsilon):
    """The exact sum, our bound and the peer's: (L/2 + c) epsilon sum|x w|, L the number of weights, for a chain that
    rounds products and sums. c is 2, for the last steps; 4 for us where a kernel of rank one may be taken as column
    times row, each weight up to 2 ulp off."""
    rank_one = np.linalg.matrix_rank(case.kernel.astype(np.float64)) == 1
    total, magnitude = definition(case, np.longdouble if case.output == np.float64 else np.float64)
    half = case.kernel.size / 2
    return total, (half + (4 if rank_one else 2)) * epsilon * magnitude, (half + 2) * peer_epsilon * magnitude


def within_bound(case, result, peer):
    """Floating-point results: both err by no more than their bound, so that they differ by no more than the sum."""
    epsilon = DOUBLE if case.output == np.float64 else SINGLE
    _, own, other = bounds(case, epsilon, epsilon)
    difference = np.abs(result.astype(np.float64) - peer.astype(np.float64))
    bound = (own + other).astype(np.float64)
    beyond = np.count_nonzero(~(difference <= bound))
    worst = np.max(difference / np.where(bound > 0, bound, 1))
    if beyond:
        return f"{beyond} of {result.size} values differ by more than the bound; the largest by {worst:.3g} of it", ""
    return "", f"largest difference {worst:.3f} of the bound"


def rounded_within_bound(case, result, peer, peer_epsilon=None):
    """Integer results of non-integer weights: a sum within the bound of the exact one, rounded to nearest. Two such
    results differ only where a half lies within the bound of the exact sum."""
    total, own, other = bounds(case, SINGLE, peer_epsilon or SINGLE)
    limits = np.iinfo(case.output)
    for name, values, bound in (("omniconv's", result, own), ("the peer's", peer, other)):
        lowest = np.clip(np.rint(total - bound), limits.min, limits.max)
        highest = np.clip(np.rint(total + bound), limits.min, limits.max)
        outside = np.count_nonzero((values < lowest) | (values > highest))
        if outside:
            return f"{outside} of {values.size} of {name} values are no rounding of a sum within the bound", ""
    different = np.count_nonzero(result != peer)
    if not different:
        return "", "equal"
    largest = np.max(np.abs(result.astype(np.int64) - peer.astype(np.int64)))
    return "", f"{different} of {result.size} round a near half the other way, by {largest} at most"


def within_bound_of_running(case, result, peer):
    """SciPy's running sum of a line never forgets: two operations a step, each rounded relative to a window's sum, and
    that over lines in both directions."""
    _, own, _ = bounds(case, DOUBLE, DOUBLE)
    steps = sum(case.image.shape[:2]) + sum(case.kernel.shape)
    bound = own.astype(np.float64) + (steps + 4) * DOUBLE * max(np.max(np.abs(case.image)), VALUE)
    difference = np.abs(result - peer)
    beyond = np.count_nonzero(~(difference <= bound))
    if beyond:
        return f"{beyond} of {result.size} values differ by more than the bound", ""
    return "", f"largest difference {np.max(difference / bound):.3f} of the bound"


def rounded_from_double(case, result, peer):
    """The same, where the peer sums in double precision."""
    return rounded_within_bound(case, result, peer, DOUBLE)


def image_of(random, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (random.random(shape) * 255).astype(dtype)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def real_kernel(random, size):
    return (random.standard_normal(size) / np.sqrt(size[0] * size[1])).astype(np.float32)


def product_kernel(random, size):
    """Rank one, as blurs are: omniconv sums such kernels along the row first, as column times row."""
    column, row = (np.exp(-np.linspace(-1.2, 1.2, extent)**2) for extent in size)
    return (np.outer(column, row) / (column.sum() * row.sum())).astype(np.float32)


def equal_kernel(random, size):
    return np.full(size, 1 / (size[0] * size[1]), np.float32)


def integer_kernel(random, size):
    return random.integers(-4, 4, size, endpoint=True).astype(np.float32) + np.float32(size == (1, 1))


def corners(size):
    """Anchors that are not in the middle: first and last tap."""
    return [(0, 0), (size[0] - 1, size[1] - 1)]


def compare_scipy(comparison, random):
    shapes = [(13, 17), (11, 9, 3)]
    tiny = [((5, 4), (9, 11)), ((2, 3), (9, 10)), ((1, 1), (3, 5)), ((1, 6), (8, 4)), ((3, 2, 4), (7, 7))]
    pairs = [(shape, size) for shape in shapes for size in SIZES] + tiny
    for (shape, size), border, convolve in itertools.product(pairs, BORDERS, (False, True)):
        image, kernel = image_of(random, np.float64, shape), random.standard_normal(size)
        name = "scipy.convolve" if convolve else "scipy.correlate"
        anchors = [None] + (corners(size) if size in ((3, 3), (2, 6), (8, 4)) else [])
        for anchor in anchors:
            case = Case(image, kernel, border, np.float64, anchor, convolve)
            comparison.check(name, case, scipy_filter(case), within_bound)
    separable = np.outer([1, 3, 4, 2], [0.3, 0.5, 0.1])
    for border in BORDERS:
        case = Case(image_of(random, np.float64, (19, 23, 3)), separable, border, np.float64)
        comparison.check("scipy.correlate", case, scipy_filter(case), within_bound)
    # Into integers: doubles, rounded once and saturated. SciPy's own output in integers would truncate and wrap around.
    makers = [real_kernel, product_kernel, equal_kernel]
    for dtype, make_kernel, border in itertools.product((np.uint8, np.uint16), makers, BORDERS):
        case = Case(image_of(random, dtype, (47, 61)), make_kernel(random, (3, 5)), border, dtype)
        limits = np.iinfo(dtype)
        rounded = np.clip(np.rint(scipy_filter(case)), limits.min, limits.max).astype(dtype)
        comparison.check("scipy, rounded", case, rounded, rounded_from_double)
    for size, convolve in itertools.product([(3, 3), (4, 2), (13, 17)], (False, True)):
        case = Case(image_of(random, np.float64, (13, 17, 3)), random.standard_normal(size), "valid", np.float64, None,
                    convolve)
        comparison.check("scipy.signal", case, scipy_valid(case), within_bound)


def compare_numpy(comparison, random):
    pairs = [((12, 10, 3), (3, 3)), ((12, 10), (4, 2)), ((3, 4), (9, 10)), ((1, 1), (5, 5)), ((1, 7), (4, 3))]
    for (shape, size), border, convolve in itertools.product(pairs, BORDERS, (False, True)):
        case = Case(image_of(random, np.uint8, shape), integer_kernel(random, size), border, np.int32, None, convolve)
        if numpy_can(case):
            comparison.check("numpy.pad", case, numpy_filter(case), same_bits)


def compare_opencv(comparison, random):
    judges = [(np.uint8, np.uint8, integer_kernel, same_bits), (np.uint8, np.int16, integer_kernel, same_bits),
              (np.uint16, np.uint16, integer_kernel, same_bits),
              (np.uint8, np.uint8, real_kernel, rounded_within_bound),
              (np.uint16, np.uint16, real_kernel, rounded_within_bound),
              (np.uint8, np.uint8, product_kernel, rounded_within_bound),
              (np.uint16, np.uint16, product_kernel, rounded_within_bound),
              (np.uint16, np.uint16, equal_kernel, rounded_within_bound),
              (np.float32, np.float32, product_kernel, within_bound),
              (np.uint8, np.float32, real_kernel, within_bound), (np.float32, np.float32, real_kernel, within_bound)]
    for (given, wanted, make_kernel, judge), (number, size), border in itertools.product(judges, enumerate(SIZES),
                                                                                       BORDERS):
        shape = [(47, 61, 3), (47, 61, 4), (47, 61)][number % 3]
        case = Case(image_of(random, given, shape), make_kernel(random, size), border, wanted)
        comparison.check("cv2.filter2D", case, opencv_filter(case), judge)
    for size, border, convolve in itertools.product([(3, 3), (4, 3)], BORDERS, (False, True)):
        for anchor in corners(size):
            case = Case(image_of(random, np.uint8, (15, 14, 3)), integer_kernel(random, size), border, np.uint8, anchor,
                        convolve)
            comparison.check("cv2.filter2D", case, opencv_filter(case), same_bits)
    # The mean of four or sixteen bytes often ends in exactly a half; both round it to the even neighbour.
    for size, border in itertools.product([(2, 2), (4, 4)], BORDERS):
        case = Case(image_of(random, np.uint8, (47, 61, 3)), equal_kernel(random, size), border, np.uint8)
        comparison.check("cv2.filter2D", case, opencv_filter(case), same_bits)


GRADIENTS = {"sobel": [1, 2, 1], "prewitt": [1, 1, 1], "scharr": [3, 10, 3]}


def directions(case):
    """The two filterings whose magnitude a gradient is."""
    return [Case(case.image, kernel, case.border, case.output) for kernel in (case.kernel, case.kernel.T)]


def magnitude_within_bound(case, result, peer):
    """Both sums err by their bound at most, and the magnitude rounds three times more: (L/2 + c + 1) epsilon times the
    magnitude of both sums of magnitudes, for omniconv and for the peer."""
    epsilon = DOUBLE if case.output == np.float64 else SINGLE
    scales = [definition(direction)[1] for direction in directions(case)]
    half = case.kernel.size / 2
    bound = ((half + 5) + (half + 3)) * epsilon * np.hypot(*scales)
    difference = np.abs(result.astype(np.float64) - peer.astype(np.float64))
    beyond = np.count_nonzero(~(difference <= bound))
    worst = np.max(difference / np.where(bound > 0, bound, 1))
    if beyond:
        return f"{beyond} of {result.size} values differ by more than the bound; the largest by {worst:.3g} of it", ""
    return "", f"largest difference {worst:.3f} of the bound"


def opencv_gradient(case):
    """cv2.Sobel twice and cv2.magnitude, in fp32; Prewitt's pair by filter2D."""
    border = OPENCV_BORDERS[case.border]
    if case.name == "sobel":
        sums = [cv2.Sobel(case.image, cv2.CV_32F, *order, borderType=border) for order in ((1, 0), (0, 1))]
    elif case.name == "scharr":
        sums = [cv2.Scharr(case.image, cv2.CV_32F, *order, borderType=border) for order in ((1, 0), (0, 1))]
    else:
        kernels = (case.kernel, np.ascontiguousarray(case.kernel.T))
        sums = [cv2.filter2D(case.image, cv2.CV_32F, kernel, borderType=border) for kernel in kernels]
    return cv2.magnitude(*sums)


def compare_gradients(comparison, random):
    """Magnitudes of Sobel, Prewitt and Scharr. Into bytes they are integers' roots, which no rounding brings across a
    half: NumPy's and OpenCV's, rounded, are the same bytes."""
    for (name, smoothing), border in itertools.product(GRADIENTS.items(), BORDERS):
        kernel = np.outer(smoothing, [-1, 0, 1]).astype(np.float32)
        for shape in [(47, 61, 3), (13, 40), (1, 5), (2, 1, 2)]:
            # Low contrast, so that most magnitudes fit.
            image = image_of(random, np.uint8, shape) // np.uint8(sum(smoothing))
            case = Case(image, kernel, border, np.uint8, name=name)
            if numpy_can(case):
                exact = np.hypot(*[numpy_filter(direction) for direction in directions(case)])
                comparison.check("numpy.hypot", case, np.minimum(np.rint(exact), 255).astype(np.uint8), same_bits)
        if border not in ("constant", "wrap"):
            image = image_of(random, np.uint8, (47, 61, 3)) // np.uint8(sum(smoothing))
            case = Case(image, kernel, border, np.uint8, name=name)
            rounded = np.minimum(np.rint(opencv_gradient(case)), 255).astype(np.uint8)
            comparison.check("cv2.magnitude", case, rounded, same_bits)
            for dtype in (np.uint8, np.uint16, np.float32):
                case = Case(image_of(random, dtype, (31, 53)), kernel, border, np.float32, name=name)
                comparison.check("cv2.magnitude", case, opencv_gradient(case), magnitude_within_bound)
        # SciPy filters axis after axis, and puts the constant beside the results of the first: not the same filter.
        if name != "scharr" and border != "constant":
            case = Case(image_of(random, np.float64, (23, 31)), kernel, border, np.float64, name=name)
            function = getattr(ndimage, name)
            sums = [function(case.image, axis, mode=SCIPY_MODES[border]) for axis in (1, 0)]
            comparison.check("scipy." + name, case, np.hypot(*sums), magnitude_within_bound)


def compare_boxes(comparison, random):
    """Means. An odd number of integers has no mean that ends in a half, so that roundings to nearest agree."""
    sizes = [(3, 3), (5, 5), (15, 15), (31, 31), (1, 9), (41, 7), (3, 63)]
    for size, border, shape in itertools.product(sizes, BORDERS, [(67, 95, 3), (67, 95)]):
        case = Case(image_of(random, np.uint8, shape), equal_kernel(random, size), border, np.uint8)
        comparison.check("cv2.blur", case, opencv_blur(case), same_bits)
    for size, border, anchor in itertools.product([(5, 5), (31, 7)], BORDERS, ["first", "last"]):
        at = (0, 0) if anchor == "first" else (size[0] - 1, size[1] - 1)
        case = Case(image_of(random, np.uint8, (67, 95, 3)), equal_kernel(random, size), border, np.uint8, at)
        comparison.check("cv2.blur", case, opencv_blur(case), same_bits)
    for size, border in itertools.product([(3, 3), (31, 31), (4, 6)], BORDERS):
        case = Case(image_of(random, np.uint16, (67, 95, 3)), equal_kernel(random, size), border, np.uint16)
        comparison.check("cv2.blur", case, opencv_blur(case), rounded_within_bound)
    for size, border in itertools.product(sizes + [(4, 6), (32, 32)], BORDERS):
        image = image_of(random, np.float32, (67, 95, 3))
        case = Case(image, equal_kernel(random, size), border, np.float32)
        comparison.check("cv2.blur", case, opencv_blur(case), within_bound)
        kernel = np.full(size, 1 / (size[0] * size[1]))
        case = Case(image.astype(np.float64), kernel, border, np.float64)
        comparison.check("scipy.uniform", case, scipy_uniform(case), within_bound_of_running)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omniconv", help="the program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--solver", default="auto")
    arguments = parser.parse_args()
    if not os.access(arguments.omniconv, os.X_OK):
        print(f"{arguments.omniconv} is no program; build the target omniconv and give its path", file=sys.stderr)
        return 2
    random = np.random.default_rng(20240607)
    # In memory where that can be had: every output waits until its disk has it.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        comparison = Comparison(arguments, folder)
        compare_scipy(comparison, random)
        compare_numpy(comparison, random)
        compare_opencv(comparison, random)
        compare_gradients(comparison, random)
        compare_boxes(comparison, random)
    print(f"{comparison.count} comparisons, {comparison.mismatches} mismatches")
    return 1 if comparison.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
