#!/bin/sh
# @TITLE@
# Run it in its directory as the user anofel, and again whenever a file has arrived: what is done is skipped.
# Exit code 0: all is done; 75: it waits for files, which it names; any other: a step failed and said why.
set -eu
cd "$(dirname "$0")"
umask 077
PATH="$PATH:/opt/anofel/bin"
ETC="${ANOFEL_ETC:-/etc/anofel}"
mkdir -p in out done
command -v @PROGRAM@ >/dev/null || { echo '@PROGRAM@ is not here: see "What is there before" in docs/deployment.md.' >&2; exit 127; }
missing=
need() { [ -e "in/$1" ] || missing="$missing
  in/$1  from $2"; }
# What its operator puts here by hand; what comes later would fail without it.
rows() { [ -e "$1" ] || missing="$missing
  $1  your own rows, to measure by"; }
all_here() { [ -z "$missing" ] || { printf 'Waiting for:%s\n%s\n' "$missing" "$1"; exit 75; }; }
put() { [ -e "out/$2" ] || { cp -R "$1" "out/.$2" && mv "out/.$2" "out/$2"; }; }
once() { step="$1"; shift; [ -e "done/$step" ] || { "$@" && : > "done/$step"; }; }
# The last step. In a container the role takes the place of this script, so that it gets the signal to stop.
start() {
  if [ -n "${ANOFEL_START:-}" ]; then exec $ANOFEL_START "$1"; fi
  sudo install -m 644 "$1.service" /etc/systemd/system/ && sudo systemctl enable --now "$1" && return
  printf 'All is ready but the unit. As root type:\n  install -m 644 %s /etc/systemd/system/\n' "$PWD/$1.service"
  printf '  systemctl enable --now %s\n' "$1"
  exit 1
}

