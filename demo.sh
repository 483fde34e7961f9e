#!/usr/bin/env bash
# Builds omniconv, filters the bundled photograph into out/, and times every device found.
#
#   ./demo.sh [--no-setup]
#
# Installs what is missing first, on Debian or Ubuntu, unless --no-setup is given. Running it again is quick.
set -euo pipefail
cd "$(dirname "$0")"
source scripts/common.sh

setup=yes
for argument; do
  case $argument in
    --no-setup) setup=no ;;
    *) fail "unknown option '$argument'; known is --no-setup" ;;
  esac
done

if [[ $setup == yes ]]; then
  step "Set-up: what is missing to build omniconv?"
  scripts/setup.sh
fi

step "Building omniconv in build/release"
# A folder that already builds the tests keeps them, so that nothing is compiled twice.
without_tests=()
[[ -f build/release/CMakeCache.txt ]] || without_tests=(-DOMNICONV_TESTS=OFF)
build release -- "${without_tests[@]}"
omniconv=build/release/bin/omniconv
photo=data/photo/raccoon.jpg
mkdir -p out

step "Filtering the photograph $photo (1024 x 768, RGB)"
filter() { show "$omniconv" filter "$photo" "$@"; }
filter out/edges-x.png --kernel sobel-x --bias 128
filter out/edges.png --kernel sobel
filter out/blurred.png --kernel gaussian:15
filter out/sharpened.png --kernel sharpen
filter out/unsharp.png --kernel unsharp:9,2,1.5
filter out/emboss.png --kernel emboss
filter out/laplacian.png --kernel laplacian --bias 128
filter out/motion.png --kernel motion:15,30
filter out/edges.npy --kernel sobel --depth f32

step "Devices"
show "$omniconv" devices --json out/devices.json

step "How fast is each device? (omniconv bench, one line for each problem and device)"
