# What the installed completion of bash offers.
#
#   bash completion.bash FILE
set -u
# shellcheck source=/dev/null
source "$1"
complete -p omniconv >/dev/null || exit 1
faults=0

# expect 'THE OFFERS' WORD...: of the line `omniconv WORD...`, as bash takes it apart, at the end of the last word.
expect() {
  local wanted=$1
  shift
  COMP_WORDS=(omniconv "$@")
  COMP_CWORD=$#
  COMPREPLY=(stale)
  _omniconv
  if [[ "${COMPREPLY[*]}" != "$wanted" ]]; then
    printf 'omniconv %s: offers "%s", not "%s"\n' "$*" "${COMPREPLY[*]}" "$wanted"
    faults=1
  fi
}

expect 'devices filter run conv verify bench explain train evaluate predict export import help' ''
expect 'verify' ver
expect '-h --help --version' -
expect 'devices filter run conv verify bench explain train evaluate predict export import' help ''
expect 'filter' help f
expect '--kernel' filter in.png out.png --ker
expect '--problems --pass --prepared' verify --p
expect 'gaussian:' filter --kernel gau
expect 'scharr scharr-x scharr-y' filter -k sch
expect 'constant:' filter --border c
expect '' filter --border constant :
expect '' filter --border constant : 0
expect 'reflect reflect101' filter --border = refl
expect 'u8 u16' filter --depth u
expect 'premultiply ignore filter drop' filter --alpha =
expect 'cpu cuda' filter --device c
expect 'filter2d/box/cpu.1' filter --solver filter2d/box/c
expect '' filter --solver conv2d/
expect 'auto all activation/direct/cpu.1 activation/direct/gpu.1 activation/rungs/gpu.1 activation/double/cpu.1 add/direct/cpu.1 add/direct/gpu.1 add/rungs/gpu.1 add/double/cpu.1' verify --solver a
expect 'fwd,bwd_data fwd,bwd_filter' verify --pass fwd,bwd_
expect 'gemm/packed/cpu.1' explain --deny gemm/pa
expect 'pool2d' bench poo
expect 'dropout' bench dro
expect 'batch_norm batch' bench bat
expect 'loss' bench los
expect 'norm' bench nor
expect 'update' bench upd
expect 'fashion-mnist fashion-mnist-sample' train --dataset f
expect 'shapes' evaluate --dataset s
expect '--precision --plot' train --p
# Numbers, files and what is not known.
expect '' filter --threads ''
expect '' filter in
cd "$(mktemp -d)" || exit 1
trap 'rm -r -- "$PWD"' EXIT
touch mask.txt
expect '@mask.txt' filter --kernel @
mkdir folder
expect '@mask.txt' filter --kernel @ ma
expect '@mask.txt' filter --kernel @ma
expect '@folder/' filter --kernel @ fo
expect '' verify --problems dat
expect '' nonsense ''
exit $faults
