#!/usr/bin/env bash
# Builds omniconv with its tests and runs them.
#
#   ./test.sh [--sanitizers | --gate] [--no-setup]
#
# Installs what is missing first, on Debian or Ubuntu, unless --no-setup is given. --sanitizers builds and runs the CPU tests
# with the address, undefined-behaviour and thread sanitizers first. --gate, as before a change goes in, leaves out what takes long, but for a
# sixth of it, which changes from commit to commit: under the address and undefined-behaviour sanitizers, or that of threads, the solvers'
# tests or the others; or Oclgrind and random problems; or kernels of CUDA by the processor, devices of few units, headers by
# themselves and trainings beside PyTorch. The last lines are the summary of the suite.
set -euo pipefail
cd "$(dirname "$0")"
source scripts/common.sh

setup=yes addresses=() threads=() bench=OFF left_out=
# What takes long of the release build, in two parts.
long=('random/|oclgrind' '[A-Za-z]*ByProcessor|[A-Za-z]*On(One|Few)Unit|internal_header|peers/training/')
for argument; do
  case $argument in
    --no-setup) setup=no ;;
    # With these the programs of bench/, too: those whose libraries are there must compile.
    --sanitizers) addresses=(conformance_tests other_cpu_tests) threads=(conformance_tests other_cpu_tests) bench=ON ;;
    --gate)
      bench=ON left_out="${long[0]}|${long[1]}"
      case $(($(git rev-list --count HEAD) % 6)) in
        0) addresses=(conformance_tests) ;;
        1) threads=(conformance_tests) ;;
        2) left_out=${long[0]} ;;
        3) addresses=(other_cpu_tests) ;;
        4) threads=(other_cpu_tests) ;;
        5) left_out=${long[1]} ;;
      esac
      ;;
    *) fail "unknown option '$argument'; known are --sanitizers, --gate and --no-setup" ;;
  esac
done

if [[ $setup == yes ]]; then
  step "Set-up: what is missing to build and test omniconv?"
  scripts/setup.sh --tests
fi

# One more than there are cores, since some wait for the disk.
tests_at_once=$(($(nproc) + 1))
# run_tests PRESET [CTEST_ARGUMENT...]
run_tests() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$tests_at_once" "$@"
}

# not_built PROGRAM...: the names of tests whose programs are not among these.
not_built() {
  [[ " $* " == *" other_cpu_tests "* ]] && echo '^conformance_tests_NOT_BUILT' || echo '_NOT_BUILT|^examples/'
}

if ((${#addresses[@]})); then
  step "Building ${addresses[*]} with the address and undefined-behaviour sanitizers in build/asan"
  build asan "${addresses[@]}" -- -DOMNICONV_TESTS=ON
  step "These CPU tests under them"
  LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" UBSAN_OPTIONS=print_stacktrace=1 \
    run_tests asan --label-regex '^cpu$' --exclude-regex "$(not_built "${addresses[@]}")"
fi
if ((${#threads[@]})); then
  step "Building ${threads[*]} with the thread sanitizer in build/tsan"
  build tsan "${threads[@]}" -- -DOMNICONV_TESTS=ON
  step "These CPU tests under it"
  # The sanitizer of GCC 12 needs addresses that are not randomised as widely as newer kernels do it. Left out: tests of one
  # thread, and of the types of pixels all but u8 and f32, since threads meet the same way in all.
  one_thread='HostileInput|Formats|Plain|DamagedFormats|OpacityInFormats|Box.LongRowsOfExtremes|SameBits.InstructionSets|SplitMatrices|SplitLaunches|FewChannels'
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" setarch --addr-no-randomize \
    ctest --test-dir build/tsan --output-on-failure --no-tests=error --parallel "$tests_at_once" --label-regex '^cpu$' \
    --exclude-regex "$(not_built "${threads[@]}")"'|^('"$one_thread"')|"([us]16|f64|.*>.*)"'
fi

step "Building omniconv and its tests in build/release"
build release -- -DOMNICONV_TESTS=ON -DOMNICONV_BENCH=$bench
step "The tests${left_out:+, but for some that take long}"
run_tests release ${left_out:+--exclude-regex "^($left_out)"}
