# What the installed completion of zsh makes of lines.
#
#   zsh -f completion.zsh FOLDER      the folder that _omniconv lies in
zmodload zsh/zpty || exit 1
folder=$1
scratch=$(mktemp -d) || exit 1
trap 'zpty -d shell; rm -rf $scratch' EXIT

zpty shell zsh -f -i
# Each line is typed, completed, and written to a file as it then stands.
zpty -w shell "PS1= PS2= fpath=($folder \$fpath); cd $scratch; touch photo.jpg; autoload -Uz compinit; compinit -u -D; \
written() { print -r -- \"\$BUFFER\" >line.new; mv line.new line; BUFFER= }; zle -N written; bindkey '^X' written; \
bindkey '^I' complete-word; unsetopt auto_menu list_beep; setopt no_auto_list; touch ready"
for ((i = 0; i < 300; i++)); do
  [[ -e $scratch/ready ]] && break
  sleep 0.1
done

faults=0
# expect 'THE LINE THEN' 'THE LINE TYPED'
expect() {
  rm -f $scratch/line
  zpty -n -w shell "$2"$'\t'$'\x18'
  local i
  for ((i = 0; i < 300; i++)); do
    [[ -e $scratch/line ]] && break
    sleep 0.1
    zpty -r -t shell >/dev/null  # so that it never waits for a reader
  done
  local found=$(<$scratch/line)
  if [[ $found != $1 ]]; then
    print -r -- "'$2' becomes '$found', not '$1'"
    faults=1
  fi
}

expect 'omniconv verify ' 'omniconv ver'
expect 'omniconv --version ' 'omniconv --v'
expect 'omniconv help filter ' 'omniconv help fi'
expect 'omniconv filter --rescale ' 'omniconv filter --resc'
expect 'omniconv filter --kernel gaussian:' 'omniconv filter --kernel gau'
expect 'omniconv filter -k emboss ' 'omniconv filter -k em'
expect 'omniconv filter --border constant:' 'omniconv filter --border c'
expect 'omniconv filter --alpha=premultiply ' 'omniconv filter --alpha=pre'
expect 'omniconv filter --device opencl ' 'omniconv filter --device o'
expect 'omniconv filter photo.jpg ' 'omniconv filter ph'
expect 'omniconv filter --kernel @photo.jpg ' 'omniconv filter --kernel @ph'
expect 'omniconv verify --layout nchw,nhwc,' 'omniconv verify --layout nchw,nh'
expect 'omniconv verify --json photo.jpg ' 'omniconv verify --json ph'
expect 'omniconv bench pool2d ' 'omniconv bench poo'
exit $faults
