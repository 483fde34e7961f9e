# shellcheck shell=bash
# Shared by demo.sh, test.sh and .ci/run; sourced, after `set -euo pipefail`.

started=$SECONDS

# A heading, with the time since the start.
step() {
  local seconds=$((SECONDS - started))
  printf '\n[%d:%02d] %s\n' $((seconds / 60)) $((seconds % 60)) "$*"
}

# Prints a command as it could be typed, then runs it.
show() {
  local word line='  $'
  for word; do
    [[ $word =~ ^[A-Za-z0-9_./:,=@-]+$ ]] || word="'$word'"
    line+=" $word"
  done
  printf '%s\n' "$line"
  "$@"
}

fail() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Compilers at once: one per core, but no more than memory allows (the largest files need 1.5 GB).
jobs_at_once() {
  local cores memory_kb jobs
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  jobs=$((memory_kb / 1500000))
  ((jobs < 1)) && jobs=1
  ((jobs > cores)) && jobs=$cores
  echo "$jobs"
}

# build PRESET [TARGET...] -- [CMAKE_ARGUMENT...]: configures build/PRESET and builds the targets (all if none is named).
build() {
  local preset=$1 targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do
    targets+=(--target "$1")
    shift
  done
  (($#)) && shift
  mkdir -p "build/$preset"
  local log="build/$preset/configure.log"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "CMake could not configure build/$preset; the whole of what it said is in $log"
  fi
  # A compiler cache takes dependencies from the compiler, instead of preprocessing each file to find them.
  CCACHE_DEPEND=1 cmake --build "build/$preset" --parallel "$(jobs_at_once)" "${targets[@]}"
}
