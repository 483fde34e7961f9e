#!/usr/bin/env bash
# Packs omniconv for a machine that has a compiler and CMake and nothing else: the sources as they are, and the libraries that
# the preset `lean` and the tests of devices need.
#
#   scripts/bundle.sh [--clblast] [OUTPUT.tar.gz]    (build/omniconv-bundle.tar.gz if none is named)
#
# --clblast adds the library that gpu-check.sh's step of that name compares with.
#
# There, without root and without a network:
#
#   tar xzf omniconv-bundle.tar.gz && omniconv/scripts/gpu-check.sh
#
# The libraries are the files of this machine's Debian or Ubuntu packages; they run on machines of the same architecture whose
# distribution is as new as this one. Untracked files are left out.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
source scripts/common.sh

# They hold headers, CMake's configuration and static libraries; the shared libraries that they link to are followed.
packages=(libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev)
loader=ocl-icd-libopencl1

if [[ ${1:-} == --clblast ]]; then
  packages+=(libclblast1)
  shift
fi
[[ ${1:-} != -* ]] || fail "unknown option '$1'; known is --clblast"
(($# <= 1)) || fail "one argument at most: the archive to write, as in build/omniconv-bundle.tar.gz"
output=${1:-build/omniconv-bundle.tar.gz}
[[ $# == 0 || $output == /* ]] || output=$here/$output
[[ $output == *.tar.gz ]] || fail "$output does not end in .tar.gz: name an archive of that kind"
[[ $# == 0 ]] && mkdir -p build
[[ -d $(dirname "$output") ]] || fail "$(dirname "$output") is no folder: make it, or name another"
command -v dpkg-query >/dev/null || fail "this is not Debian or Ubuntu (no dpkg-query), whose packages are bundled"
for package in "${packages[@]}" "$loader"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
    fail "the package $package is not installed: scripts/setup.sh --tests installs it (CLBlast: --bench)"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/omniconv
prefix=$tree/bundled

# Changes not yet committed go along: `stash create` makes a commit of them, and leaves everything as it is.
commit=$(git rev-parse --short=12 HEAD)
changed=$(git stash create)
[[ -z $changed ]] || commit+=-changed
git archive --prefix=omniconv/ "${changed:-HEAD}" | tar x -C "$work"
echo "$commit" >"$tree/COMMIT"

# place FILE FOLDER: a file of /usr, at the same place below FOLDER; links stay links.
place() {
  local target=$2${1#/usr}
  mkdir -p "$(dirname "$target")"
  cp --no-dereference --preserve=timestamps "$1" "$target"
}
place_package() { # PACKAGE FOLDER
  local file other
  while read -r file; do
    [[ -f $file && ($file != /usr/share/doc/* || $file == */copyright) && $file != /usr/share/man/* && $file != /usr/src/* ]] || continue
    place "$file" "$2"
    [[ -L $file && $file == *.so ]] || continue
    for other in "$file".*; do place "$other" "$2"; done
  done < <(dpkg -L "$1")
}
for package in "${packages[@]}"; do place_package "$package" "$prefix"; done
# Apart, for it must not come before a loader that the machine has.
place_package "$loader" "$prefix/opencl"
dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' "${packages[@]}" "$loader" >"$prefix/packages.txt"

tar c --owner=0 --group=0 --sort=name -C "$work" omniconv | gzip -9 >"$work/bundle.tar.gz"
mv "$work/bundle.tar.gz" "$output"
printf '%s: %s, commit %s\n' "$output" "$(numfmt --to=iec --suffix=B --format=%.1f "$(stat -c %s "$output")")" "$commit"
