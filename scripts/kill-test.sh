#!/usr/bin/env bash
# Ends `omniconv filter` at random moments, from its start to past its end, and looks at what it leaves: an output that
# is missing or old, or whole and right, and nothing else; but for the two calls of the system by which a file replaces
# another (docs/cli.md), between which it is whole beside the old one.
#
#   scripts/kill-test.sh [COUNT] [OMNICONV]
#
# COUNT is 1000 by default, OMNICONV the command in build/release. The files lie in $TMPDIR, else in memory (/dev/shm); it
# must be a file system that has O_TMPFILE. The first fault ends it with status 1, and the files are kept.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-1000}
omniconv=$(realpath -m "${2:-build/release/bin/omniconv}")

fail() { # STATUS MESSAGE
  printf 'kill-test: error: %s\n' "$2" >&2
  exit "$1"
}
[[ $count =~ ^[1-9][0-9]*$ ]] || fail 2 "COUNT is '$count'; it is a whole number from 1"
[[ -x $omniconv ]] || fail 2 "there is no command $omniconv; build it, or name another"

memory=/dev/shm
[[ -w $memory ]] || memory=/tmp
folder=$(mktemp -d "${TMPDIR:-$memory}/omniconv-kill-XXXXXX")
# Not by a job that a signal ends before it has become the command: it runs this, too.
trap '[[ $BASHPID != "$$" ]] || rm -rf "$folder"' EXIT
mkdir "$folder/work" # only the output is ever in it
cd "$folder"

# A pipe that never has anything to read: `read` from it waits, without a process that would take time to start.
exec {nothing}<> <(:)
# Signals reach jobs as they reach a command that a user types; otherwise bash has them ignore SIGINT.
set -m

filter() { # IN OUT
  exec "$omniconv" filter "$1" "$2" --kernel motion:25,30 --strip-rows 32 --device cpu --threads 2 --quiet 2>error
}

# In each format: a picture of noise, what must become of it, and the milliseconds that this takes.
formats=()
declare -A milliseconds
printf 'P6\n1200 800\n255\n' >in.ppm
head -c $((1200 * 800 * 3)) /dev/urandom >>in.ppm
for format in ppm npy png tif jpg; do
  if [[ $format != ppm ]] && ! "$omniconv" filter in.ppm "in.$format" --kernel identity --quiet 2>error; then
    printf 'kill-test: without .%s: %s\n' "$format" "$(<error)"
    continue
  fi
  began=${EPOCHREALTIME/./}
  for repeat in 1 2 3; do
    (filter "in.$format" "expected.$format") || fail 1 "without any signal: $(<error)"
  done
  milliseconds[$format]=$(((${EPOCHREALTIME/./} - began) / 3000))
  formats+=("$format")
done

random_of() { # CHOICE...
  local choices=("$@")
  chosen=${choices[RANDOM % $#]}
}

declare -A seen=([KILL]=0 [TERM]=0 [INT]=0 [old]=0 [new]=0 [beside]=0)
for ((i = 1; i <= count; ++i)); do
  random_of "${formats[@]}" && format=$chosen
  random_of KILL KILL TERM INT && signal=$chosen
  random_of missing other input && before=$chosen
  output=work/out.$format input=in.$format
  rm -f work/out.* before
  case $before in
    missing) ;;
    other) printf 'of an earlier run' >before ;;
    input) cp "in.$format" before && input=$output ;;
  esac
  [[ $before == missing ]] || cp before "$output"

  filter "$input" "$output" &
  job=$!
  # Up to a third past the usual end, since a machine is not always equally fast.
  printf -v delay '%d.%06d' 0 $(((RANDOM * 32768 + RANDOM) % (milliseconds[$format] * 1333)))
  read -rt "$delay" -u "$nothing" || true
  kill -"$signal" "$job" 2>/dev/null || true
  status=0
  { wait "$job" || status=$?; } 2>/dev/null

  left="nothing"
  [[ -e $output ]] && left="a part"
  if cmp -s "$output" "expected.$format"; then left=new; fi
  if [[ $before != missing ]] && cmp -s "$output" before; then left=old; fi
  if [[ $before == missing && ! -e $output ]]; then left=old; fi
  others=$(find work -mindepth 1 ! -name "out.$format")
  if [[ $before != missing && $left == old && $status =~ ^(137|143)$ && $others == work/.out.$format.*.tmp ]] &&
    cmp -s "$others" "expected.$format"; then
    rm "$others"
    others="" seen[beside]=$((seen[beside] + 1))
  fi
  fault=""
  [[ $left == old || $left == new ]] || fault="it left $left of the output"
  [[ -z $others ]] || fault="it left other files: $others"
  case $status in
    0) [[ $left == new ]] || fault="it said that it was done and left $left" ;;
    130) [[ $left == old ]] || fault="it said that it was interrupted and left $left" ;;
    137 | 143) ;;
    *) fault="its status was $status: $(<error)" ;;
  esac
  if [[ -n $fault ]]; then
    trap - EXIT
    fail 1 "run $i, .$format, output $before before, SIG$signal after $delay s of ${milliseconds[$format]} ms: $fault; see $folder"
  fi
  seen[$signal]=$((seen[$signal] + 1)) seen[$left]=$((seen[$left] + 1)) seen[$format]=$((${seen[$format]-0} + 1))
done

of_formats=""
for format in "${formats[@]}"; do of_formats+=", ${seen[$format]-0} .$format"; done
printf '%d ended at random moments (%d SIGKILL, %d SIGTERM, %d SIGINT; %s): %d left no output or the old one (%d with the whole new one beside it), %d the whole new one, none a part or another file\n' \
  "$count" "${seen[KILL]}" "${seen[TERM]}" "${seen[INT]}" "${of_formats#, }" "${seen[old]}" "${seen[beside]}" "${seen[new]}"
