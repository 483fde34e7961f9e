#!/usr/bin/env python3
"""Times omniconv beside CuPy, NPP and CV-CUDA on one NVIDIA GPU, and compares their values.

    scripts/compare-gpu-peers.py [--omniconv build/lean/bin/omniconv] [--json peers.json] [--side 11200] [--device cuda --device opencl]

Images are u8 with 3 and 4 channels, weights 3x3, 5x5 and 7x7 of full rank and no integers. All times are device time by events, with
data resident and larger than the caches; omniconv's come from `omniconv bench --json`, run just before the peers on the same problem. A
peer is compared with omniconv under the border that both have: `reflect` for CuPy (SciPy's name for it is the same), `replicate` for
NPP and CV-CUDA. The peers run in one process and need CuPy, which gives them memory and events; one that is not there is
named with the reason. NPP is looked for in Python's `nvidia` packages and in the CUDA toolkit; --npp names a folder.

Values are compared on a small image that omniconv filters with the same weights: CuPy's in float32 (its u8 results are cut off
and not rounded) within both sides' rounding errors, NPP's and CV-CUDA's in u8 within 1, since how they round is not stated. Exit
status 1 where values differ by more, or omniconv fails.
"""
import argparse
import ctypes
import datetime
import glob
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent


class Missing(Exception):
    """Why a peer cannot be compared."""


def first_line(error):
    return f"{type(error).__name__}: {error}".splitlines()[0]


# --- omniconv


class Omniconv:
    def __init__(self, command, device, budget):
        self.command, self.device, self.budget = command, device, budget

    def run(self, *arguments):
        done = subprocess.run([self.command, *map(str, arguments), "--device", self.device], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Missing((done.stderr or done.stdout).strip().splitlines()[-1])

    def bench(self, problems, folder):
        report = folder / "bench.json"
        self.run("bench", *problems, "--quiet", "--budget", self.budget, "--json", report)
        found = json.loads(report.read_text())
        for result in found["results"]:
            if result["status"] != "ok":
                raise Missing(f"{result['problem']}: {result['reason']}")
        return found

    def filtered(self, numpy, image, weights, border, depth, folder):
        numpy.save(folder / "in.npy", image)
        rows = (" ".join(f"{float(weight):.9g}" for weight in row) for row in weights)
        (folder / "weights.txt").write_text("\n".join(rows) + "\n")
        self.run("filter", folder / "in.npy", folder / "out.npy", "--kernel", f"@{folder / 'weights.txt'}", "--border", border,
                 "--alpha", "filter", "--depth", depth)
        return numpy.load(folder / "out.npy")


# --- Peers. Each has a name, the border that it is compared under, and prepare(image, weights, output type): a function that
# submits one run to the current stream, and the array on the GPU that it fills. Weights are those of a correlation.


class CuPy:
    name, call, border, checked_depth = "CuPy", "cupyx.scipy.ndimage.convolve", "reflect", "float32"

    def __init__(self, cupy, _options):
        try:
            from cupyx.scipy import ndimage
        except Exception as error:
            raise Missing(first_line(error)) from error
        self.cupy, self.ndimage, self.version = cupy, ndimage, cupy.__version__

    def prepare(self, image, weights, depth):
        turned = self.cupy.asarray(weights[::-1, ::-1, None].copy())
        output = self.cupy.empty(image.shape, depth)
        return lambda: self.ndimage.convolve(image, turned, output=output, mode="reflect"), output

    def tolerance(self, weights):
        # Two chains of fp32 multiply-adds, each within taps rounding errors of half an epsilon.
        return 2 * (weights.size + 2) * 2.0**-24 * 255 * float(abs(weights).sum())


class NppStreamContext(ctypes.Structure):
    """As nppdefs.h of NPP 12 and 13 declares it."""
    _fields_ = [("hStream", ctypes.c_void_p), ("nCudaDeviceId", ctypes.c_int), ("nMultiProcessorCount", ctypes.c_int),
                ("nMaxThreadsPerMultiProcessor", ctypes.c_int), ("nMaxThreadsPerBlock", ctypes.c_int), ("nSharedMemPerBlock", ctypes.c_size_t),
                ("nCudaDevAttrComputeCapabilityMajor", ctypes.c_int), ("nCudaDevAttrComputeCapabilityMinor", ctypes.c_int),
                ("nStreamFlags", ctypes.c_uint), ("nReserved0", ctypes.c_int)]


class NppPair(ctypes.Structure):
    """NppiSize (width, height) and NppiPoint (x, y)."""
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int)]


def npp_libraries(folder):
    """libnppc and libnppif, from the first place that has both, the newest version of each."""
    places = [folder] if folder else []
    if not folder:
        for entry in sys.path:
            places += sorted(glob.glob(os.path.join(entry or ".", "nvidia", "*", "lib")), reverse=True)
        places += [os.path.join(os.environ[name], "lib64") for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
        places += sorted(glob.glob("/usr/local/cuda*/lib64"), reverse=True) + sorted(glob.glob("/usr/local/cuda*/targets/*/lib"), reverse=True)
        places += (os.environ.get("LD_LIBRARY_PATH") or "").split(":")
    for place in filter(None, places):
        found = [sorted(glob.glob(os.path.join(place, f"lib{name}.so.*")), key=len)[:1] for name in ("nppc", "nppif")]
        if all(found):
            return [paths[0] for paths in found]
    raise Missing("libnppc.so and libnppif.so were found neither in Python's nvidia packages nor in a CUDA toolkit; the package nvidia-npp has them")


class Npp:
    name, call, border, checked_depth = "NPP", "nppiFilterBorder32f_8u_C{channels}R_Ctx", "replicate", "uint8"
    replicate = 2  # NPP_BORDER_REPLICATE

    def __init__(self, cupy, options):
        self.cupy = cupy
        core, filtering = npp_libraries(options.npp)
        try:
            core = ctypes.CDLL(core, mode=ctypes.RTLD_GLOBAL)
            self.library = ctypes.CDLL(filtering)
            core.nppGetLibVersion.restype = ctypes.POINTER(ctypes.c_int * 3)
            self.version = ".".join(map(str, core.nppGetLibVersion().contents))
            for channels in (3, 4):
                function = getattr(self.library, self.call.format(channels=channels))
                function.restype = ctypes.c_int
                function.argtypes = [ctypes.c_void_p, ctypes.c_int, NppPair, NppPair, ctypes.c_void_p, ctypes.c_int, NppPair, ctypes.c_void_p,
                                     NppPair, NppPair, ctypes.c_int, NppStreamContext]
        except (OSError, AttributeError) as error:
            raise Missing(first_line(error)) from error

    def context(self):
        device = self.cupy.cuda.Device().id
        properties = self.cupy.cuda.runtime.getDeviceProperties(device)
        return NppStreamContext(
            hStream=self.cupy.cuda.get_current_stream().ptr or None, nCudaDeviceId=device, nMultiProcessorCount=properties["multiProcessorCount"],
            nMaxThreadsPerMultiProcessor=properties["maxThreadsPerMultiProcessor"], nMaxThreadsPerBlock=properties["maxThreadsPerBlock"],
            nSharedMemPerBlock=properties["sharedMemPerBlock"], nCudaDevAttrComputeCapabilityMajor=properties["major"],
            nCudaDevAttrComputeCapabilityMinor=properties["minor"], nStreamFlags=0, nReserved0=0)

    def prepare(self, image, weights, _depth):
        height, width, channels = image.shape
        function = getattr(self.library, self.call.format(channels=channels))
        output = self.cupy.empty_like(image)
        # Its documentation stores coefficients "in reverse order": those of a correlation, last tap first.
        stored = self.cupy.asarray(weights[::-1, ::-1].copy())
        size, context = NppPair(width, height), self.context()
        kernel, middle = NppPair(weights.shape[1], weights.shape[0]), NppPair(weights.shape[1] // 2, weights.shape[0] // 2)

        def run():
            status = function(image.data.ptr, width * channels, size, NppPair(0, 0), output.data.ptr, width * channels, size, stored.data.ptr,
                              kernel, middle, self.replicate, context)
            if status < 0:
                raise Missing(f"{self.call.format(channels=channels)} returned {status}")
        return run, output

    def tolerance(self, _weights):
        return 1


class CvCuda:
    name, call, border, checked_depth = "CV-CUDA", "cvcuda.conv2d_into", "replicate", "uint8"

    def __init__(self, cupy, _options):
        try:
            import cvcuda
        except Exception as error:
            raise Missing(first_line(error)) from error
        self.cupy, self.cvcuda, self.version = cupy, cvcuda, cvcuda.__version__

    def batch(self, array, form):
        batch = self.cvcuda.ImageBatchVarShape(1)
        batch.pushback(self.cvcuda.as_image(array, form))
        return batch

    def prepare(self, image, weights, _depth):
        form = {3: self.cvcuda.Format.RGB8, 4: self.cvcuda.Format.RGBA8}[image.shape[2]]
        output = self.cupy.empty_like(image)
        stored, middle = self.cupy.asarray(weights), self.cupy.full((1, 2), -1, "int32")
        source, target = self.batch(image, form), self.batch(output, form)
        kernel, anchor = self.batch(stored, self.cvcuda.Format.F32), self.cvcuda.as_tensor(middle, "NC")
        stream = self.cvcuda.as_stream(self.cupy.cuda.get_current_stream().ptr)
        kept = (image, stored, middle)  # the batches borrow them

        def run(_kept=kept):
            self.cvcuda.conv2d_into(target, source, kernel, anchor, self.cvcuda.Border.REPLICATE, stream=stream)
        return run, output

    def tolerance(self, _weights):
        return 1


def find_peers(options):
    """The peers that are there, and the reasons for those that are not; CuPy's module, or None."""
    missing, peers = {}, []
    try:
        import cupy
        cupy.cuda.Device().compute_capability  # fails where there is no GPU
    except Exception as error:
        reason = first_line(error)
        return None, peers, {"CuPy": reason, "NPP": f"needs CuPy ({reason})", "CV-CUDA": f"needs CuPy ({reason})"}
    for kind in (CuPy, Npp, CvCuda):
        try:
            peers.append(kind(cupy, options))
        except Missing as reason:
            missing[kind.name] = str(reason)
    return cupy, peers, missing


# --- Times and values


def times(cupy, run, least=10, budget=0.5):
    """Milliseconds of single runs, by events, after two that are not counted."""
    for _ in range(2):
        run()
    cupy.cuda.get_current_stream().synchronize()
    found = []
    while len(found) < least or (sum(found) < budget * 1e3 and len(found) < 200):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(begin, end))
    return found


def random_pixels(side, channels):
    import numpy
    return numpy.random.default_rng(1).integers(0, 256, (side, side, channels), "uint8")


def make_weights(numpy, size):
    weights = numpy.random.default_rng(size).uniform(0.2, 1, (size, size))
    return (weights / weights.sum()).astype("float32")


def compare_values(cupy, peer, ours, channels, size, folder):
    """The largest difference, the share of values that differ, and what is allowed."""
    import numpy
    image = numpy.random.default_rng(channels).integers(0, 256, (301, 403, channels), "uint8")
    weights = make_weights(numpy, size)
    depth = {"float32": "f32", "uint8": "u8"}[peer.checked_depth]
    expected = ours.filtered(numpy, image, weights, peer.border, depth, folder)
    run, output = peer.prepare(cupy.asarray(image), weights, peer.checked_depth)
    run()
    cupy.cuda.get_current_stream().synchronize()
    difference = abs(cupy.asnumpy(output).astype("float64") - expected.astype("float64"))
    return {"largest_difference": float(difference.max()), "differing": float((difference > 0).mean()), "allowed": peer.tolerance(weights)}


def compare(cupy, stream, peer, ours, ours_ms, pixels, size, folder):
    """`pixels` lie on the host. The ratio is the peer's time divided by omniconv's."""
    import numpy
    channels = pixels.shape[2]
    result = {"name": peer.name, "call": peer.call.format(channels=channels), "border": peer.border}
    try:
        with stream:
            result.update(compare_values(cupy, peer, ours, channels, size, folder))
            image = cupy.asarray(pixels)
            run, output = peer.prepare(image, make_weights(numpy, size), "uint8")
            found = times(cupy, run)
        result.update(median_ms=statistics.median(found), min_ms=min(found), samples=len(found))
        result["ratio"] = result["median_ms"] / ours_ms[peer.border]
        result["status"] = "ok" if result["largest_difference"] <= result["allowed"] else "values differ"
        del run, output, image
    except Exception as error:  # a peer's own errors are of any kind
        result.update(status="failed", reason=first_line(error))
    cupy.get_default_memory_pool().free_all_blocks()
    return result


def print_result(case, ours, peers):
    for border, result in ours.items():
        print(f"{case:<32} omniconv {border:<10} {result['median_ms']:9.3f} ms   {100 * result['roofline']:.0f} % of the floor, {result['solver']}")
    for peer in peers:
        if "median_ms" not in peer:
            print(f"{case:<32} {peer['name']:<19} {peer['status']}: {peer['reason']}")
            continue
        print(f"{case:<32} {peer['name']:<19} {peer['median_ms']:9.3f} ms   {peer['ratio']:.2f} times omniconv's ({peer['border']}); "
              f"{peer['status']}: largest difference {peer['largest_difference']:.3g}, allowed {peer['allowed']:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--omniconv", default=root / "build/lean/bin/omniconv", help="the command")
    parser.add_argument("--device", action="append", help="omniconv's device; may be given more than once (default: cuda)")
    parser.add_argument("--side", type=int, default=11200, help="pixels along each side")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each of omniconv's timings")
    parser.add_argument("--npp", help="the folder of libnppc.so and libnppif.so")
    parser.add_argument("--json", help="where the report goes")
    options = parser.parse_args()
    if options.side < 8:
        parser.error(f"--side {options.side} is too small: 8 at least")
    if not os.access(options.omniconv, os.X_OK):
        parser.error(f"--omniconv {options.omniconv} is no program: build it (cmake --preset lean), or name it")

    sys.stdout.reconfigure(line_buffering=True)
    cupy, peers, missing = find_peers(options)
    for name, reason in missing.items():
        print(f"not compared: {name}: {reason}")
    report = {"schema": "omniconv-peers/1", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "versions": {peer.name: peer.version for peer in peers}, "missing": missing, "results": []}
    failures = 0
    stream = cupy.cuda.Stream(non_blocking=True) if cupy else None  # one for all: CV-CUDA keeps those that it was given
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for channels in (3, 4):
            pixels = random_pixels(options.side, channels) if peers else None
            for size, device in itertools.product((3, 5, 7), options.device or ["cuda"]):
                case = f"{device} u8 {options.side}x{options.side}x{channels} {size}x{size}"
                borders = sorted({"reflect"} | {peer.border for peer in peers})
                problems = [f"filter2d u8 h{options.side}w{options.side}c{channels}r{size}s{size} {border}" for border in borders]
                omniconv = Omniconv(str(options.omniconv), device, options.budget)
                try:
                    bench = omniconv.bench(problems, folder)
                except Missing as reason:
                    print(f"{case:<32} omniconv failed: {reason}")
                    failures += 1
                    continue
                ours = dict(zip(borders, bench["results"]))
                ours_ms = {border: result["median_ms"] for border, result in ours.items()}
                found = [compare(cupy, stream, peer, omniconv, ours_ms, pixels, size, folder) for peer in peers]
                failures += sum(peer["status"] != "ok" for peer in found)
                print_result(case, ours, found)
                report.setdefault("commit", bench["commit"])
                report["results"].append({"device": bench["device"], "channels": channels, "size": size, "side": options.side,
                                          "omniconv": ours, "peers": found})
                if options.json:  # now, since a peer may take the process with it
                    pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
