#!/usr/bin/env bash
# Builds omniconv, filters the bundled photograph into out/, trains a small network on bundled images, and times every
# device found.
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
filter out/edges-y.png --kernel sobel-y --bias 128
filter out/blurred.jpg --kernel gaussian:15
filter out/sharpened.png --kernel sharpen
filter out/unsharp.png --kernel unsharp:9,2,1.5
filter out/emboss.png --kernel emboss
filter out/laplacian.png --kernel laplacian --bias 128
filter out/motion.jpg --kernel motion:15,30
filter out/edges-x.npy --kernel sobel-x --depth f32

step "Training a small network on 4,000 images of clothes: half a minute on two cores"
plot=()
[[ ! -f build/release/lib/omniconv_plot.so ]] || plot=(--plot out/training.png)
show "$omniconv" train mnist-conv --dataset fashion-mnist-sample --epochs 8 --validation 500 --schedule cosine \
  --json out/training.json "${plot[@]}"
if ((${#plot[@]} > 0)); then
  printf '  Its curves, and which clothes it took for which: %s/out/training.png\n' "$PWD"
else
  echo "  No plot of it, for want of cairo (libcairo2-dev): its numbers are in out/training.json"
fi

step "The devices of this machine"
show "$omniconv" devices --json out/devices.json

step "How fast is each? A photograph of this size, one of 24 megapixels, and a blur"
devices=$(sed -n '/"devices"/,/"missing"/s/^ *"id": "\(.*\)",$/\1/p' out/devices.json)
[[ -n $devices ]] || fail "out/devices.json names no device"
for device in $devices; do
  show "$omniconv" bench --device "$device" --budget 0.5 --json "out/bench-${device/:/-}.json" \
    'filter2d u8 h768w1024c3r7s7' 'filter2d u8 h4000w6000c3r3s3' 'filter2d u8 h4000w6000c3r7s7' \
    'filter2d u8 h4000w6000c3r15s15 kernel:gaussian:15'
done

step "Done. Look at the pictures in out/: start with edges-x.png and emboss.png, beside $photo"
printf '  The tables above are in out/*.json too. Your own picture: %s filter IN OUT --kernel emboss\n' "$omniconv"
printf '  All named kernels: %s filter --list-kernels\n' "$omniconv"
printf '  Networks to train: %s train --list-models\n' "$omniconv"
