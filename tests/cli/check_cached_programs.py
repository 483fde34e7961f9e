#!/usr/bin/env python3
"""scripts/cached-programs.py on what omniconv keeps of an OpenCL device, and on programs made by hand with tools that answer as CUDA's do."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

omniconv = sys.argv[1]
script = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "cached-programs.py"
SASS = """\t\tFunction : multiply
        /*0000*/                   LDC R1, c[0x0][0x28] ;      /* 0x00000a00ff017b82 */
                                                               /* 0x000fe20000000800 */
        /*0010*/                   FFMA R0, R2, R3, R0 ;       /* 0x0000000302007223 */
        /*0020*/                   NOP;                        /* 0x0000000000007918 */
"""


def run(folder, *words, path=None, status=0):
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run([sys.executable, script, folder, *words], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == status, (words, done)
    return done.stdout + done.stderr


def entry(parts, code):
    key = "".join(f"{len(part.encode())}:{part}\n" for part in parts).encode()
    return struct.pack("<16sQQQ", b"omniconv prog 1\n", len(key), len(code), 0) + key + code


with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    cache, tools, extracted = work / "cache", work / "tools", work / "extracted"
    tools.mkdir()
    (work / "in.pgm").write_bytes(b"P5 8 8 255\n" + bytes(range(64)))
    done = subprocess.run([omniconv, "filter", work / "in.pgm", work / "out.pgm", "--kernel", "sharpen", "--device", "opencl"],
                          env={**os.environ, "OMNICONV_CACHE_DIR": str(cache)}, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        print(f"no OpenCL device: {done.stderr.strip()}")
        cache.mkdir(exist_ok=True)
    else:
        assert done.returncode == 0, done
        kept = list(cache.glob("*.program"))
        told = run(cache, "--text", "OpenCL", "--text=-cl-std=CL1.2", "--extract", extracted)
        assert f"{len(kept)} programs" in told and kept, told
        for program in kept:
            code = next(path for path in extracted.iterdir() if path.stem == program.stem and path.suffix != ".text")
            assert program.read_bytes().endswith(code.read_bytes()) and code.stat().st_size > 100
            assert "kernel" in (extracted / f"{program.stem}.text").read_text()
    ptx = b"//\n.version 8.0\n.target sm_90\n"
    (cache / "aa.program").write_bytes(entry(["omniconv", "0.1.0", "OpenCL", "a GPU", "OpenCL 3.0", "580",
                                                    "-cl-nv-maxrregcount=80 -DV=16", "prelude", "text: 2"], b" multiply=40\n" + ptx))
    (cache / "bb.program").write_bytes(entry(["omniconv", "0.1.0", "CUDA", "a GPU", "CUDA 13", "--std -DV=16", "prelude", "text: 2"], b"\x7fELF..."))
    (cache / "cc.program").write_bytes(b"omniconv prog 1\n, cut off")
    told = run(cache, "--text", "a GPU", "--text", "V=16", "--extract", extracted)
    assert "2 programs" in told and "aa.ptx  OpenCL, a GPU" in told and "bb.cubin  CUDA" in told and "cc.program is left out" in told, told
    assert (extracted / "aa.ptx").read_bytes() == ptx and (extracted / "aa.text").read_text() == "// -cl-nv-maxrregcount=80 -DV=16\nprelude\ntext: 2"
    assert "0 programs" in run(cache, "--text", "V=17", status=1)
    assert "ptxas and cuobjdump not found" in run(cache, "--resources", status=1)
    assert "no folder" in run(work / "nowhere", status=1)
    (tools / "ptxas").write_text('#!/bin/sh\n[ "$1 $5" = "-arch=sm_90a -maxrregcount=80" ] && cp "$4" "$3"\n')
    (work / "sass").write_text(SASS)
    (tools / "cuobjdump").write_text(f"#!/bin/sh\n[ -s \"$2\" ] || exit 1\n[ $1 = -sass ] && exec cat {work / 'sass'}\n"
                                     "printf 'Resource usage:\\n Function multiply:\\n  REG:40 STACK:8 SHARED:0 LOCAL:4 CONSTANT[0]:560\\n'\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    told = run(cache, "--text", "a GPU", "--resources", path=tools)
    assert told.count("  multiply: 40 registers, 12 bytes of stack and local memory, 2 instructions") == 2, told
print("ok")
