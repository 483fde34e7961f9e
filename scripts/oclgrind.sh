#!/usr/bin/env bash
# Runs every OpenCL solver under Oclgrind, an interpreter that reports stray accesses, data races and the use of memory
# that was never written; fails if it reports any, or if a result is wrong.
#
#   scripts/oclgrind.sh [BUILD_FOLDER]        (build/release by default, configured with -DOMNICONV_TESTS=ON)
#
# The problems are tiny and ragged: every type, border and form of weights, and kernels larger than the image. First it
# runs kernels with faults made on purpose, and fails unless each is reported.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/common.sh

bin=$(realpath "${1:-build/release}")/bin
for program in "$bin/omniconv" "$bin/oclgrind_faults" "$bin/opencl_tests"; do
  [[ -x $program ]] || fail "$program is not there: build it first, with -DOMNICONV_TESTS=ON"
done
driver=
for folder in /usr/lib /usr/local/lib "/usr/lib/$(uname -m)-linux-gnu"; do
  [[ -e $folder/oclgrind/liboclgrind-rt-icd.so ]] && driver=$folder/oclgrind/liboclgrind-rt-icd.so
done
[[ -n $driver ]] || fail "Oclgrind is not installed: Debian's package is oclgrind"

# Oclgrind's own command preloads its library, which a loader that is opened at run time does not see: the loader is told
# of it as of any driver.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendors"
echo "$driver" >"$work/vendors/oclgrind.icd"
export OMNICONV_CACHE_DIR= # its reports quote the text, which a compiled program lacks
export OCL_ICD_VENDORS=$work/vendors OCLGRIND_DATA_RACES=1 OCLGRIND_UNINITIALIZED=1 OCLGRIND_CHECK_API=1
# Its compiler turns `restrict` into marks (noalias scopes) that its interpreter does not know. They promise, and compute
# nothing.
export OCLGRIND_BUILD_OPTIONS=-Drestrict=

# under_oclgrind LOG COMMAND...: its reports go to LOG.
under_oclgrind() {
  local log=$1
  shift
  : >"$log"
  OCLGRIND_LOG=$log "$@"
}

step "Faults made on purpose: each must be reported"
fault() { # NAME WHAT_IS_REPORTED
  under_oclgrind "$work/fault" "$bin/oclgrind_faults" "$1" >/dev/null || fail "the kernel '$1' could not be run"
  if [[ -z $2 ]]; then
    [[ ! -s $work/fault ]] || fail "a sound kernel was reported: $(head -n 1 "$work/fault")"
  else
    grep -q "$2" "$work/fault" || fail "Oclgrind did not report '$2' for the kernel '$1': this check would find nothing"
  fi
  printf '  %-14s %s\n' "$1" "${2:-nothing reported}"
}
fault none ""
fault stray-write "Invalid write"
fault stray-read "Invalid read"
fault race "data race"
fault uninitialized "uninitialized value"

# Ragged extents, so that groups have idle items. u8>f32, f32>u8 and u8>s16 stand for the mixed types.
problems() {
  local type border kernel forms number=0
  for type in u8 u16 s16 s32 f16 f32 'f32>u8' 'u8>f32' 'u8>s16'; do
    number=$((number + 1))  # every third border, others for the next type
    for border in constant:3 replicate reflect reflect101 wrap valid; do
      number=$((number + 1))
      ((number % 3 == 0)) || continue
      case $type in
        f16 | f32 | 'f32>u8') forms=rank1 ;; # all solvers of the other forms serve it too, by the same programs
        *) forms="random rank1 equal" ;;
      esac
      for kernel in $forms; do
        echo "filter2d $type h6w47c3r3s4 $border kernel:$kernel"
      done
      echo "filter2d $type h5w37c3r3s3 $border kernel:sobel"
      echo "filter2d $type h5w37c4r3s4 $border alpha:3"
    done
  done
  for kernel in prewitt scharr; do
    echo "filter2d u8 h7w29c2r3s3 kernel:$kernel"
    echo "filter2d f32 h7w29c2r3s3 kernel:$kernel"
  done
  for kernel in rank1 equal laplacian; do
    echo "filter2d u8 h7w31c4r3s3 alpha:3 kernel:$kernel"
    echo "filter2d f32 h2w3c3r3s3 alpha:0 kernel:$kernel"
  done
  for kernel in random rank1 equal; do
    for size in c1r5s2 c2r3s3 c4r1s3 c5r3s2; do
      [[ $kernel$size == rank1*r1* ]] || echo "filter2d u8 h5w67$size kernel:$kernel"
    done
    echo "filter2d s32 h5w9c1r11s13 kernel:$kernel"
  done
  for size in c3r3s5 c1r5s6 c5r2s3; do
    echo "filter2d u8 h6w67$size kernel:integer"
  done
  for border in constant:3 replicate reflect reflect101 wrap; do
    echo "filter2d u8 h3w2c2r7s9 $border kernel:rank1"
    echo "filter2d f32 h1w1c1r4s5 $border"
  done
}

# Every form of the kernels, both passes, and what is left of groups and vectors.
layer_problems() {
  cat <<'LIST'
activation n1c3h8w100
activation sigmoid f16 n1c3h9w80
activation bwd tanh bf16 n1c8h5w70
batch m5n3c1h4w5
batch nhwc m5n3c2h5w3
batch bf16 flip m5n3c5h3w5s1
batch flip m5n3c2h5w8s3
batch f16 m5n2c3h20w24
batch gathered m5n3c1h4w4
batch gathered flip m5n3c2h5w7s2
batch nhwc flip m5n3c3h5w4s2
bias_add n1c3h8w100
bias_add nhwc f16 n2c10h9w7
bias_add bwd n2c3h9w16
bias_add bwd bf16 n2c3h17w9
bias_add bwd nhwc n5c12h9w3
bias_add relu n2c3h9w5
bias_add bwd relu n2c3h9w16
bias_add bwd relu bf16 n2c3h17w9
bias_add bwd relu nhwc n5c12h9w3
bias_add bwd f16 n70c10h1w1
add relu n1c3h13w29k3
add f16 nhwc relu n2c8h13w9k16u2
add bf16 n2c3h13w9k8u2
add bwd n1c4h19w16k9u2
add bwd bf16 nhwc n1c4h19w16k12u2
add bwd f16 nhwc n1c3h19w20k8u3
dropout n1100
dropout f16 n1027
dropout bf16 n1500
batch_norm n2c3h9w16
batch_norm relu bf16 n2c3h5w9
batch_norm nhwc f16 n2c10h9w7
batch_norm nhwc relu n5c12h9w3
batch_norm inference n1c3h8w20
batch_norm inference nhwc bf16 n2c10h3w7
batch_norm bwd relu n2c3h9w16
batch_norm bwd bf16 n2c3h5w9
batch_norm bwd nhwc f16 n2c10h9w7
batch_norm bwd relu n70c12h1w1
loss n300c3
loss f16 n9c70
loss bwd n3c21
loss bwd bf16 n2c4097
loss mse n5c513
loss mse bwd f16 n7c31
loss bwd sums n300c3
loss bwd sums bf16 n2c4097
loss mse bwd sums f16 n5c513
norm n1200
norm acc f16 n8195
norm bf16 n16384
update n1200
update nesterov bf16 guarded n1100
update adam f16 scaled guarded n1300
pool2d n1c3h8w16r2s2u2
pool2d f16 n1c3h9w16r3s3u2p1
pool2d bf16 nhwc n1c8h5w6r3s3u2p1
pool2d f16 n1c3h5w7r3s3u2p1
pool2d avg nhwc n1c4h5w6r3s3u2p1
pool2d n33c4h3w3r3s3
pool2d f16 n35c4h3w3r3s3
pool2d bwd n5c3h3w3r3s3
pool2d bwd bf16 avg n5c3h3w3r3s3
pool2d bwd f16 n160c8h3w3r3s3
pool2d bwd n1c3h8w16r2s2u2
pool2d bwd f16 nhwc n1c4h5w6r3s3u2p1
pool2d n1c2h4w4r4s4
pool2d n2c2h10w20r10s19p1
pool2d bwd n1c2h2w25r2s11uw7
pool2d avg_inside f16 n33c4h4w2r4s2
pool2d avg_inside bf16 bwd nhwc n1c3h5w7r3s3p1u2
LIST
}

# verify_all NAME ARGUMENT...: by all solvers, or that of `solver`.
verify_all() {
  local name=$1 status=0
  shift
  step "$name"
  under_oclgrind "$work/log" "$bin/omniconv" verify --device opencl --solver "${solver:-all}" "$@" >"$work/out" || status=$?
  tail -n 1 "$work/out" | sed 's/^/  /'
  if [[ -s $work/log ]]; then
    head -n 40 "$work/log" >&2
    fail "Oclgrind reported the above ($(wc -l <"$work/log") lines in all)"
  fi
  if ((status != 0)); then
    grep -B 1 failed "$work/out" | head -n 20 >&2
    fail "verify ended with status $status"
  fi
  grep -q " 0 failed" "$work/out" || fail "verify checked nothing"
}

problems >"$work/problems"
verify_all "Every solver, type, border and form of weights: $(wc -l <"$work/problems") problems" --deny filter2d/fft --problems "$work/problems"
verify_all "Filters by Fourier transforms" --allow filter2d/fft "filter2d f32 h4w6c2r3s3 reflect"
verify_all "Boxes of rows that are read by words" --allow filter2d/box "filter2d u8 h20w17r3s3 kernel:equal reflect" "filter2d u8 h25w16r3s5 kernel:equal wrap" "filter2d u16 h20w13r3s3 kernel:equal"
verify_all "In strips" --deny filter2d/fft --strip-rows 4 "filter2d u8 h11w50c3r5s3 wrap" "filter2d f32 h11w50c3r5s3 reflect kernel:rank1"
# mma_gemm, whose instructions take long to simulate, goes over groups and classes as over tiles: it has problems of its own; so has fft.
verify_all "Convolutions: passes, types and layouts" --deny conv2d/mma_gemm --pass all --type f32,f16,bf16 --layout nchw,nhwc "acc n2c4h5w4k6r3s2p1uh2g2"
verify_all "Convolutions: groups of few channels" --deny conv2d/mma_gemm,conv2d/fft --pass all --layout nchw,nhwc "n2c4h5w6k4r3s3p1g4" "f16 n1c4h5w8k8r3s2p1uw2g4" "n1c3h2w130k3r1s3g3"
verify_all "Convolutions: matrix units" --allow conv2d/mma_gemm "acc n1c4h5w4k6r3s2p1uh2" "acc nhwc f16 n1c4h5w4k6r1s2p1uh2" "bwd_data acc n1c4h2w4k6r1s2p1uw2" "bwd_data nhwc bf16 n1c2h2w3k4r1s2" "bwd_filter acc bf16 n1c4h5w4k6r1s2p1uh2" "bwd_filter nhwc n1c4h3w4k6r1s2g2"
verify_all "Convolutions: what is fused" "bias relu acc f16 n1c2h4w3k3r2s2p1" "bias flip nhwc bf16 n1c2h4w3k3r2s2p1"
verify_all "Convolutions: small images" --allow conv2d/few_pixels --pass bwd_filter --layout nchw,nhwc "acc n2c33h3w4k9r3s3p1" "f16 n1c32h4w3k8r2s2"
verify_all "Convolutions: Fourier transforms" --allow conv2d/fft --pass all --layout nchw,nhwc "n1c2h5w4k3r3s2p1"
verify_all "Convolutions: Fourier transforms of one channel a group" --allow conv2d/fft "bias relu acc n1c2h5w6k2r3s3p1g2" "bwd_data nhwc n1c2h5w6k2r3s3p1g2"
verify_all "Matrix products: matrix units" --allow gemm/mma,gemm/planes "gemm f32 tn m9n33k35" "gemm tf32 nt m6n37k5batch2"
verify_all "Matrix products: sums of few terms" --allow gemm/short "gemm f32 tn m9n132k3" "gemm bf16 nt m6n37k5batch2"
layer_problems >"$work/layers"
verify_all "Poolings, activations, biases, shortcuts, normalisations, dropout, losses, norms, updates and batches" --problems "$work/layers"
# Of each of these the naive rung has been run above.
rungs() { # OPERATION PROBLEM...
  local operation=$1 tuning
  shift
  for tuning in "rung=2 tile_m=4 tile_n=8 work=1" "rung=3 tile_m=8 tile_n=4 work=2"; do
    solver=$operation/rungs/gpu.1 verify_all "The classic study's rungs of $operation: $tuning" --tuning "$tuning" "$@"
  done
}
rungs gemm "gemm f32 tn m9n5k6" "gemm f32 nt m3n9k7batch2"
rungs conv2d "n2c2h5w4k3r3s3p1u2" "bwd_data n2c2h5w4k3r3s3p1u2" "bwd_filter n2c2h5w4k3r3s3p1" "bwd_filter n3c2h3w3k5r3s3"
rungs bias_add "bias_add n2c3h3w5" "bias_add nhwc n2c5h3w2" "bias_add bwd n2c3h3w5" "bias_add bwd nhwc n2c5h3w2"
rungs loss "loss n5c11" "loss bwd n5c11" "loss mse n5c11" "loss mse bwd n5c11"
rungs activation "activation n1c2h5w7" "activation sigmoid bwd n1c2h5w7"
rungs update "update guarded n70" "update adam guarded scaled n70"
rungs add "add relu n2c2h5w3k4u2" "add bwd n2c2h5w3k4u2"
# Their buffers end with the arrays, so that every byte beside these is reported.
fitting() { # NAME TESTS FILTER
  step "$1"
  under_oclgrind "$work/log" "$bin/opencl_tests" --gtest_filter="$3" >"$work/out" 2>&1 || fail "$(grep -m 1 Failure -A 4 "$work/out")"
  grep -q "PASSED.* $2 test" "$work/out" || fail "not all of $3 ran"
  if [[ -s $work/log ]]; then
    head -n 40 "$work/log" >&2
    fail "Oclgrind reported the above"
  fi
}
fitting "Matrix products: tiles, parts of k, and plain" 2 'GpuGemm.StaysInsideBuffersThatFit:GpuGemm.PlainIsExactInBothShapes'
fitting "Convolutions: direct, and by matrix products" 1 'GpuConv2d.StaysInsideBuffersThatFit'
step "Oclgrind reported nothing"
