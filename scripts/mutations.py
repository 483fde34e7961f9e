#!/usr/bin/env python3
"""Puts one fault at a time into a copy of the tree, and says which test finds it.

    scripts/mutations.py [--only REGEX] [--list] [--jobs N] [--json FILE] [--resume]      (--page writes docs/mutations.md, --check compares it)

tests/mutations/list.txt has the faults, its head says how they are written. The tree as it is, committed or not, is copied to --build-folder and
built there once (preset release); the tests that are to notice must pass. Then each fault is put in, what its tests need is built, they run until
one fails, and the fault is taken out again. A test that never ends counts as one that fails. Exit status 1 where a fault is found by no test and has
no reason in the list, where one with a reason is found, and where one does not build; 2 where the list does not fit the tree, before anything is
built.

What found each is kept in tests/mutations/results.json, or in --json FILE. --resume leaves out what was found already and reads the same. What was built stays in
--build-folder.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parent.parent
LIST = root / "tests/mutations/list.txt"
RESULTS = root / "tests/mutations/results.json"
PAGE = root / "docs/mutations.md"
# The programs of tests that are asked where the list names none, by the beginnings of paths, the longest that fits.
TESTS = {
    "src/core/": "core_tests",
    "src/devices/": "device_tests",
    "src/devices/opencl/": "opencl_tests",
    "src/devices/cuda/": "cuda_peer_tests",
    "src/operations/": "conformance_tests",
    "src/choice/": "device_tests conformance_tests",
    "src/streaming/": "device_tests",
    "src/text/": "opencl_tests",
    "src/vector/": "conformance_tests",
    "src/image/": "image_tests",
    "src/checking/": "conformance_tests",
    "cli/": "cli_tests",
}
OF_KERNELS = "opencl_tests"  # text for GPUs, run by PoCL
PROGRAM_FILES = {"omniconv_cli": "omniconv"}  # where they are not named as their targets
MEMORY = 16 << 30  # bytes that a test may have: a fault may ask for all that there is
AREAS = {"core": "Core", "cpu": "Operations on the CPU", "gpu": "Text for GPUs, and what launches it", "devices": "Devices", "choice": "Choice",
         "streaming": "Streaming", "image": "Images", "cli": "The command"}


class Failure(Exception):
    """What ends the script, in one line or several."""


class Mutation:
    """A block of the list."""

    def __init__(self, name, fault, where):
        self.name, self.fault, self.where = name, fault, where
        self.file, self.old, self.new, self.tests, self.reason = "", [], [], "", ""
        self.of, self.count = 1, 1  # which occurrence, of how many

    def texts(self):
        return "\n".join(self.old), "\n".join(self.new)

    def mutated(self, content):
        """The file's text with the fault; throws where it does not hold the old text as often as the list says."""
        old, new = self.texts()
        parts = content.split(old)
        if len(parts) - 1 != self.count:
            raise Failure(f"{self.where}: {self.name} is stale: {self.file} holds its text {len(parts) - 1} times, and the list says {self.count}")
        return old.join(parts[:self.of]) + new + old.join(parts[self.of:])

    def programs(self):
        """Pairs of a program of tests, and a regular expression of those of its tests that are asked."""
        asked = self.tests
        if not asked and self.file.endswith(".kernel"):
            asked = OF_KERNELS
        if not asked:
            asked = TESTS[max((beginning for beginning in TESTS if self.file.startswith(beginning)), key=len)]
        return [(word.partition("/")[0], word.partition("/")[2]) for word in asked.split()]

    def asked(self):
        return " ".join("/".join(program).removesuffix("/") for program in self.programs())

    def text_of_all(self):
        """What a result belongs to."""
        return [self.file, *self.texts(), f"{self.of} of {self.count}", self.asked()]


def read_list(path):
    mutations, names, one = [], set(), None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}:{number}"
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            one = None if not line else one
        elif one is None:
            if not re.fullmatch(r"[a-z]+/[a-z0-9-]+:", word) or not rest or word.split("/")[0] not in AREAS:
                raise Failure(f"{where}: '{line}' must be AREA/NAME: FAULT, the area one of {', '.join(AREAS)}")
            if word in names:
                raise Failure(f"{where}: {word[:-1]} is there twice")
            names.add(word)
            one = Mutation(word[:-1], rest, where)
            mutations.append(one)
        elif word == "in":
            one.file, _, times = rest.partition(" ")
            if times:
                found = re.fullmatch(r"(\d+) of (\d+)", times)
                if not found or not 1 <= int(found[1]) <= int(found[2]):
                    raise Failure(f"{where}: '{times}' must be as '2 of 3': the second of three occurrences")
                one.of, one.count = int(found[1]), int(found[2])
        elif word in ("-", "+"):
            (one.old if word == "-" else one.new).append(rest)
        elif word in ("tests", "reason"):
            setattr(one, word, rest)
        else:
            raise Failure(f"{where}: '{word}' is none of in, -, +, tests, reason")
    for one in mutations:
        if not (root / one.file).is_file():
            raise Failure(f"{one.where}: {one.name} is stale: there is no file '{one.file}'")
        if not one.old:
            raise Failure(f"{one.where}: {one.name} has no line that begins with '- '")
        if not any(one.file.startswith(beginning) for beginning in TESTS) and not one.tests:
            raise Failure(f"{one.where}: {one.name} names no tests, and those of {one.file} are not known")
    return mutations


class Processes:
    """Runs one at a time, in a group of its own, which ends with this script."""

    def __init__(self):
        self.group = None

    def run(self, command, folder, limit, **variables):
        """Status (None: still running after the limit), and what it said."""
        def limited():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        with subprocess.Popen([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, env={**os.environ, **variables}, preexec_fn=limited) as process:
            self.group = process.pid
            try:
                return self.waited(process, limit)
            finally:
                self.end()

    @staticmethod
    def waited(process, limit):
        try:
            said, _ = process.communicate(timeout=limit)
            return process.returncode, said
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return None, said or (late.output or b"").decode(errors="replace")

    def end(self):
        """What the group still holds; tests may have left processes that outlive them."""
        try:
            os.killpg(self.group, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Tree:
    """The copy, its build and its tests."""

    def __init__(self, folder, jobs):
        self.folder, self.jobs, self.processes = folder / "tree", jobs, Processes()
        self.build_folder, self.temporary = self.folder / "build/release", folder / "temporary"
        self.seconds = {}  # of each choice of tests, unmutated

    def copy(self):
        """Of what git knows or would add; what is equal is left alone, so that it is not built again."""
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
        files = {name for name in listed.stdout.split("\0") if name and (root / name).is_file()}
        for name in files:
            source, target = root / name, self.folder / name
            if target.is_file() and not target.is_symlink() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy(source, target)
        for folder, folders, names in os.walk(self.folder):
            if pathlib.Path(folder) == self.folder:
                folders[:] = [name for name in folders if name not in ("build", "out")]
            for name in names:
                path = pathlib.Path(folder, name)
                if str(path.relative_to(self.folder)) not in files:
                    path.unlink()

    def configure(self):
        # Programs are not linked again where the library alone is another.
        status, said = self.processes.run(["cmake", "--preset", "release", "-DOMNICONV_TESTS=ON", "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON"], self.folder, 600)
        if status != 0:
            raise Failure(f"CMake could not configure {self.build_folder}:\n{said[-4000:]}")

    def build(self, programs):
        """What went wrong; empty where nothing did."""
        targets = sorted({program for program, _ in programs} | {"omniconv_cli"} | {"omniconv_image_oiio", "omniconv_image_plain"})
        status, said = self.processes.run(["cmake", "--build", self.build_folder, "--parallel", self.jobs, "--target", *targets], self.folder, 7200,
                                          CCACHE_DEPEND="1")
        return "" if status == 0 else said[-4000:]

    def listed_tests(self):
        """As ctest has them; None where the programs do not start."""
        status, said = self.processes.run(["ctest", "--show-only=json-v1"], self.build_folder, 600)
        return json.loads(said[said.index("{"):])["tests"] if status == 0 else None

    @staticmethod
    def chosen_tests(listed, programs):
        """Numbers for ctest, and names, by the programs that tests call."""
        tests, served = {}, set()
        for number, test in enumerate(listed, 1):
            called = {pathlib.PurePath(word).name for word in test.get("command", [])}
            for program in programs:
                if PROGRAM_FILES.get(program[0], program[0]) in called and re.search(program[1], test["name"]):
                    tests[number] = test["name"]
                    served.add(program)
        for program in programs:
            if program not in served:
                raise Failure(f"no test of {program[0]} fits '{program[1]}'")
        return tests

    def run(self, tests, limit):
        """Until one fails: the status, and what they said."""
        chosen = self.build_folder / "chosen-tests.txt"
        chosen.write_text("0,0,0," + ",".join(map(str, tests)) + "\n")
        self.temporary.mkdir(exist_ok=True)
        try:
            return self.processes.run(["ctest", "-I", chosen, "--stop-on-failure", "--output-on-failure", "--parallel", self.jobs, "--no-tests=error"],
                                      self.build_folder, limit, GTEST_FAIL_FAST="1", TMPDIR=str(self.temporary))
        finally:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def check_unmutated(self, mutations):
        """Builds what all need, and runs all tests once, by whose seconds each choice of them is given time."""
        choices = {tuple(one.programs()) for one in mutations}
        programs = sorted({program for choice in choices for program in choice})
        if faults := self.build(programs):
            raise Failure(f"the tree does not build:\n{faults}")
        listed = self.listed_tests()
        if listed is None:
            raise Failure("the programs of tests do not start")
        tests = self.chosen_tests(listed, programs)
        print(f"{len(tests)} tests without any fault ...", flush=True)
        status, said = self.run(tests, 7200)
        if status != 0:
            raise Failure(f"without any fault a test fails: {failed_test(said, status)}")
        taken = {name: float(seconds) for name, seconds in re.findall(r"Test +#\d+: (.+?) \.+ *Passed +([0-9.]+) sec", said)}
        for choice in choices:
            self.seconds[choice] = sum(taken.get(name, 0) for name in self.chosen_tests(listed, choice).values())
        print(f"{sum(taken.values()):.0f} s", flush=True)

    def found_by(self, one):
        """The test that finds it, empty for none; None where it does not build."""
        path, programs = self.folder / one.file, one.programs()
        content = path.read_text()
        path.write_text(one.mutated(content))
        try:
            if self.build(programs):
                return None
            listed = self.listed_tests()
            if listed is None:
                return "the programs of tests, which do not start"
            status, said = self.run(self.chosen_tests(listed, programs), 60 + 5 * self.seconds[tuple(programs)])
            return "" if status == 0 else failed_test(said, status)
        finally:
            path.write_text(content)


def failed_test(said, status):
    if status is None:
        running = re.findall(r"^ +Start +\d+: (.+)$", said, re.M)
        return f"{running[-1] if running else 'a test'}, which never ends"
    ended = re.search(r"^.*Test +#\d+: (.+?) \.+ *\**(Failed|Timeout|Exception|Not Run|Subprocess).*$", said, re.M)
    if not ended:
        return "ctest: " + (said.strip().splitlines() or ["it said nothing"])[-1]
    of_google = re.findall(r"^\[  FAILED  \] ([^ ,]+)", said[ended.end():], re.M)
    if of_google:
        return of_google[0]
    running = re.findall(r"^\[ RUN      \] (\S+)", said[ended.end():], re.M)
    how = {"Failed": "", "Timeout": ", which never ends"}.get(ended[2], ", which crashes" if ended[2] in ("Exception", "Subprocess") else ", which does not start")
    if running:
        return f"{running[-1]}{how or ', which ends its program'}"
    return ended[1].strip() + how


def run_all(mutations, names, options):
    """Runs these; results of what the list no longer names are dropped."""
    results = json.loads(options.json.read_text()) if options.json.exists() else {}
    results = {name: result for name, result in results.items() if name in names}
    known = lambda one: results.get(one.name, {}).get("of") == one.text_of_all() and results[one.name]["found_by"]  # noqa: E731
    chosen = [one for one in mutations if not (options.resume and known(one))]
    tree = Tree(options.build_folder.resolve(), options.jobs)
    tree.copy()
    tree.configure()
    tree.check_unmutated(chosen)
    wrong = 0
    for number, one in enumerate(chosen, 1):
        start = time.monotonic()
        found = tree.found_by(one)
        verdict = "does not build" if found is None else f"found by {found}" if found else "survived"
        as_it_should = bool(found) != bool(one.reason) and found is not None
        wrong += not as_it_should
        note = "" if as_it_should else "   <-- " + ("mend the list" if found is None else "it has a reason not to be found" if found else "it needs a test or a reason")
        print(f"[{number}/{len(chosen)}] {one.name}: {verdict} ({time.monotonic() - start:.0f} s){note}", flush=True)
        if found is not None:
            results[one.name] = {"found_by": found, "of": one.text_of_all()}
            options.json.write_text(json.dumps({name: results[name] for name in sorted(results)}, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(chosen) - wrong} as they should be, {wrong} not")
    return wrong == 0


def page(mutations, results):
    """The text of docs/mutations.md; throws where a result is missing."""
    lacking = [one.name for one in mutations if results.get(one.name, {}).get("of") != one.text_of_all()]
    if lacking:
        raise Failure(f"no results of {', '.join(lacking)} as the list has them now: run scripts/mutations.py --only '^({'|'.join(lacking)})$'")
    found = [one for one in mutations if results[one.name]["found_by"]]
    excused = [one for one in mutations if one not in found and one.reason]
    missed = len(mutations) - len(found) - len(excused)
    counts = f"{len(mutations)} faults, of which tests find {len(found)}"
    if excused:
        counts += f", and {len(excused)} that none can see, for the reasons given"
    if missed:
        counts += f"; {missed} {'is' if missed == 1 else 'are'} not found yet"
    lines = ["# Mutations", "",
             "Made by `scripts/mutations.py --page` from its list, `tests/mutations/list.txt`, and what it found",
             "([how to run it](../CONTRIBUTING.md#mutations)). Each row is a fault put into the tree alone, and the test that notices:",
             f"{counts}."]
    for area, title in AREAS.items():
        of_area = [one for one in mutations if one.name.startswith(area + "/")]
        if not of_area:
            continue
        lines += ["", f"## {title}", "", "| fault | where | found by |", "| --- | --- | --- |"]
        for one in of_area:
            test, _, how = results[one.name]["found_by"].partition(", which")
            shown = f"`{test}`{', which' + how if how else ''}" if test else f"nothing: {one.reason}" if one.reason else "nothing yet"
            lines.append("| " + " | ".join(text.replace("|", "\\|") for text in (one.fault, f"`{one.file}`", shown)) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutations.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", default="", help="mutations whose names it fits")
    parser.add_argument("--list", action="store_true", help="print them and end")
    parser.add_argument("--page", action="store_true", help="write docs/mutations.md and end")
    parser.add_argument("--check", action="store_true", help="compare docs/mutations.md with the list and the results, and end")
    parser.add_argument("--resume", action="store_true", help="leave out what was found before")
    parser.add_argument("--json", type=pathlib.Path, default=RESULTS, metavar="FILE", help="what found each (default: tests/mutations/results.json)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="compilers and tests at a time (default: one for each core)")
    parser.add_argument("--build-folder", type=pathlib.Path, default=root / "build/mutations", metavar="DIR")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        mutations = read_list(LIST)
        if options.page or options.check:
            text = page(mutations, json.loads(options.json.read_text()))
            if options.page:
                PAGE.write_text(text)
            elif not PAGE.exists() or PAGE.read_text() != text:
                sys.exit("docs/mutations.md does not match tests/mutations: run scripts/mutations.py --page")
            return
        chosen = [one for one in mutations if re.search(options.only, one.name)]
        if not chosen:
            raise Failure(f"--only {options.only}: no mutation is named so")
        stale = []
        for one in chosen:
            try:
                one.mutated((root / one.file).read_text())
            except Failure as failure:
                stale.append(str(failure))
        if options.list:
            for one in chosen:
                print(f"{one.name}: {one.fault} ({one.file}; {one.asked()})")
        if stale:
            raise Failure("\n".join(stale))
        if not options.list:
            sys.exit(0 if run_all(chosen, {one.name for one in mutations}, options) else 1)
    except Failure as failure:
        print(f"mutations: error: {failure}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
