#!/usr/bin/env python3
"""Builds two commits and compares the outputs of all their solvers, bit for bit, and on request their instructions.

    scripts/compare-commits.py OLD NEW [--device cpu --device opencl] [--lists tails anchors ...] [--callgrind]

Both libraries are built (preset release) in worktrees that are taken away afterwards, and with each of them the same program,
bench/output_hashes, which knows the public headers alone. It shrinks and varies OLD's problem lists (bench/output_hashes/cases.h has the
rules), fills inputs with random numbers that are always the same, poisons outputs and workspaces, runs every solver that serves, and prints a hash
of each output with the memory around it. Every solver must serve in NEW what it serves in OLD, with the same hash; what only NEW has is counted as
new. A device that neither commit finds is skipped. Vector code runs with the machine's best instruction set alone.

--callgrind counts the instructions of CPU solvers on one thread, by valgrind: those that a run more takes, so that neither starting nor planning is
in them. NEW may have 1 % more. Beside their ratio stands that of all that the libraries do for a single run, planning included, for information. valgrind knows no AVX-512, so that solvers take AVX2 there; their hashes are compared too.

What was built stays in --build-folder (build/compare-commits): a commit is built once. Exit status 1 where anything differs or failed, or nothing
was compared.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent
LISTS = ["filters", "anchors", "tails", "gradients", "gemm", "pooling", "activations", "biases", "adds", "batch_norms", "dropouts", "losses", "norms", "updates",
         "batches"]  # those that take longest first
PROBLEMS_AT_A_TIME = 12  # of a list, by one process
NO_DEVICE = 77
SHOWN = 40  # differences of a device; a file has all of them
MOST_INSTRUCTIONS = 1.01  # of OLD's
COUNTED_RUNS = 2
# Each of millions of instructions, beside which those that submit a run are nothing.
COUNTED = [
    "filter2d u8 h353w701c3r3s3",
    "filter2d u8 h352w700c3r5s5 kernel:integer",
    "filter2d u8 h353w701c3r7s7 kernel:equal",
    "filter2d u16 h353w701c3r7s7 constant:9 kernel:rank1",
    "filter2d f32 h353w701r9s9 kernel:rank2",
    "filter2d f16 h201w301c3r5s5 wrap",
    "filter2d u8 h353w701c3r3s3 kernel:sobel",
    "filter2d u8 h201w301c4r5s5 alpha:3",
    "n2c32h28w28k48r3s3p1",
    "bwd_data n2c32h28w28k48r3s3p1",
    "bwd_filter n2c32h28w28k48r3s3p1",
    "nhwc n3c17h29w31k33r5s3p1u2",
    "bwd_filter bf16 nhwc n3c17h29w31k33r3s3p1",
    "f16 n1c64h28w28k64r1s1",
    "gemm f32 nn m256n256k256",
    "gemm bf16 tn m127n129k131",
]


class Failure(Exception):
    """What ends the comparison, in one line."""


def output_of(*command, folder=root, **variables):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    if done.returncode != 0:
        words = shlex.join(str(word) for word in command)
        raise Failure(f"'{words}' ended with status {done.returncode}:\n{(done.stdout + done.stderr).strip()[-4000:]}")
    return done.stdout


def commit_named(name):
    found = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "--short=12", f"{name}^{{commit}}"], cwd=root, capture_output=True, text=True,
                           check=False)
    if found.returncode != 0:
        raise Failure(f"{name} is no commit of {root}")
    return found.stdout.strip()


class Build:
    """A commit's headers and library, and output_hashes with them, in a folder of its own."""

    def __init__(self, commit, folder):
        self.commit, self.folder = commit, folder / commit
        self.program = self.folder / "output_hashes"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "built").exists():
            self.build_library()
        self.build_program()

    def build_library(self):
        tree, build, start = self.folder / "tree", self.folder / "build", time.monotonic()
        self.remove_tree(tree)
        output_of("git", "worktree", "add", "--detach", tree, self.commit)
        try:
            output_of("cmake", "--preset", "release", "-S", tree, "-B", build, "-DOMNICONV_TESTS=OFF", "-DOMNICONV_IMAGE_MODULE=OFF",
                      "-DOMNICONV_EXAMPLES=OFF", folder=tree)
            # ccache then knows files again that other commits have too, since no path names the commit.
            output_of("cmake", "--build", build, "--target", "omniconv", folder=tree, CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR="1")
            for name in ("include", "lib"):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            shutil.copytree(tree / "include", self.folder / "include")
            shutil.copytree(build / "lib", self.folder / "lib", symlinks=True)
            shutil.rmtree(build)
        finally:
            self.remove_tree(tree)
        (self.folder / "built").touch()
        print(f"{self.commit}: built in {time.monotonic() - start:.0f} s", flush=True)

    @staticmethod
    def remove_tree(tree):
        if tree.exists():
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=root, capture_output=True, check=False)
            shutil.rmtree(tree, ignore_errors=True)
        output_of("git", "worktree", "prune")

    def build_program(self):
        sources = sorted((root / "bench/output_hashes").glob("*.cpp"))
        output_of(os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-Wall", "-Wextra", f"-I{self.folder / 'include'}", *sources, "-o", self.program,
                  f"-L{self.folder / 'lib'}", "-lomniconv", f"-Wl,-rpath,{self.folder / 'lib'}")

    def hashes_of(self, side, device, lists, options):
        """What all outputs hash to, and which parts of lists came to no end, and why. None, and the reason: there is no such device."""
        start = time.monotonic()

        def run(name):
            report, log = (self.folder / f"{side}-{device.replace(':', '-')}-{name}.{suffix}" for suffix in ("hashes", "log"))
            command = [self.program, "--device", device, "--threads", options.threads, "--cache", self.folder / "cache", f"@{lists[name]}"]
            command = [str(word) for word in command + ["--thorough"] * options.thorough]
            with open(report, "w", encoding="utf-8") as output, open(log, "w", encoding="utf-8") as errors:
                try:
                    status = subprocess.run(command, stdout=output, stderr=errors, timeout=options.limit, check=False).returncode
                except subprocess.TimeoutExpired:
                    status = f"none after {options.limit} s"
            last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
            return name, status, last, report.read_text()

        hashes, faults = {}, []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, status, last, text in pool.map(run, lists):
                if status == NO_DEVICE:
                    return None, last
                if status != 0:
                    faults.append(f"{device}: {self.commit}: {name}: ended with status {status}: {last}")
                hashes.update(parsed(text))
        print(f"{device}: {self.commit}: {len(hashes)} hashes in {time.monotonic() - start:.0f} s", flush=True)
        return hashes, faults

    def instructions(self, problem, solver, runs):
        """The library's in a process that runs so often on one thread, and the output's hash, None where the solver does not serve."""
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "profile"
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", self.program, "--threads", 1, "--as-written", "--solver", solver,
                       "--runs", runs, problem]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Failure(f"{self.commit}: {problem}: {solver}: valgrind ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
            return instructions_of_library(profile.read_text()), parsed(done.stdout).get((problem, solver))

    def counted(self, problem, solver):
        """Instructions of a process that runs once, those of a run, and the output's hash."""
        first, one = self.instructions(problem, solver, 1)
        all_, _ = self.instructions(problem, solver, 1 + COUNTED_RUNS)
        return first, (all_ - first) / COUNTED_RUNS, one


def instructions_of_library(profile):
    """Of libomniconv, and those of memory being copied and filled, by callgrind's file: clocks that are read in loops, and what they allocate, are
    another number each time. The file gives names once (`ob=(3) libm.so`, then `ob=(3)`), and after `calls=` the cost of what was called."""
    names, place, count, is_call = {}, {"ob": "", "fn": ""}, 0, False
    for line in profile.splitlines():
        if named := re.match(r"(c?)(ob|fn)=\((\d+)\)\s*(.*)", line):
            called, kind, number, name = named.groups()
            if name:
                names[kind, number] = name
            if not called:
                place[kind] = names[kind, number]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[\d+*-]", line):
            is_ours = re.search(r"/libomniconv\.", place["ob"]) or place["fn"].startswith("__mem")
            count += int(line.split()[1]) if is_ours and not is_call else 0
            is_call = False
    return count


def parsed(text):
    """{(problem, solver): hash} of the lines that output_hashes prints."""
    lines = (line.split("\t") for line in text.splitlines())
    return {(words[0], words[1]): words[2] for words in lines if len(words) == 3}


class Count:
    """Of hashes, or of problems whose instructions were counted."""

    def __init__(self):
        self.passed = self.failed = 0

    def add(self, is_right):
        self.passed += is_right
        self.failed += not is_right


def verdict(old, new):
    """Of one solver's outputs for one problem, None where there is none."""
    if old is None:
        return "failing" if new.startswith("error") else "new"
    if new is None:
        return "missing"
    if old.startswith("error") or new.startswith("error"):
        return "failing"
    return "equal" if old == new else "differing"


def compare(device, old, new, differences, count):
    """Prints a table, and the first of what differs; `differences` is the file for all of it."""
    verdicts, wrong = collections.defaultdict(collections.Counter), []
    for problem, solver in {**old, **new}:
        before, after = old.get((problem, solver)), new.get((problem, solver))
        found = verdict(before, after)
        verdicts[solver.split("/")[0]][found] += 1
        if found == "new":
            continue
        count.add(found == "equal")
        if found != "equal":
            wrong.append(f"{found}: {device}: {problem}: {solver}: {before or 'none'}, then {after or 'none'}")
    print(f"{device:<12}{'operation':<12}" + "".join(f"{name:>10}" for name in ("equal", "differing", "missing", "failing", "new")))
    for operation, of in sorted(verdicts.items()):
        print(f"{'':<12}{operation:<12}" + "".join(f"{of[name]:>10}" for name in ("equal", "differing", "missing", "failing", "new")))
    for line in wrong[:SHOWN]:
        print(line)
    if wrong:
        differences.write("".join(line + "\n" for line in wrong))
        print(f"{len(wrong)} in all: {differences.name}")
    sys.stdout.flush()


def compare_outputs(old, new, options, count):
    lists = {}
    for name in options.lists:
        path = f"data/problems/{name}.txt"
        if not output_of("git", "ls-tree", old.commit, path):
            if options.lists is LISTS:
                print(f"{name}: skipped: {old.commit} has no {path}")
                continue
            raise Failure(f"--lists {name}: {old.commit} has no {path}")
        lines = [line for line in output_of("git", "show", f"{old.commit}:{path}").splitlines() if line and not line.startswith("#")]
        for first in range(0, len(lines), PROBLEMS_AT_A_TIME):
            part = f"{name}-{first // PROBLEMS_AT_A_TIME + 1}"
            lists[part] = old.folder / f"{part}.txt"
            lists[part].write_text("".join(line + "\n" for line in lines[first:first + PROBLEMS_AT_A_TIME]))
    with open(options.build_folder / f"{old.commit}-{new.commit}.txt", "w", encoding="utf-8") as differences:
        for device in options.device or ["cpu", "opencl"]:
            before, faults = old.hashes_of("old", device, lists, options)
            after, more_faults = new.hashes_of("new", device, lists, options)
            if before is None and after is None:
                print(f"{device}: skipped: {faults}")
                continue
            if before is None or after is None:
                print(f"{device}: one commit finds it, and the other not: {faults if before is None else more_faults}")
                count.failed += 1
                continue
            compare(device, before, after, differences, count)
            for fault in faults + more_faults:
                print(fault)
                count.failed += 1


def compare_instructions(old, new, options, count):
    if not shutil.which("valgrind"):
        print("callgrind: skipped: there is no valgrind (Debian: apt-get install valgrind)")
        return
    listed = output_of(old.program, "--threads", 1, "--as-written", *COUNTED)
    cases = [key for key, one in parsed(listed).items() if one != "known" and not re.search("/(double|definition)/", key[1])]
    print(f"{'instructions of a run, millions':<72}{'old':>10}{'new':>10}{'ratio':>8}{'all':>8}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (problem, solver), before, after in pool.map(lambda case: (case, old.counted(*case), new.counted(*case)), cases):
            if not before[2]:
                print(f"{solver}, {problem}: skipped: it does not serve on valgrind's processor")
                continue
            ratio, is_same = after[1] / before[1], before[2] == after[2]
            count.add(ratio <= MOST_INSTRUCTIONS and is_same)
            print(f"{solver + ', ' + problem:<72}{before[1] / 1e6:>10.2f}{after[1] / 1e6:>10.2f}{ratio:>8.4f}{after[0] / before[0]:>8.4f}"
                  + ("" if is_same else f"   differing: {before[2]}, then {after[2]}") + ("" if ratio <= MOST_INSTRUCTIONS else "   more"), flush=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/compare-commits.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="a commit")
    parser.add_argument("new", metavar="NEW", help="another, or the same again")
    parser.add_argument("--device", action="append", metavar="ID", help="as omniconv names it; may be given more than once (default: cpu, opencl)")
    parser.add_argument("--lists", nargs="+", default=LISTS, metavar="NAME", help=f"files of data/problems (default: {' '.join(LISTS)})")
    parser.add_argument("--build-folder", type=pathlib.Path, default=root / "build/compare-commits", metavar="DIR")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU device")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time (default: one for each core)")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="for a part of a list (default: 3600)")
    parser.add_argument("--thorough", action="store_true", help="as many cases on devices that compile as on the CPU; hours on PoCL")
    parser.add_argument("--callgrind", action="store_true", help="count instructions instead of comparing the lists' outputs")
    options = parser.parse_args()
    options.build_folder = options.build_folder.resolve()
    count = Count()
    try:
        old, new = (Build(commit_named(name), options.build_folder) for name in (options.old, options.new))
        (compare_instructions if options.callgrind else compare_outputs)(old, new, options, count)
    except Failure as failure:
        sys.exit(f"compare-commits: error: {failure}")
    print(f"{count.passed} passed, {count.failed} failed")
    sys.exit(0 if count.failed == 0 and count.passed > 0 else 1)


if __name__ == "__main__":
    main()
