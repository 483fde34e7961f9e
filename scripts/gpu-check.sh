#!/usr/bin/env bash
# Builds omniconv (preset lean, with the tests of devices), checks it on every device of this machine, and times its GPUs.
#
#   scripts/gpu-check.sh [OUTDIR] [--quick] [--gpus] [--only STEP[,STEP...]]
#
# OUTDIR (build/gpu-check) receives JSON: devices.json, gpu-check.json, and of the STEPs after the build:
#
#   tests        the programs of GoogleTest, all or those tests that the variable GTEST_FILTER names
#   verify       filters against the references, on every device: verify-DEVICE.json
#   conv         convolutions and matrix products likewise: verify-conv-DEVICE.json, a list of reports
#   files        whole files against the CPU's: files.json
#   bench        times of filters on every GPU: bench-DEVICE.json
#   conv-bench   times of convolutions and matrix products: bench-gemm-DEVICE.json, bench-conv-DEVICE.json, explain-DEVICE.json
#
# and only if they are named:
#
#   large        arrays of more than 2^31 elements on every GPU, sampled at both ends: verify-large-DEVICE.json (30 GB of memory)
#   sanitizer    the CUDA tests of convolutions and products under compute-sanitizer
#   clblast      matrix products beside CLBlast on OpenCL devices: clblast-DEVICE.json (scripts/bundle.sh --clblast packs it)
#   peers        filters beside other libraries: scripts/compare-gpu-peers.py, where python3 has CuPy; peers.json
#
# --gpus leaves the CPU, and OpenCL devices that are no GPUs, out of verify, conv, files and times. --quick takes small problems
# everywhere and times every device, a GPU or not; else steps of times fail without a GPU. Needs a C++20 compiler and CMake 3.25, Ninja or
# make; libraries come from scripts/bundle.sh's archive or the system. Run again it builds only what
# changed. The last line is `gpu-check: N passed, M failed`; exit status 1 if M > 0.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
source scripts/common.sh
source scripts/gpu-check-matrices.sh

known_steps=(tests verify conv files bench conv-bench large sanitizer clblast peers)
out=build/gpu-check quick=no only_gpus=no steps=,tests,verify,conv,files,bench,conv-bench,
while (($#)); do
  case $1 in
    --quick) quick=yes ;;
    --gpus) only_gpus=yes ;;
    --only)
      (($# > 1)) || fail "--only needs a list of steps, as in --only tests,bench"
      steps=,$2,
      shift
      ;;
    -*) fail "unknown option '$1'; known are --quick, --gpus and --only" ;;
    *) out=$1; [[ $out == /* ]] || out=$here/$out ;;
  esac
  shift
done
for step in ${steps//,/ }; do
  [[ " ${known_steps[*]} " == *" $step "* ]] || fail "--only $step: the steps are ${known_steps[*]}"
done
build=build/lean work=$PWD/build/gpu-check-work
mkdir -p "$out" "$build" "$work"
out=$(cd "$out" && pwd)
rm -rf "${work:?}"/* "$out"/{devices,files,gpu-check,peers,verify-*,bench-*,explain-*,clblast-*}.json
export OMNICONV_CACHE_DIR=$work/cache

# --- What is counted, and said

passed=0 failed=0 lines=() verifying_filters=()
seconds() { date +%s.%N; }
# record STEP PASSED FAILED SINCE [DETAIL [UNTIL]]: a line on stdout, and one of gpu-check.json.
record() {
  local took detail=${5:-}
  took=$(awk -v now="${6:-$(seconds)}" -v since="$4" 'BEGIN { printf "%.1f", now - since }')
  passed=$((passed + $2)) failed=$((failed + $3))
  printf '[%d:%02d] %-34s %7s s  %5d passed %3d failed  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1" "$took" "$2" "$3" "$detail"
  lines+=("    {\"step\": \"$1\", \"seconds\": $took, \"passed\": $2, \"failed\": $3, \"detail\": \"${detail//[\"\\]/}\"}")
}
said() { sed 's/^/      | /' | tail -n "${1:-12}"; }
# no_gpu STEP WHAT_FOLLOWS: a step that was asked for and has nothing to run on has failed.
no_gpu() {
  echo "no GPU: $2"
  record "$1" 0 1 "$(seconds)" "no GPU"
}

finish() {
  local status=$?
  if ((status != 0)); then  # stopped half-way
    failed=$((failed + 1))
    # shellcheck disable=SC2046 # numbers of processes
    kill $(jobs -rp) 2>/dev/null || true
  fi
  {
    printf '{\n  "schema": "omniconv-gpu-check/1", "commit": "%s", "date": "%s", "quick": %s,\n' \
      "${commit:-unknown}" "$(date -u +%FT%TZ)" "$([[ $quick == yes ]] && echo true || echo false)"
    printf '  "passed": %d, "failed": %d, "seconds": %d,\n  "steps": [\n' "$passed" "$failed" "$SECONDS"
    (IFS=$'\n'; echo "${lines[*]}") | sed '$!s/$/,/'
    printf '  ]\n}\n'
  } >"$out/gpu-check.json"
  echo "gpu-check: $passed passed, $failed failed"
  ((failed == 0)) || exit 1
}
trap finish EXIT

# --- Drivers without root: libraries outside the loader's paths, a loader for OpenCL where there is none, and NVIDIA's OpenCL
# driver where the system does not name it

find_library() { # NAME FOLDER...: the first folder's that has it
  local name=$1 folder
  shift
  for folder; do
    [[ -z $folder || ! -e $folder/$name ]] || { echo "$folder/$name"; break; }
  done
}
# Where the dynamic loader finds it by its name.
known_library() {
  local folders
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
  find_library "$1" "${folders[@]}"
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | sed -n "s|^[[:space:]]*$1 .*=> ||p"
}
usual_folders=(/usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib/wsl/lib)
# reach NAME FOLDER...: puts the first folder that has it into the loader's paths, where it is not known.
reach() {
  [[ -z $(known_library "$1") ]] || return 0
  local found
  found=$(find_library "$@")
  [[ -n $found ]] || return 0
  export LD_LIBRARY_PATH=${found%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  echo "$1 is not in the loader's paths; $found is used"
}
reach libcuda.so.1 "${usual_folders[@]}"
reach libOpenCL.so.1 "$PWD"/bundled/opencl/lib/* "${usual_folders[@]}"
nvidia_opencl=$({ known_library libnvidia-opencl.so.1; find_library libnvidia-opencl.so.1 "${usual_folders[@]}"; } | sed -n 1p)
if [[ -n $nvidia_opencl && -z ${OCL_ICD_VENDORS:-} ]] && ! grep -qs nvidia /etc/OpenCL/vendors/*.icd; then
  mkdir -p "$work/vendors"
  cp /etc/OpenCL/vendors/*.icd "$work/vendors" 2>/dev/null || true
  echo "$nvidia_opencl" >"$work/vendors/nvidia.icd"
  export OCL_ICD_VENDORS=$work/vendors
  echo "OpenCL: NVIDIA's driver is not in /etc/OpenCL/vendors; OCL_ICD_VENDORS=$OCL_ICD_VENDORS names $nvidia_opencl"
fi

# --- Build

start=$(seconds)
arguments=(-DOMNICONV_TESTS=ON -DOMNICONV_EXAMPLES=ON)
if [[ ! -d bundled && ! -e /usr/include/gtest/gtest.h ]]; then
  echo "no GoogleTest on this machine: its tests are left out"
  arguments=(-DOMNICONV_TESTS=OFF -DOMNICONV_EXAMPLES=OFF) steps=${steps/,tests,/,}
fi
command -v ninja >/dev/null || arguments+=(-G "Unix Makefiles")
[[ ! -d bundled ]] || arguments+=("-DCMAKE_PREFIX_PATH=$PWD/bundled")
make_targets() { (build lean "$@" -- "${arguments[@]}") >"$work/build.log" 2>&1 || { said 30 <"$work/build.log"; exit 1; }; }
make_targets omniconv_cli
omniconv=$PWD/$build/bin/omniconv
commit=$("$omniconv" --version | sed 's/.*(\(.*\))/\1/')
record "build: omniconv" 1 0 "$start" "commit $commit, $(nproc) cores"

# --- Devices

start=$(seconds)
"$omniconv" devices --json "$out/devices.json" >"$work/devices.txt" || exit 1
said 40 <"$work/devices.txt"
# The "id" and "gpu" of each device found; those missing have no "gpu".
listed=$(awk -F'"' '$2 == "id" { id = $4 } $2 == "gpu" { print id, $3 ~ /true/ ? "true" : "false" }' "$out/devices.json")
devices=() gpus=()
while read -r id is_gpu; do
  [[ $is_gpu == true ]] && gpus+=("$id")
  [[ $only_gpus == yes && $is_gpu == false ]] || devices+=("$id")
done <<<"$listed"
((${#devices[@]})) || fail "--gpus: omniconv devices finds no GPU"
record "devices" 1 0 "$start" "${devices[*]}"
is_gpu() { [[ " ${gpus[*]:-} " == *" $1 "* ]]; }
file_name() { tr -c 'a-z0-9\n' '-' <<<"$1"; }
# A problem list, as it is or with each large image made a few hundred pixels wide, matrices and layers smaller still.
problems() { # LIST small|whole
  [[ $2 == whole ]] && echo "data/problems/$1" && return
  sed -E 's/(filter2d.*)h[0-9]{4,}w[0-9]{4,}/\1h301w403/; s/h(1024|256|224)w[0-9]+/h33w35/; s/h56w56/h14w14/; s/([cg])33000/\1330/
    s/([mnk])(46342|8192|4096)/\1200/g; s/^(.*)n(64|33|32)c/\1n2c/' "data/problems/$1" >"$work/small-$1"
  echo "$work/small-$1"
}

# --- Problem lists against the references, on all devices at once, while the tests are built and run

verify_device() { # DEVICE
  local size=whole
  [[ $quick == no ]] && { is_gpu "$1" || [[ $1 == cpu ]]; } || size=small
  timeout 400 "$omniconv" verify --sampled --device "$1" --problems "$(problems filters.txt "$size")" \
    --problems "$(problems gradients.txt "$size")" --json "$out/verify-$(file_name "$1").json" >"$work/verify.$1" 2>&1 || true
  seconds >"$work/verified.$1"
}
verify_start=$(seconds)
if [[ $steps == *,verify,* ]]; then
  for device in "${devices[@]}"; do
    verify_device "$device" &
    verifying_filters+=($!)
  done
fi

[[ $steps != *,conv,* ]] || start_convs

# --- Tests of GoogleTest, a process each, so that none waits behind a long one. GTEST_FILTER names some of them.

run_test() { # PROGRAM TESTS INDEX
  local status=0 log=$work/$1.$3
  GTEST_TOTAL_SHARDS=$2 GTEST_SHARD_INDEX=$3 timeout 540 "$build/bin/$1" >"$log" 2>&1 || status=$?
  # One that ended without its summary counts as a failed test.
  ((status == 0)) || grep -q '^\[  FAILED  \] [0-9]* test' "$log" || printf '\n[  FAILED  ] 1 test, exit status %s\n' "$status" >>"$log"
}
export -f run_test
export work build
run_tests() { # PROGRAM PROCESSES
  local start tests counts
  start=$(seconds)
  if ! "$build/bin/$1" --gtest_list_tests >"$work/$1.list" 2>&1; then
    said <"$work/$1.list"
    record "tests: $1" 0 1 "$start" "it does not start"
    return
  fi
  tests=$(grep -c '^  ' "$work/$1.list" || true)
  ((tests == 0)) || seq 0 $((tests - 1)) | xargs -P "$2" -I{} bash -c "run_test $1 $tests {}"
  counts=$(find "$work" -name "$1.[0-9]*" -exec cat {} + | awk '
    /^\[  PASSED  \] [0-9]+ test/ { p += $4 } /^\[  FAILED  \] [0-9]+ test/ { f += $4 } /^\[  SKIPPED \] [0-9]+ test/ { s += $4 }
    END { printf "%d %d %d", p, f, s }')
  local p f s
  read -r p f s <<<"$counts"
  ((p + f + s >= tests)) || f=$((tests - p - s))
  record "tests: $1" "$p" "$f" "$start" "$([[ $s == 0 ]] || echo "$s skipped")"
  [[ $s == 0 ]] || cat "$work/$1".[0-9]* | grep -A1 -h 'Skipped$' | grep -v -e 'Skipped$' -e '^--' | sort | uniq -c | said
  [[ $f == 0 ]] || cat "$work/$1".[0-9]* | grep -B8 '^\[  FAILED  \]' | said 60
}
if [[ $steps == *,tests,* ]]; then
  start=$(seconds) programs=(conformance_tests) examples=()
  for kind in cuda opencl; do
    [[ " ${devices[*]}" != *" $kind"* ]] || { programs+=("${kind}_tests"); examples+=("${kind}_memory"); }
  done
  make_targets "${programs[@]}" "${examples[@]}"
  record "build: tests" 1 0 "$start"
  processes=$(($(nproc) < 16 ? $(nproc) : 16))
  # A GPU's memory is shared by all that run on it: 8 GiB for each.
  processes_of_gpus=$(awk -v most="$processes" -F'[:,]' '
    /"gpu"/ { is_gpu = $2 ~ /true/ } /"memory_bytes"/ && is_gpu { fit = int($2 / 2 ^ 33); if (fit < most) most = fit }
    END { if (most < 1) most = 1; print most }' "$out/devices.json")
  run_tests conformance_tests "$processes"
  for program in "${programs[@]:1}"; do
    run_tests "$program" "$processes_of_gpus"
  done
  for example in "${examples[@]}"; do  # on the first device of its kind
    start=$(seconds) status=0
    "$build/bin/$example" >"$work/$example" 2>&1 || status=$?
    record "example: $example" $((status == 0)) $((status != 0)) "$start"
    ((status == 0)) || said <"$work/$example"
  done
fi

if [[ $steps == *,verify,* ]]; then
  wait "${verifying_filters[@]}"
  for device in "${devices[@]}"; do
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) refused$/\1 \2 \3/p' "$work/verify.$device")
    read -r p f refused <<<"${counts:-0 1 0}"
    ((p > 0)) || f=$((f + 1))  # where all is refused nothing was verified
    record "verify: $device" "$p" "$f" "$verify_start" "$([[ $refused == 0 ]] || echo "$refused refused")" "$(cat "$work/verified.$device")"
    [[ -n $counts ]] || said <"$work/verify.$device"
    [[ $f == 0 || -z $counts ]] || grep -B1 '^  failed' "$work/verify.$device" | said 30
  done
fi

[[ $steps != *,conv,* ]] || finish_convs

# --- Whole files: every device's output equals, byte for byte, that of the CPU in one strip

noise() { head -c "$1" /dev/urandom; }
npy() { # DESCR SHAPE: the header
  local header="{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
}
make_files() { # SCALE: sides in hundreds of pixels
  local w=$(($1 * 120)) h=$(($1 * 80))
  { printf 'P6\n%d %d\n255\n' "$w" "$h"; noise $((w * h * 3)); } >"$work/rgb.ppm"
  w=$((w / 2 + 1)) h=$((h / 2))
  { printf 'P6\n%d %d\n65535\n' "$w" "$h"; noise $((w * h * 6)); } >"$work/rgb16.ppm"
  { printf 'P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n' "$w" "$h"; noise $((w * h * 4)); } >"$work/rgba.pam"
  { npy '<u2' "$h, $w"; noise $((w * h * 2)); } >"$work/grey16.npy"
  { npy '|u1' "$h, $w, 3"; noise $((w * h * 3)); } >"$work/rgb8.npy"
  "$omniconv" filter "$work/rgb8.npy" "$work/float.npy" --kernel identity --depth f32 --device cpu
}
full_rank='5x5: 0.113,-0.271,0.317,0.151,-0.093, 0.219,0.447,-0.181,0.277,0.091, -0.133,0.291,0.531,-0.257,0.173, 0.081,-0.191,0.239,0.119,-0.311, 0.157,0.077,-0.149,0.203,0.263'
# Input, output's extension, options. Floating sums are exact here: whole numbers, integer weights.
file_cases=(
  "rgb.ppm ppm --kernel gaussian:9,1.7"
  "rgb.ppm ppm --border reflect101 --kernel $full_rank"
  "rgb.ppm ppm --border constant:7 --kernel sobel"
  "rgb16.ppm ppm --kernel unsharp:5,1,0.7"
  "rgba.pam pam --kernel gaussian:5"
  "grey16.npy npy --border wrap --kernel box:31"
  "float.npy npy --border reflect --kernel sharpen"
)
report=$out/files.json
# filter_case CASE NAME OPTION...: one run into NAME.EXTENSION, its report put behind the others. Sets `output`.
filter_case() {
  local before=${1%% --kernel *} kernel=${1##* --kernel } name=$2 input extension options
  shift 2
  read -r input extension options <<<"$before"
  read -ra options <<<"$options"
  output=$work/$name.$extension
  timeout 200 "$omniconv" filter "$work/$input" "$output" "${options[@]}" --kernel "$kernel" "$@" \
    --json "$work/report.json" >>"$work/files.log" 2>&1 || return
  { [[ -s $report ]] && echo "," || echo "["; cat "$work/report.json"; } >>"$report"
}
times() { # what the last report says
  sed -n 's/.*"\(context_ms\|compile_ms\|total_ms\)": \([0-9]*\).*/\1 \2/p' "$work/report.json" | awk '
    { t[$1] = $2 } END { printf "%d ms + context %d, compiler %d", t["total_ms"], t["context_ms"], t["compile_ms"] }'
}
compare_files() { # DEVICE OPTION...: against the CPU's in one strip
  local device=$1 case equal=0 unequal=0 number=0 first second start
  shift
  start=$(seconds)
  rm -rf "$OMNICONV_CACHE_DIR"
  for case in "${file_cases[@]}"; do
    number=$((number + 1))
    for run in first second; do
      if filter_case "$case" here --device "$device" "$@" && cmp -s "$output" "$work/expected.$number"; then
        equal=$((equal + 1))
        [[ $run == first ]] && first=$(times) || second=$(times)
      else
        unequal=$((unequal + 1))
        echo "      | $device $*: $case: $run run: not the CPU's bytes: $(tail -n 1 "$work/files.log" 2>/dev/null)"
      fi
    done
    ((number > 1)) || { echo "      | $device, ${case}: first run ${first:-failed}"; echo "      | second run ${second:-failed}"; }
  done
  record "files: $device${1:+ in strips}" "$equal" "$unequal" "$start"
}
if [[ $steps == *,files,* ]]; then
  start=$(seconds)
  if [[ $quick == yes ]]; then make_files 10; else make_files 100; fi
  number=0
  for case in "${file_cases[@]}"; do
    number=$((number + 1))
    filter_case "$case" cpu --device cpu --strip-rows 1000000 --max-memory 16G || { said <"$work/files.log"; exit 1; }
    mv "$output" "$work/expected.$number"
  done
  record "files: made, and filtered by the CPU" "$number" 0 "$start"
  compare_files cpu --strip-rows 97
  for device in "${devices[@]}"; do
    [[ $device == cpu ]] || compare_files "$device"
  done
  echo "]" >>"$report"
  rm -f "$work"/*.{ppm,pam,npy} "$work"/expected.*
fi

# --- Benchmarks, one device after the other

if [[ $steps == *,bench,* ]]; then
  timed=("${gpus[@]}") size=whole budget=0.3
  [[ $quick == no ]] || timed=("${devices[@]}") size=small budget=0.01
  ((${#timed[@]})) || no_gpu bench "nothing is timed (--quick times every device on small images)"
  for device in "${timed[@]}"; do
    start=$(seconds) json=$out/bench-$(file_name "$device").json
    timeout 300 "$omniconv" bench --device "$device" --problems "$(problems gpu-filters.txt "$size")" --budget "$budget" \
      --json "$json" >"$work/bench.$device" 2>&1 || true
    said 80 <"$work/bench.$device"
    p=$(grep -c '"status": "ok"' "$json" 2>/dev/null || true)
    f=$(grep -c '"status": "\(failed\|refused\)"' "$json" 2>/dev/null || true)
    [[ -s $json ]] || f=1
    record "bench: $device" "${p:-0}" "${f:-0}" "$start"
  done
fi

[[ $steps != *,conv-bench,* ]] || time_convs
[[ $steps != *,large,* ]] || try_large
[[ $steps != *,sanitizer,* ]] || sanitize
[[ $steps != *,clblast,* ]] || compare_clblast

# --- Other libraries for NVIDIA's GPUs, beside every GPU found

if [[ $steps == *,peers,* ]]; then
  start=$(seconds) named=()
  for device in "${gpus[@]}"; do named+=(--device "$device"); done
  ((${#gpus[@]})) || { echo "no GPU: nothing to compare peers on"; exit 1; }
  timeout 500 python3 scripts/compare-gpu-peers.py --omniconv "$omniconv" "${named[@]}" --json "$out/peers.json" >"$work/peers" 2>&1 || true
  said 200 <"$work/peers"
  p=$(grep -c ' times omniconv.*; ok: ' "$work/peers" || true)
  f=$(grep -c -e ' failed: ' -e '; values differ: ' "$work/peers" || true)
  [[ -s $out/peers.json ]] || f=$((f + 1))
  record "peers" "$p" "$f" "$start" "$(grep -c '^not compared' "$work/peers" || true) not there"
fi
