#!/usr/bin/env python3
"""tests/docs/run_commands.py finds the commands of a document, and finds what is wrong with them."""
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
DOCUMENT = """# A document

    y[p, q] = a formula

Text with `omniconv nothing`.

    omniconv COMMAND ...
    omniconv filter in.ppm out.ppm --kernel @weights.txt
    ./demo.sh           # builds: some minutes
    omniconv devices --device cuda  # needs a GPU

    {"json": true}

```
cat x.npy | omniconv conv "nhwc bias n2c4h5w6k8r3s3p1g2" --x - --w w.npy \\
  --bias-array b.npy -o - > y.npy
```

```cpp
omniconv::Context context;
```

- A list

    omniconv filter in.png other.pgm --kernel "3x3: 0,1,0, 1,-4,1, 0,1,0" --json report.json
"""
# Copies its first file to its second, or the standard input to the standard output; writes no report.
OMNICONV = """#!/bin/sh
case $1 in
  filter) [ "$(cat "${5#@}" 2>/dev/null | wc -l)" = 3 ] || [ "${5#@}" = "$5" ] || exit 1
          cp "$2" "$3" ;;
  bench) shift; printf '%s\\n' "$@"; exit 1 ;;
  run) cp "$4" "$6"; [ "$(stat -c %s x.npy)" = 2432 ] && { [ "$8" != i.npy ] || cp "$4" i.npy; } ;;
  conv) [ "$(stat -c %s w.npy b.npy | tr '\\n' ' ')" = "704 160 " ] && exec cat ;;
  *) exit 2 ;;
esac
"""


def told(document, status, *parts):
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "data" / "photo").mkdir(parents=True)
        (work / "omniconv").write_text(OMNICONV)
        (work / "omniconv").chmod(0o755)
        (work / "document.md").write_text(document)
        done = subprocess.run([sys.executable, here / "run_commands.py", work / "omniconv", work, work / "document.md"], capture_output=True, text=True, check=False)
        assert done.returncode == status and all(part in done.stdout for part in parts), f"{done.stdout}{done.stderr}"


without_report = DOCUMENT.replace(" --json report.json", "")
told(without_report, 0, "document.md: 3 run, 0 failed, 3 left out", "a summary of the options", "builds: some minutes", "needs a GPU", "-o - > y.npy")
told(DOCUMENT, 1, "wrote no report.json", "3 run, 1 failed")
told(without_report.replace("filter in.png", "fliter in.png"), 1, "exit status 2", "fliter in.png")
told(without_report.replace("needs a GPU", "is quick"), 1, "exit status 2", "devices --device cuda")
UNTRUSTED = "a  failed: 1 ms beats half of the memory floor of 3 ms: the timing is not to be trusted"
told(f"    omniconv bench '{UNTRUSTED}' 'b  2 ms'\n", 0, "1 run, 0 failed")
told(f"    omniconv bench '{UNTRUSTED}' 'b  failed: error 9 of bound 1'\n", 1, "1 run, 1 failed")
told("    omniconv bench 'b  refused: a reason'\n", 1, "1 run, 1 failed")
# Extents that a text leaves out are those of the arrays that are made; x holds 2 * 4 * 9 * 8 numbers behind a header of 128 bytes.
told('    omniconv run "pool2d r2s2" --x x.npy -o y.npy --indices i.npy\n', 0, "1 run, 0 failed")
told('    omniconv run "pool2d r2s2" --x x.npy -o y.npy --indices j.npy\n', 1, "wrote no j.npy", "1 run, 1 failed")
told("# No command\n\nText.\n", 1, "document.md: 0 run")
print("ok")
