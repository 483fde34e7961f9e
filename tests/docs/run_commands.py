#!/usr/bin/env python3
"""Runs the commands that documents show, as they are written, each document in a folder of its own that looks like a fresh clone.

    run_commands.py OMNICONV SOURCE DOCUMENT...

Inputs that a command names are made. It must end with status 0 and write what it says. A command whose comment says that it
takes minutes or a GPU is left out, which is printed with these words.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from commands import calls, commands, reason_to_leave_out
from inputs import put_array, put_image, put_weights


def clone(folder, source, omniconv):
    """What a user has after ./demo.sh, as far as commands need it."""
    shutil.copytree(source / "data", folder / "data")
    binaries = folder / "build" / "release" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "omniconv").symlink_to(omniconv)
    return binaries


def put_inputs(call, folder):
    photograph = folder / "data" / "photo" / "raccoon.jpg"
    if call.image() and not (folder / call.image()).exists():
        put_image(folder / call.image(), photograph)
    if call.kernel_file() and not (folder / call.kernel_file()).exists():
        put_weights(folder / call.kernel_file())
    for option, path in call.arrays():
        if path is None or not call.words:
            raise SystemExit(f"omniconv {call.name}: nobody says where the array of {option} comes from; `cat FILE |` does, and a problem says its extents")
        put_array(folder / path, option, call.words[0])


def only_times_failed(told):
    """Whether a command failed for no other reason than a machine that does something else at the same time."""
    failed = [line for line in told.split("\n") if "failed: " in line]
    return bool(failed) and all(line.endswith("the timing is not to be trusted") for line in failed)


def processor_seconds():
    """Of commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def failure(command, exports, folder, environment):
    """What is wrong with a command; None if nothing is."""
    called = list(calls(command))
    wanted = [folder / path for call in called for path in call.outputs()]
    for path in wanted:
        path.unlink(missing_ok=True)
    for call in called:
        put_inputs(call, folder)
    start, used_before = time.monotonic(), processor_seconds()
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join([*exports, command])], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return "has not ended after ten minutes"
    # By the clock, unless the machine did something else meanwhile.
    if min(time.monotonic() - start, processor_seconds() - used_before) > 60:
        return "takes more than a minute: say so in its comment"
    if done.returncode != 0 and not (done.returncode == 1 and only_times_failed(done.stdout)):
        return f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    missing = [path.name for path in wanted if not path.exists() or path.stat().st_size == 0]
    return f"wrote no {', '.join(missing)}" if missing else None


def run_document(document, source, omniconv):
    ran = failed = left_out = 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        binaries = clone(folder, source, omniconv)
        environment = {**os.environ, "HOME": work, "OMNICONV_CACHE_DIR": str(folder / "cache")}
        text = document.read_text()
        exports = []
        if "export PATH=" not in text:  # one that says how to find the command must be right in that
            environment["PATH"] = f"{binaries}:{environment['PATH']}"
        for line, command, comment in commands(text):
            where = f"{document.name}:{line}: {command}"
            reason = reason_to_leave_out(command, comment)
            if reason:
                left_out += 1
                print(f"left out  {where}\n          {reason}", flush=True)
            elif command.startswith("export "):
                exports.append(command)
            else:
                start = time.monotonic()
                wrong = failure(command, exports, folder, environment)
                ran, failed = ran + 1, failed + bool(wrong)
                print(f"{'FAILED  ' if wrong else 'ok      '}  {where}  ({time.monotonic() - start:.1f} s){f': {wrong}' if wrong else ''}", flush=True)
    print(f"{document.name}: {ran} run, {failed} failed, {left_out} left out", flush=True)
    # A document without a command is one whose commands are no longer recognised.
    return failed == 0 and ran > 0


if len(sys.argv) < 4:
    sys.exit(__doc__)
passed = [run_document(pathlib.Path(name), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[1]).resolve()) for name in sys.argv[3:]]
sys.exit(0 if all(passed) else 1)
