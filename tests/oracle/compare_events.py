#!/usr/bin/env python3
"""Reads what `omniconv train --tensorboard` writes with TensorBoard's own reader.

    compare_events.py OMNICONV

The numbers must be those of `--json`, rounded to float32, at the steps that were done; those of a training that was stopped and
goes on, of one that begins anew in the folder, and of one that was killed, each as TensorBoard shows them. Checksums are computed
by google_crc32c, too, so that a reader that does not look at them lets nothing pass. Exit status 77 where TensorBoard is missing.
"""
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

try:
    import google_crc32c
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as missing:
    print(f"skipped: {missing}: scripts/setup.sh --tests fetches it")
    sys.exit(77)
import numpy as np

TRAIN = "train net.txt --dataset shapes --train-size 400 --test-size 50 --device cpu --batch 40 --deterministic --quiet".split()


def train(command, folder, *words):
    done = subprocess.run([command, *TRAIN, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"omniconv {' '.join(words)}\n{done.stdout}{done.stderr}")


def require(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def scalars_in(folder):
    read = EventAccumulator(str(folder))
    read.Reload()
    return {tag: [(event.step, event.value) for event in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def expected_of(report, steps):
    epochs = report["epochs"]
    at = [(epoch["epoch"] * steps, epoch) for epoch in epochs]
    single = lambda value: float(np.float32(value))
    found = {
        "loss/training": [(step, single(epoch["loss"])) for step, epoch in at],
        "rate": [(step, single(epoch["rate"])) for step, epoch in at],
        "images_per_second": [(step, single(epoch["images_per_second"])) for step, epoch in at],
        "loss/test": [(at[-1][0], single(report["test"]["loss"]))],
        "accuracy/test": [(at[-1][0], single(report["test"]["accuracy"]))],
    }
    if "validation" in epochs[0]:
        found["loss/validation"] = [(step, single(epoch["validation"]["loss"])) for step, epoch in at]
        found["accuracy/validation"] = [(step, single(epoch["validation"]["accuracy"])) for step, epoch in at]
    return found


def require_whole(path):
    """Every record's checksums, by another implementation."""
    data, at, records = path.read_bytes(), 0, 0
    masked = lambda part: ((google_crc32c.value(part) >> 15 | google_crc32c.value(part) << 17) + 0xA282EAD8) & 0xFFFFFFFF
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        require(at + 16 + length <= len(data), f"{path}: a record is cut off")
        require(struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8]), f"{path}: checksum of a length")
        event = data[at + 12 : at + 12 + length]
        require(struct.unpack_from("<I", data, at + 12 + length)[0] == masked(event), f"{path}: checksum of a record")
        at, records = at + 16 + length, records + 1
    return records


def main():
    command = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "net.txt").write_text("input 3 32 32\ndense 10\n")
        report = lambda: json.loads((folder / "r.json").read_text())

        train(command, folder, "--epochs", "3", "--validation", "80", "--json", "r.json", "--tensorboard", "a")
        require(scalars_in(folder / "a") == expected_of(report(), 8), "numbers of a training")
        train(command, folder, "--epochs", "2", "--json", "r.json", "--tensorboard", "plain")
        require(scalars_in(folder / "plain") == expected_of(report(), 10), "numbers without validation")

        # Gone on with: a second file, and the curves are those of the whole training.
        keep = ("--checkpoint", "run", "--tensorboard", "b", "--json", "r.json")
        train(command, folder, "--epochs", "2", *keep)
        first = report()
        time.sleep(1.1)  # files are in the order of their seconds
        train(command, folder, "--epochs", "5", "--resume", *keep)
        require(len(list((folder / "b").iterdir())) == 2, "a file for each training")
        whole = expected_of(report(), 10)
        for tag in ("loss/test", "accuracy/test"):  # that of the first is left where it was
            whole[tag] = expected_of(first, 10)[tag] + whole[tag]
        require(scalars_in(folder / "b") == whole, "numbers of a training that went on")
        # Anew in the same folder: what others say of later steps is void.
        time.sleep(1.1)
        train(command, folder, "--epochs", "1", "--json", "r.json", "--tensorboard", "b")
        require(scalars_in(folder / "b") == expected_of(report(), 10), "numbers of a training anew")

        # Killed: what it had written is whole.
        running = subprocess.Popen([command, *TRAIN, "--epochs", "1000000", "--tensorboard", "c"], cwd=folder)
        while not (folder / "c").exists() or not scalars_in(folder / "c").get("rate"):
            require(running.poll() is None, "the training ended by itself")
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
        running.wait()
        (path,) = (folder / "c").iterdir()
        records = require_whole(path)
        require(len(scalars_in(folder / "c")["loss/training"]) in (records - 2, 10000), "every record that was written")
        for other in ("a", "b"):
            for path in (folder / other).iterdir():
                require_whole(path)
    print("TensorBoard reads what is written")


main()
