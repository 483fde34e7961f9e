#!/usr/bin/env bash
# Installs what is missing to build and run omniconv on Debian or Ubuntu, and says what and why.
#
#   scripts/setup.sh [--tests] [--bench] [--fuzz]
#
# --tests adds what the tests need, --bench what the comparison programs need, --fuzz what the preset fuzz needs. Needs root or sudo only when something is
# missing. Running it again does nothing.
set -euo pipefail

fail() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 3
}

tests=no bench=no fuzz=no
for argument; do
  case $argument in
    --tests) tests=yes ;;
    --bench) bench=yes ;;
    --fuzz) fuzz=yes ;;
    *) fail "unknown option '$argument'; known are --tests, --bench and --fuzz" ;;
  esac
done

# is_there CHECK: a command, a shared library that the loader knows, or an installed package.
is_there() {
  case $1 in
    command:*) command -v "${1#command:}" >/dev/null ;;
    cmake) command -v cmake >/dev/null && printf '3.25\n%s\n' "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V -C ;;
    library:*) [[ $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null) == *"${1#library:}"* ]] ;;
    package:*) [[ $(dpkg-query -W -f '${db:Status-Status}' "${1#package:}" 2>/dev/null) == installed ]] ;;
  esac
}

missing=()
need() { # PACKAGE CHECK WHY
  is_there "$2" && return
  missing+=("$1")
  printf '  %-22s %s\n' "$1" "$3"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this is not Debian or Ubuntu (no apt-get); install a C++20 compiler, CMake 3.25, Ninja, Highway, fmt," \
    "CLI11, nlohmann-json, OpenImageIO, libpng, libtiff, libjpeg, libwebp, cairo, libonnx and, for the tests, GoogleTest yourself, then run again with --no-setup"
fi

need g++ command:g++ "the compiler"
need cmake cmake "configures the build (3.25 or newer)"
need ninja-build command:ninja "runs the build"
need git command:git "tells the build its commit"
need libhwy-dev package:libhwy-dev "Highway: vector instructions, chosen at run time"
need libfmt-dev package:libfmt-dev "fmt: text"
need libcli11-dev package:libcli11-dev "CLI11: the command line"
need nlohmann-json3-dev package:nlohmann-json3-dev "JSON reports"
need libopenimageio-dev package:libopenimageio-dev "OpenImageIO: JPEG, PNG, TIFF and other image files"
need libpng-dev package:libpng-dev "libpng: plain PNG files"
need libtiff-dev package:libtiff-dev "libtiff: plain TIFF files"
need libjpeg-dev package:libjpeg-dev "libjpeg-turbo: plain JPEG files"
need libwebp-dev package:libwebp-dev "libwebp: WebP files"
need zlib1g-dev package:zlib1g-dev "zlib: compresses PNG files, reads compressed data sets"
need libcairo2-dev package:libcairo2-dev "cairo: plots of trainings"
need libonnx-dev package:libonnx-dev "ONNX: trained networks for other programs,"
need libprotobuf-dev package:libprotobuf-dev "  and its messages"
need ocl-icd-libopencl1 library:libOpenCL.so.1 "the OpenCL loader"
need pocl-opencl-icd package:pocl-opencl-icd "PoCL: an OpenCL device on any machine"
if [[ $tests == yes ]]; then
  need libgtest-dev package:libgtest-dev "GoogleTest: the tests"
  need python3-numpy package:python3-numpy "the tests compare with NumPy,"
  need python3-scipy package:python3-scipy "  SciPy"
  need python3-opencv package:python3-opencv "  OpenCV,"
  need python3-torch package:python3-torch "  and PyTorch"
  need python3-pip package:python3-pip "  pip: fetches ONNX Runtime and TensorBoard, which Debian has not"
  need pkgconf command:pkg-config "pkg-config: the installed library,"
  need mandoc command:mandoc "  the manual page"
  need zsh command:zsh "  and completion are tried"
  need oclgrind command:oclgrind "Oclgrind: OpenCL kernels searched for races and stray accesses"
fi
if [[ $bench == yes ]]; then
  need libopencv-imgproc-dev package:libopencv-imgproc-dev "OpenCV: the peer in bench/"
  need libdnnl-dev package:libdnnl-dev "oneDNN: the peer of convolutions in bench/"
  need libclblast1 package:libclblast1 "CLBlast: the peer of matrix products on OpenCL devices"
  need python3-matplotlib package:python3-matplotlib "Matplotlib: plots of algorithms in docs/"
fi
if [[ $fuzz == yes ]]; then
  need clang command:clang++ "Clang: the compiler of the fuzz targets"
  need libclang-rt-14-dev package:libclang-rt-14-dev "  with libFuzzer and its sanitizers"
fi
# From the Python Package Index, into a folder of the build: tests are skipped where it cannot be had.
python_folder=$(dirname "$0")/../build/python
fetch() { # WHAT MODULE TEST PACKAGE...
  [[ $tests == yes && ! -d $python_folder/$2 ]] || return 0
  echo "  fetching $1"
  /usr/bin/python3 -m pip install --quiet --root-user-action ignore --no-deps --target "$python_folder" "${@:4}" >/dev/null 2>&1 ||
    echo "  it could not be fetched: the test $3 will be skipped"
}
fetch_python() {
  fetch "ONNX Runtime, with which networks in ONNX files are compared" onnxruntime peers/onnx onnxruntime flatbuffers
  fetch "TensorBoard, which reads the curves of trainings" tensorboard peers/events tensorboard protobuf absl-py google-crc32c
}

if ((${#missing[@]} == 0)); then
  fetch_python
  echo "  nothing is missing"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null ||
    fail "installing needs root and there is no sudo here; as root: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo)
  [[ -t 0 ]] || as_root=(sudo -n)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1; }
update() {
  echo "  fetching the package lists"
  apt -o APT::Update::Error-Mode=any update
}
reason() { grep -m 1 -E "^[EW]: |^sudo: " "$log" || tail -n 1 "$log"; }
# Sets `size`, as apt says it; fails where a package is unknown to the lists that are here.
price() {
  size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives.*/\1 to fetch/p; s/^After this operation, \(.*\) of additional.*/, \1 on disk/p' |
    tr -d '\n')
  [[ -n $size ]]
}

updated=no
if ! price; then
  update || fail "apt-get update failed: $(reason)"
  updated=yes
  price || fail "apt-get knows no package for one of: ${missing[*]}; on Ubuntu, enable 'universe'"
fi
echo "  installing them and what they depend on ($size)"
install() { apt install --yes --no-install-recommends "${missing[@]}"; }
if ! install; then
  # Lists that are older than the archive name files that are gone.
  if [[ $updated == yes ]] || ! update || ! install; then
    fail "apt-get could not install ${missing[*]}: $(reason)"
  fi
fi
fetch_python
echo "  installed in $SECONDS s"
