#!/usr/bin/env bash
# Filters an image larger than memory, and says whether it stayed within a limit, was right, and kept the codec's pace.
#
#   scripts/huge-image.sh [SIDE] [LIMIT_MB] [--layout strips|tiles] [--folder DIR] [--keep] [--json FILE]
#
# SIDE x SIDE pixels of RGB, 60000 by default, as an uncompressed TIFF (BigTIFF above 4 GB); LIMIT_MB of resident memory for the whole
# process, 512 by default. Needs twice the image free in DIR (the build folder by default; 60000: 22 GB), Python 3 with NumPy, and
# omniconv, built in build/release or named by $OMNICONV. The last line is PASS or FAIL with the figures; the exit status is 0 or 1.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
omniconv=${OMNICONV:-$repository/build/release/bin/omniconv}
if [[ ! -x $omniconv ]]; then
  echo "huge-image.sh: error: there is no $omniconv: build it (cmake --preset release && cmake --build build/release) or name it by OMNICONV" >&2
  exit 3
fi
# The distribution's own Python, where another stands before it and has no NumPy.
python=python3
"$python" -c "import numpy" 2>/dev/null || python=/usr/bin/python3
exec "$python" "$repository/scripts/huge_image.py" --omniconv "$omniconv" "$@"
