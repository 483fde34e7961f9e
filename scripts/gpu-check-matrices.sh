# shellcheck shell=bash
# The steps of scripts/gpu-check.sh that are about convolutions and matrix products; sourced by it, and uses what it has.

# --- Convolutions and matrix products against the references, spread over processes: nearly all the time goes to compiling a
# kernel for each problem

conv_runs() { # DEVICE: the options of one run of verify a line
  local tails='--problems data/problems/tails.txt --pass all' gemm='--problems data/problems/gemm.txt' type list layout
  # Of large layers a sample of few images; the references as solvers would compute them whole.
  local some='--sampled --samples 512 --deny conv2d/double --deny gemm/double'
  if [[ $quick == yes ]]; then
    echo "$tails --type f32"
    echo "$gemm $some"
    echo "--problems $work/some-anchors.txt --pass all --batch 1 $some"
  elif is_gpu "$1" || [[ $1 == cpu ]]; then
    for type in f32 f16 bf16 tf32; do
      for layout in nchw nhwc; do echo "$tails --layout $layout --type $type"; done
    done
    for type in fwd bwd_data bwd_filter; do
      for list in anchors studies; do echo "--problems data/problems/$list.txt --pass $type --layout nchw,nhwc --batch 2 $some"; done
    done
    echo "$gemm --type f32,tf32 $some"
    echo "$gemm --type f16,bf16 $some"
    [[ $1 != cpu ]] || echo "$tails --layout nchw,nhwc --type f64"
    [[ $1 != cpu ]] || echo "$gemm --type f64 $some"
  else
    for type in f32 f16; do echo "$tails --layout nchw,nhwc --type $type"; done
    for list in anchors studies; do echo "--problems data/problems/$list.txt --pass all --batch 1 $some"; done
    echo "$gemm --type f32,bf16 $some"
  fi
}
# Sets of options, at most one process per core at once; each set's report, text and errors are numbered. The last device first: the
# CPU, which compiles nothing, comes at the end.
verify_convs() {
  local i device number options
  trap 'kill $(jobs -rp) 2>/dev/null' TERM
  for ((i = ${#devices[@]} - 1; i >= 0; --i)); do
    device=${devices[i]} number=0
    while read -r options; do
      while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
      number=$((number + 1))
      # shellcheck disable=SC2086 # words of options
      timeout 500 "$omniconv" verify --device "$device" --solver all $options --json "$work/conv.$device.$number.json" \
        >"$work/conv.$device.$number" 2>"$work/conv.$device.$number.errors" &
    done < <(conv_runs "$device")
  done
  wait
}
start_convs() {
  conv_start=$(seconds)
  grep -F -e '"resnet.4.3x3"' -e '"resnet.5.3x3"' -e '"resnet.3.1x1s2"' -e '"vgg.1.1"' data/problems/anchors.txt >"$work/some-anchors.txt" || true
  [[ $(wc -l <"$work/some-anchors.txt") == 4 ]] || fail "data/problems/anchors.txt: the four layers that --quick takes are not all there"
  verify_convs &
  verifying_convs=$!
}

# counts_of FILE...: what runs of verify passed, failed and refused; one without a last line counts as failed.
counts_of() {
  local file
  for file; do
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) refused$/\1 \2 \3/p' "$file" | grep . || echo "0 1 0"
  done | awk '{ p += $1; f += $2; r += $3 } END { print p + 0, f + 0, r + 0 }'
}
# list_of FILE...: reports as one list; those that were never written are left out.
list_of() {
  local file first=yes
  echo "["
  for file; do
    [[ -s $file ]] || continue
    [[ $first == yes ]] || echo ","
    first=no
    cat "$file"
  done
  echo "]"
}
# unserved FILE...: problems for which no solver passed.
unserved() { awk '/^[^ ]/ && !/ passed, / { if (name && !ok) print name; name = $0; ok = 0 } /^  ok / { ok = 1 } END { if (name && !ok) print name }' "$@"; }

finish_convs() {
  local device number text texts reports p f problems missing idle last
  wait "$verifying_convs" || true
  for device in "${devices[@]}"; do
    texts=() reports=()
    for ((number = 1; number <= $(conv_runs "$device" | wc -l); ++number)); do
      texts+=("$work/conv.$device.$number") reports+=("$work/conv.$device.$number.json")
    done
    read -r p f _ <<<"$(counts_of "${texts[@]}")"
    list_of "${reports[@]}" >"$out/verify-conv-$(file_name "$device").json"
    problems=$(cat "${texts[@]}" | grep '^[^ ]' | grep -vc '^[0-9]* passed, ' || true)
    missing=$(unserved "${texts[@]}") idle=$(grep -l '^0 passed, ' "${texts[@]}" || true)
    last=$(stat -c %.Y "${texts[@]}" | sort -n | tail -n 1)
    [[ -z $missing ]] || f=$((f + $(wc -l <<<"$missing")))
    [[ -z $idle ]] || f=$((f + $(wc -l <<<"$idle")))
    record "conv: $device" "$p" "$f" "$conv_start" "$problems problems" "$last"
    [[ -z $missing ]] || said 20 <<<"no solver passed: $missing"
    [[ -z $idle ]] || said 20 <<<"nothing passed in: $idle"
    for text in "${texts[@]}"; do
      grep -q '^[0-9]* passed, .* failed, ' "$text" || { echo "      | ended without a summary:"; said 3 <"$text"; said 6 <"$text.errors"; }
      grep -B1 '^  failed' "$text" | said 12 || true
    done
  done
}

# --- Times

# bench_matrices DEVICE NAME OPTION...: times into bench-NAME-DEVICE.json.
bench_matrices() {
  local device=$1 name=$2 start json p f
  shift 2
  start=$(seconds) json=$out/bench-$name-$(file_name "$device").json
  timeout 400 "$omniconv" bench --device "$device" --budget "$budget" "$@" --json "$json" >"$work/bench-$name.$device" 2>&1 || true
  said 80 <"$work/bench-$name.$device"
  p=$(grep -c '"status": "ok"' "$json" 2>/dev/null || true)
  f=$(grep -c '"status": "\(failed\|refused\)"' "$json" 2>/dev/null || true)
  [[ -s $json ]] || f=1
  record "conv-bench: $name, $device" "${p:-0}" "${f:-0}" "$start"
}
time_convs() {
  local timed=("${gpus[@]}") size=whole budget=0.3 device start json p f
  [[ $quick == no ]] || timed=("${devices[@]}") size=small budget=0.01
  ((${#timed[@]})) || no_gpu conv-bench "nothing is timed (--quick times every device on small problems)"
  for device in "${timed[@]}"; do
    bench_matrices "$device" gemm --problems "$(problems gpu-gemm.txt "$size")" --units fma
    bench_matrices "$device" conv --problems "$(problems gpu-conv.txt "$size")" --problems "$(problems anchors.txt "$size")" \
      --allow conv2d/im2col_gemm
    start=$(seconds) json=$out/explain-$(file_name "$device").json
    grep -E 'resnet.2.3x3|vgg.3.2|depthwise' "$(problems anchors.txt "$size")" | grep -v '^n1c' >"$work/layers.txt"
    timeout 100 "$omniconv" explain --device "$device" --measure --budget "$budget" --problems "$work/layers.txt" --json "$json" \
      >"$work/explain.$device" 2>&1 && p=1 f=0 || p=0 f=1
    said 40 <"$work/explain.$device"
    record "conv-bench: explain, $device" "$p" "$f" "$start"
  done
}

# --- Arrays of more than 2^31 elements

try_large() {
  local tried=("${gpus[@]}") size=whole device start p f refused running=()
  [[ $quick == no ]] || tried=("${devices[@]}") size=small
  start=$(seconds)
  if ((${#tried[@]} == 0)); then
    no_gpu large "nothing large is tried (--quick tries small arrays on every device)"
    return
  fi
  for device in "${tried[@]}"; do  # at once: nearly all the time goes to the host's memory
    timeout 560 "$omniconv" verify --device "$device" --sampled --samples 256 --problems "$(problems large.txt "$size")" \
      --json "$out/verify-large-$(file_name "$device").json" >"$work/large.$device" 2>&1 &
    running+=($!)
  done
  wait "${running[@]}" || true
  for device in "${tried[@]}"; do
    said 40 <"$work/large.$device"
    read -r p f refused <<<"$(counts_of "$work/large.$device")"
    record "large: $device" "$p" "$((f + refused))" "$start" "" "$(stat -c %.Y "$work/large.$device")"
  done
}

# --- The CUDA tests of convolutions and products under compute-sanitizer; its memcheck would also report what the code asks the
# driver on purpose

sanitize() {
  local sanitizer start running statuses=() shards tool i number=0 process status p f
  # shellcheck disable=SC2086 # folders
  sanitizer=$(find_library compute-sanitizer ${PATH//:/ } /usr/local/cuda/bin)
  [[ -n $sanitizer ]] || { echo "compute-sanitizer is not there: it comes with the CUDA toolkit"; exit 1; }
  make_targets cuda_tests
  start=$(seconds) running=() shards=$(($(nproc) < 15 ? 1 + $(nproc) / 4 : 5))
  for tool in memcheck racecheck initcheck; do
    for ((i = 0; i < shards; ++i)); do
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i timeout 560 "$sanitizer" --tool "$tool" --report-api-errors no \
        "$build/bin/cuda_tests" --gtest_filter="${OMNICONV_SANITIZED_TESTS:-GpuConv2d.*:GpuGemm.*}" >"$work/$tool.$i" 2>&1 &
      running+=($!)
    done
  done
  for process in "${running[@]}"; do
    status=0
    wait "$process" || status=$?
    statuses+=("$status")
  done
  for tool in memcheck racecheck initcheck; do
    p=$(cat "$work/$tool".[0-9]* | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' | awk '{ p += $1 } END { print p + 0 }')
    f=0
    for ((i = 0; i < shards; ++i)); do
      status=${statuses[number]} number=$((number + 1))
      ((status == 0)) && grep -Eq '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$work/$tool.$i" &&
        grep -q '^\[  PASSED  \]' "$work/$tool.$i" && ! grep -q '^\[  FAILED  \]' "$work/$tool.$i" && continue
      f=$((f + 1))
      echo "      | $tool, process $i: exit status $status"
      grep -m 12 -e '^=========' -e '^\[  FAILED' "$work/$tool.$i" | said || true
      tail -n 2 "$work/$tool.$i" | said
    done
    ((p > 0)) || f=$((f + 1))
    record "sanitizer: $tool" "$p" "$f" "$start" "of GoogleTest, in $shards processes"
  done
}

# --- Matrix products beside CLBlast

compare_clblast() {
  local compared sizes device start json p f
  start=$(seconds)
  compared=(${gpus[@]:+"${gpus[@]}"}) sizes=()
  [[ $quick == no ]] || compared=("${devices[@]}") sizes=(--seconds 0.01 "gemm f32 nn m200n100k64" "gemm f32 nt m64n130k70" "gemm f32 tn m64n64k64")
  if [[ " ${compared[*]:-}" != *" opencl"* ]]; then
    echo "no GPU under OpenCL: nothing to compare CLBlast on (--quick compares on every OpenCL device)"
    record "clblast" 0 1 "$start" "no OpenCL device"
    return
  fi
  reach libclblast.so.1 "$PWD"/bundled/lib/* "${usual_folders[@]}"
  arguments+=(-DOMNICONV_BENCH=ON)
  make_targets gemm_vs_clblast
  for device in "${compared[@]}"; do
    [[ $device == opencl* ]] || continue
    start=$(seconds) json=$out/clblast-$(file_name "$device").json
    timeout 300 "$build/bin/gemm_vs_clblast" --device "$device" --json "$json" "${sizes[@]}" >"$work/clblast.$device" 2>&1 || true
    said 40 <"$work/clblast.$device"
    p=$(grep -c '"integers": "equal"' "$json" 2>/dev/null || true)
    f=$(grep -c '"integers": "DIFFERENT"' "$json" 2>/dev/null || true)
    [[ -s $json ]] || f=1
    record "clblast: $device" "${p:-0}" "${f:-0}" "$start"
  done
}
