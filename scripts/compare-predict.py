#!/usr/bin/env python3
"""What one image takes, from its numbers on the host to the classes' logits there: omniconv beside ONNX Runtime (CPU) or PyTorch (a CUDA graph).

  scripts/compare-predict.py --omniconv build/release/bin/omniconv [--models cifar10-vgg1 resnet20] [--device cpu --threads 2] [--json FILE]

Each model is trained for one step on generated images, so that all have the same weights. Medians of many runs, one after the other, in turns.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = ["mnist-big", "mnist-conv", "cifar10-vgg1", "cifar10-vgg3", "resnet20"]
TURNS = 5


def training_script():
    place = pathlib.Path(__file__).with_name("compare-training.py")
    spec = importlib.util.spec_from_file_location("compare_training", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def median_of(run, runs):
    for _ in range(20):
        run()
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def onnx_runtime(folder, shape, threads):
    import numpy  # pylint: disable=import-outside-toplevel
    import onnxruntime  # pylint: disable=import-outside-toplevel
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(f"{folder}/net.onnx", options, providers=["CPUExecutionProvider"])
    image = numpy.random.default_rng(1).standard_normal((1, *shape), dtype=numpy.float32)
    return f"ONNX Runtime {onnxruntime.__version__}", lambda: session.run(None, {"input": image})


def torch_graph(text, shape):
    import torch  # pylint: disable=import-outside-toplevel
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model = training_script().torch_model(torch, text).cuda().eval()
    given, image = torch.zeros(1, *shape, device="cuda"), torch.randn(1, *shape).pin_memory()
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                model(given)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = model(given)

    def run():
        given.copy_(image, non_blocking=True)
        graph.replay()
        return made.cpu()
    return f"PyTorch {torch.__version__}", run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--omniconv", default="build/release/bin/omniconv")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of both, on the CPU")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    device = ["--device", arguments.device] + (["--threads", str(arguments.threads)] if arguments.device == "cpu" else [])
    rows = []
    print(f"{'model':14} {'omniconv us':>12} {'peer us':>10} {'ratio':>6}", flush=True)
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            shape = training_script().input_of(model)
            dataset = "fashion-mnist-sample" if shape[0] == 1 else "shapes"
            subprocess.run([arguments.omniconv, "train", model, "--dataset", dataset, "--epochs", "1", "--train-size", "8", "--test-size", "8", "--batch", "8",
                            "--checkpoint", f"{folder}/run", "--quiet", "--device", "cpu"], check=True)
            picture = pathlib.Path(folder, "image.pgm" if shape[0] == 1 else "image.ppm")
            picture.write_bytes(f"{'P5' if shape[0] == 1 else 'P6'} {shape[2]} {shape[1]} 255\n".encode() + bytes(i * 37 % 256 for i in range(shape[0] * shape[1] * shape[2])))
            if arguments.device == "cpu":
                subprocess.run([arguments.omniconv, "export", f"{folder}/run", "--onnx", f"{folder}/net.onnx", "--quiet"], check=True)
                peer, run = onnx_runtime(folder, shape, arguments.threads)
            else:
                peer, run = torch_graph(training_script().text_of(arguments.omniconv, model), shape)
            own, others = [], []
            for _ in range(TURNS):
                subprocess.run([arguments.omniconv, "predict", f"{folder}/run", str(picture), "--repeat", str(arguments.runs), "--quiet", "--json",
                                f"{folder}/found.json"] + device, check=True)
                found = json.loads(pathlib.Path(folder, "found.json").read_text(encoding="utf-8"))
                own.append(found["images"][0]["seconds"])
                others.append(median_of(run, arguments.runs))
        rows.append({"model": model, "omniconv": statistics.median(own), "peer": statistics.median(others), "library": peer})
        print(f"{model:14} {rows[-1]['omniconv'] * 1e6:12.1f} {rows[-1]['peer'] * 1e6:10.1f} {rows[-1]['peer'] / rows[-1]['omniconv']:6.2f}  {peer}", flush=True)
        if arguments.json:
            part = pathlib.Path(arguments.json + ".part")
            part.write_text(json.dumps({"schema": "omniconv-predict-peers/1", "commit": found["commit"], "date": found["date"], "device": found["device"],
                                        "threads": arguments.threads, "rows": rows}, indent=1), encoding="utf-8")
            os.replace(part, arguments.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
