#!/usr/bin/env bash
# The README's two commands on a machine that has nothing but what the README names: a bare Debian in a temporary folder,
# an ordinary user, a clone of the last commit. Needs root, debootstrap and the network.
#
#   tools/fresh_machine.sh [--release NAME] [--mirror URL] [--times N] [--busy N] [--without PACKAGE] [--demo | --all]
#                          [--keep] [-- OPTION...]
#
#   --release NAME     as debootstrap calls it (bookworm)
#   --mirror URL       where debootstrap gets it (what debootstrap knows)
#   --times N          run both commands N times in a row (1)
#   --busy N           the last time beside N busy loops (0)
#   --without PACKAGE  leave one of the README's packages out, to see what is said then
#   --demo, --all      the demo alone; or `make test` as a whole; else the tests of SOME folders
#   --keep             leave the folder, and say where it is
#   OPTION...          of debootstrap: for Ubuntu --components=main,universe, where python3-venv is
#
# Exit code 0: all commands ended with 0, `git status` shows nothing, and no file is new or changed outside of the clone,
# /tmp and the user's cache. How pip reaches its index is taken from this machine: its configuration, certificates and
# the folders that they name.
set -euo pipefail

readonly HERE=$(cd "$(dirname "$0")/.." && pwd)
readonly PACKAGES=(python3 python3-venv make git ca-certificates libgomp1)
# Those that ask most of a machine: files, archives, processes, git, and SQL.
readonly SOME="tests/unit/ci tests/unit/collect tests/unit/read tests/unit/record tests/queries"
readonly USER_ID=1000 HOME_FOLDER=/home/user
readonly CLONE=$HOME_FOLDER/pipeprof
release=bookworm mirror= times=1 busy=0 without= what=some keep=
more=() # options of debootstrap
failed=()

main() {
  local given=("$@")
  read_options "$@"
  [ "$(id -u)" = 0 ] || stop "only root can make a bare machine" "run it as root, in a container say"
  command -v debootstrap >/dev/null || stop "debootstrap is not installed" "apt install debootstrap"
  unshare --mount --pid --fork true 2>/dev/null || stop "no mount namespace can be made" "a container needs CAP_SYS_ADMIN"
  if [ $$ = 1 ] && [ -n "${FRESH_ROOT:-}" ]; then # the second call, in namespaces of its own: its mounts and processes end with it
    on_fresh_machine
    return
  fi
  FRESH_ROOT=$(mktemp -d)
  export FRESH_ROOT
  # Nothing is mounted here, so nothing but the folder itself is removed.
  trap clean EXIT
  unshare --mount --pid --fork --kill-child bash "$0" "${given[@]}" &
  trap 'kill %1' INT TERM
  wait %1
}

clean() {
  if [ -n "$keep" ]; then
    echo "kept: $FRESH_ROOT"
  else
    rm -rf --one-file-system "$FRESH_ROOT" || { sleep 2; rm -rf --one-file-system "$FRESH_ROOT"; } # what was killed has ended by then
  fi
}

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --release) release=$2; shift ;;
      --mirror) mirror=$2; shift ;;
      --times) times=$2; shift ;;
      --busy) busy=$2; shift ;;
      --without) without=$2; shift ;;
      --demo) what=demo ;;
      --all) what=all ;;
      --keep) keep=yes ;;
      --) shift; more=("$@"); return ;;
      *) stop "unknown option $1" "the head of $0 lists them" ;;
    esac
    shift
  done
}

stop() { # ERROR HINT
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 2
}

say() {
  printf '\n--- %s (%d s)\n' "$*" "$SECONDS"
}

on_fresh_machine() {
  local number
  mount --make-rprivate /
  say "a bare $release"
  bare_system
  devices
  ordinary_user
  way_to_packages
  files_outside > "$FRESH_ROOT/tmp/before"
  for ((number = 1; number <= times; number++)); do
    [ "$number" != "$times" ] || busy_loops
    try make demo
    case $what in
      some) try make test-together ONLY="$SOME" ;;
      all) try make test ;;
    esac
  done
  leftovers
  sizes
  [ $what != some ] || printf 'left out of `make test`: all but %s; the demo is the only training\n' "$SOME"
  say "done"
  [ ${#failed[@]} = 0 ] && return
  printf 'failed:\n'
  printf '  %s\n' "${failed[@]}"
  return 1
}

packages() { # the README's, without what is left out
  local name chosen=()
  for name in "${PACKAGES[@]}"; do
    [ "$name" = "$without" ] || chosen+=("$name")
  done
  (IFS=,; echo "${chosen[*]}")
}

bare_system() {
  local said
  said=$(debootstrap --variant=minbase --include="$(packages)" "${more[@]}" "$release" "$FRESH_ROOT" ${mirror:+"$mirror"} 2>&1) || {
    tail -n 5 <<< "$said"
    stop "debootstrap could not make a bare $release" "its last lines are above"
  }
  chmod 755 "$FRESH_ROOT" # mktemp made it for root alone
  printf 'packages: %s\nsize: %s\n' "$(packages)" "$(du -sh --apparent-size --si "$FRESH_ROOT" | cut -f 1)"
}

devices() {
  local name
  mount -t proc proc "$FRESH_ROOT/proc"
  mount --rbind /sys "$FRESH_ROOT/sys"
  mount -t tmpfs -o mode=755 devices "$FRESH_ROOT/dev"
  for name in null zero full random urandom tty; do
    touch "$FRESH_ROOT/dev/$name"
    mount --bind "/dev/$name" "$FRESH_ROOT/dev/$name"
  done
  mkdir "$FRESH_ROOT/dev/shm" "$FRESH_ROOT/dev/pts"
  mount -t tmpfs -o mode=1777 shared "$FRESH_ROOT/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 terminals "$FRESH_ROOT/dev/pts"
  ln -s pts/ptmx "$FRESH_ROOT/dev/ptmx"
  ln -s /proc/self/fd "$FRESH_ROOT/dev/fd"
  for name in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${name%:*}" "$FRESH_ROOT/dev/${name#*:}"
  done
}

ordinary_user() {
  chroot "$FRESH_ROOT" useradd --uid "$USER_ID" --create-home --home-dir "$HOME_FOLDER" --shell /bin/bash user
  git clone --quiet --no-hardlinks "$HERE" "$FRESH_ROOT$CLONE"
  [ -z "$(git -C "$HERE" status --porcelain)" ] || echo "changes that are not committed are not tried"
  chroot "$FRESH_ROOT" chown -R user:user "$HOME_FOLDER"
}

# The configuration of pip, the names of hosts, and, read-only, what the configuration and the environment name on this disk.
way_to_packages() {
  local file path
  cp -L /etc/resolv.conf /etc/hosts "$FRESH_ROOT/etc/"
  for file in /etc/pip.conf /etc/xdg/pip "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [ -e "$file" ] || continue
    case $file in # a user's own becomes the new user's
      "$HOME"/*) path=$FRESH_ROOT$HOME_FOLDER${file#"$HOME"} ;;
      *) path=$FRESH_ROOT$file ;;
    esac
    mkdir -p "$(dirname "$path")"
    cp -rL "$file" "$path"
  done
  chroot "$FRESH_ROOT" chown -R user:user "$HOME_FOLDER"
  { way_variables; cat /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" 2>/dev/null || true; } |
    grep -oE '(file://|[ =:])/[^ :]+' | sed -E 's,^(file://|[ =:]),,' | sort -u | while read -r path; do
    [ "${path##*/}" != simple ] || path=${path%/simple} # an index, whose files lie beside it
    [ ! -e "$path" ] || see "$path"
  done
}

see() { # PATH: it is there, too, and cannot be changed
  [ ! "$1" -ef "$FRESH_ROOT$1" ] || return 0 # as part of a folder
  if [ -d "$1" ]; then
    mkdir -p "$FRESH_ROOT$1"
  else
    mkdir -p "$(dirname "$FRESH_ROOT$1")"
    touch "$FRESH_ROOT$1"
  fi
  mount --bind "$1" "$FRESH_ROOT$1"
  mount -o remount,bind,ro "$FRESH_ROOT$1"
}

way_variables() {
  env | grep -E '^(PIP_|SSL_CERT_|REQUESTS_CA_BUNDLE=|CURL_CA_BUNDLE=|(http|https|no|all)_proxy=|(HTTP|HTTPS|NO|ALL)_PROXY=)' || true
}

# In the clone, as the user, with nothing of this environment but the way to the packages. What runs in the background of
# a script ignores Ctrl-C, which the tests send.
as_user() {
  local variables
  mapfile -t variables < <(way_variables)
  chroot --userspec="$USER_ID:$USER_ID" "$FRESH_ROOT" /usr/bin/env -i --default-signal=INT,QUIT HOME="$HOME_FOLDER" USER=user LOGNAME=user LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin "${variables[@]}" sh -c 'cd "$0" && exec "$@"' "$CLONE" "$@"
}

try() {
  local began=$SECONDS code=0
  say "$*"
  as_user "$@" < /dev/null || code=$?
  printf 'exit code %d after %d s\n' "$code" $((SECONDS - began))
  [ "$code" = 0 ] || failed+=("$*: exit code $code")
}

busy_loops() {
  local number
  for ((number = 0; number < busy; number++)); do
    (while :; do :; done) & # ends with the namespace
  done
}

files_outside() { # every file with its size and time, every folder by its name; of what the user may write
  (cd "$FRESH_ROOT" && find . -xdev \( -path ".$CLONE" -o -path ./tmp -o -path ".$HOME_FOLDER/.cache" \) -prune -o \
    \( -type d -printf '%p\n' -o -printf '%p %s %T@\n' \) | sort)
}

leftovers() {
  local status outside
  say "what is left"
  status=$(as_user git status --porcelain)
  outside=$(files_outside | comm -3 "$FRESH_ROOT/tmp/before" -)
  printf 'git status: %s\nelsewhere: %s\n' "${status:-clean}" "${outside:-nothing}"
  [ -z "$status" ] || failed+=("git status is not clean")
  [ -z "$outside" ] || failed+=("files elsewhere")
}

sizes() {
  local folder
  for folder in "$CLONE/.venv" "$CLONE" "$HOME_FOLDER/.cache"; do
    printf '%s: %s\n' "${folder#"$HOME_FOLDER/"}" "$(du -sh --apparent-size --si "$FRESH_ROOT$folder" | cut -f 1)"
  done
}

[ "${BASH_SOURCE[0]}" != "$0" ] || main "$@"
