#!/usr/bin/env python3
"""What is in the cache of compiled programs: a line for each, and on request the programs themselves and what NVIDIA's tools say of them.

    scripts/cached-programs.py [FOLDER] [--text WORD]... [--extract DIR] [--resources [ARCHITECTURE]]

FOLDER is $OMNICONV_CACHE_DIR, or where omniconv keeps it. --text keeps the programs whose interface, device, options or text hold every WORD, as in
--text OpenCL --text V=16 --text filter2d_strips. --extract writes of each NAME.text (options, prelude and kernel text) and the program as its driver gave it:
NAME.ptx where it is PTX (OpenCL of NVIDIA), NAME.cubin where it is machine code (CUDA), else NAME.bin. --resources (sm_90a) compiles the
PTX with ptxas, and prints of every kernel its registers, spilled bytes and instructions of machine code (cuobjdump), so that two compilers'
work on one text can be compared; both tools come with the CUDA toolkit. NAME is the file's name, a hash of what the program was made from.
"""
import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

MAGIC = b"omniconv prog 1\n"
HEADER = struct.Struct("<16sQQQ")


def split_key(key):
    """As ProgramCache::key joins them: size, colon, part, end of line."""
    parts = []
    while key:
        size, _, rest = key.partition(b":")
        parts.append(rest[:int(size)].decode(errors="replace"))
        key = rest[int(size) + 1:]
    return parts


class Program:
    def __init__(self, path):
        content = path.read_bytes()
        magic, key_bytes, program_bytes, _ = HEADER.unpack_from(content)
        if magic != MAGIC or len(content) != HEADER.size + key_bytes + program_bytes:
            raise ValueError(f"{path} is no compiled program of this version")
        parts = split_key(content[HEADER.size:HEADER.size + key_bytes])
        self.name, self.code = path.stem, content[HEADER.size + key_bytes:]
        self.version, self.interface, self.device = parts[1:4]
        self.driver = ", ".join(parts[4:-3])
        self.options, self.prelude, self.text = parts[-3:]
        if self.interface == "OpenCL":  # a line of what the driver said of registers comes first
            self.code = self.code.partition(b"\n")[2]

    def suffix(self):
        if self.code.startswith(b"\x7fELF"):
            return ".cubin"
        return ".ptx" if b".version" in self.code[:4096] and b".target" in self.code[:4096] else ".bin"

    def holds(self, words):
        everything = "\n".join([self.interface, self.device, self.driver, self.options, self.text])
        return all(word in everything for word in words)


def usual_folder():
    if "OMNICONV_CACHE_DIR" in os.environ:
        return os.environ["OMNICONV_CACHE_DIR"]
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "omniconv"


def output_of(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{command[0]} failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done.stdout + done.stderr


def resources(program, architecture, folder):
    """Of each kernel: its name, registers, spilled bytes and instructions."""
    cubin = folder / f"{program.name}.cubin"
    if program.suffix() == ".ptx":
        ptx = folder / f"{program.name}.ptx"
        ptx.write_bytes(program.code.rstrip(b"\0"))
        limit = re.findall(r"-cl-nv(-maxrregcount=\d+)", program.options)
        output_of("ptxas", f"-arch={architecture}", "-o", cubin, ptx, *limit)
    else:
        cubin.write_bytes(program.code)
    told = dict(re.findall(r"Function (\w+):\s*(.*)", output_of("cuobjdump", "-res-usage", cubin)))
    instructions = {}
    for part in output_of("cuobjdump", "-sass", cubin).split("Function : ")[1:]:
        instructions[part.split()[0]] = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?!NOP)\S", part, re.M))
    for kernel, usage in told.items():
        number = {name: int(value) for name, value in re.findall(r"(\w+):(\d+)", usage)}
        yield kernel, number.get("REG", 0), number.get("STACK", 0) + number.get("LOCAL", 0), instructions.get(kernel, 0)


def main():
    parser = argparse.ArgumentParser(prog="scripts/cached-programs.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=usual_folder())
    parser.add_argument("--text", action="append", default=[], metavar="WORD")
    parser.add_argument("--extract", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--resources", nargs="?", const="sm_90a", metavar="ARCHITECTURE")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    if not folder.is_dir():
        sys.exit(f"cached-programs: error: {folder} is no folder: name the cache of compiled programs")
    missing = [tool for tool in ("ptxas", "cuobjdump") if arguments.resources and not shutil.which(tool)]
    if missing:
        sys.exit(f"cached-programs: error: {' and '.join(missing)} not found: put the CUDA toolkit's bin into PATH, or leave --resources out")
    found = 0
    with tempfile.TemporaryDirectory() as work:
        for path in sorted(folder.glob("*.program")):
            try:
                program = Program(path)
                if not program.holds(arguments.text):
                    continue
                found += 1
                print(f"{program.name}{program.suffix()}  {program.interface}, {program.device}, {len(program.code)} bytes: {program.options}")
                if arguments.extract:
                    arguments.extract.mkdir(parents=True, exist_ok=True)
                    (arguments.extract / f"{program.name}{program.suffix()}").write_bytes(program.code)
                    (arguments.extract / f"{program.name}.text").write_text(f"// {program.options}\n{program.prelude}\n{program.text}")
                if arguments.resources and program.suffix() != ".bin":
                    for kernel, registers, spilled, instructions in resources(program, arguments.resources, pathlib.Path(work)):
                        print(f"  {kernel}: {registers} registers, {spilled} bytes of stack and local memory, {instructions} instructions")
            except (ValueError, struct.error) as error:
                print(f"cached-programs: {path.name} is left out: {error}", file=sys.stderr)
    print(f"{found} programs")
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()
