#!/usr/bin/env bash
# Builds omniconv with its tests and runs them.
#
#   ./test.sh [--sanitizers | --gate] [--no-setup]
#
# Installs what is missing first, on Debian or Ubuntu, unless --no-setup is given. --sanitizers builds and runs the CPU tests
# with the address, undefined-behaviour and thread sanitizers first. --gate, as before a change goes in, leaves out what takes long, but for a
# third of it, which changes from commit to commit: the address and undefined-behaviour sanitizers; the thread sanitizer; kernels of CUDA by the
# processor, random problems, Oclgrind, devices of few units and headers by themselves. The last lines are the summary of the suite.
set -euo pipefail
cd "$(dirname "$0")"
source scripts/common.sh

setup=yes addresses=no threads=no long=yes bench=OFF
for argument; do
  case $argument in
    --no-setup) setup=no ;;
    # With these the programs of bench/, too: those whose libraries are there must compile.
    --sanitizers) addresses=yes threads=yes bench=ON ;;
    --gate)
      bench=ON long=no
      case $(($(git rev-list --count HEAD) % 3)) in
        0) addresses=yes ;;
        1) threads=yes ;;
        2) long=yes ;;
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

# Those of the tests labelled cpu that have threads.
threaded_tests=(image_tests device_tests conformance_tests train_tests filter_array conv2d_layer host_memory train_network)

if [[ $addresses == yes ]]; then
  step "Building with the address and undefined-behaviour sanitizers in build/asan"
  build asan cpu_tests -- -DOMNICONV_TESTS=ON
  step "The CPU tests under them"
  LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" UBSAN_OPTIONS=print_stacktrace=1 run_tests asan --label-regex '^cpu$'
fi
if [[ $threads == yes ]]; then
  step "Building with the thread sanitizer in build/tsan"
  build tsan "${threaded_tests[@]}" -- -DOMNICONV_TESTS=ON
  step "The CPU tests with threads under it"
  # The sanitizer of GCC 12 needs addresses that are not randomised as widely as newer kernels do it. Left out: tests of one
  # thread, and of the types of pixels all but u8 and f32, since threads meet the same way in all.
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" setarch --addr-no-randomize ctest --test-dir build/tsan \
    --output-on-failure --no-tests=error --parallel "$tests_at_once" --label-regex '^cpu$' \
    --exclude-regex '^(core_tests_NOT_BUILT|HostileInput|Formats|Plain|DamagedFormats|OpacityInFormats|Box.LongRowsOfExtremes|SameBits.InstructionSets|SplitMatrices|SplitLaunches|FewChannels)|"([us]16|f64|.*>.*)"'
fi

step "Building omniconv and its tests in build/release"
build release -- -DOMNICONV_TESTS=ON -DOMNICONV_BENCH=$bench
if [[ $long == yes ]]; then
  step "The tests"
  run_tests release
else
  step "The tests, without those that take long"
  run_tests release --exclude-regex '^(random/|oclgrind|peers/training/|internal_header|[A-Za-z]*ByProcessor|[A-Za-z]*On(One|Few)Unit)'
fi
