#!/usr/bin/env bash
# Filters an image larger than a limit of device memory on a GPU, and says whether the result is the CPU's, byte for byte.
#
#   scripts/huge-gpu.sh [WIDTH HEIGHT] [--device cuda] [--device-memory 1G] [--kernel K]... [--folder DIR] [--json FILE]
#
# 100000 x 40000 gray pixels by default, a PGM of 4 GB; needs three times the image free in DIR (the build folder by default), Python 3
# alone, and omniconv, built in build/release or named by $OMNICONV. Each kernel runs twice on the device, first with an empty folder of
# compiled programs, then with what that run left there, both with strips of the size that is fastest; then with strips as tall as the
# limit allows, which would take more without it. The last line is PASS or FAIL with the figures; the exit status is 0 or 1, and 77 where
# there is no such device.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
omniconv=${OMNICONV:-$repository/build/release/bin/omniconv}
if [[ ! -x $omniconv ]]; then
  echo "huge-gpu.sh: error: there is no $omniconv: build it (cmake --preset release && cmake --build build/release) or name it by OMNICONV" >&2
  exit 3
fi
exec python3 "$repository/scripts/huge_gpu.py" --omniconv "$omniconv" "$@"
