# What tools/demo and tools/check share. Sourced, not run; the caller sets `program` to its name first.
# shellcheck shell=bash
# shellcheck disable=SC2154 # `program` is the caller's

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s: %s\n' "$program" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# packages_of SECTION: the packages of one section of tools/packages, one a line.
packages_of() {
  awk -v wanted="[$1]" '
    { sub(/#.*/, "") }
    $1 ~ /^\[/ { inside = ($1 == wanted); next }
    inside && NF { print $1 }' "$root/tools/packages"
}

# missing_packages SECTION...: those that are not installed, one a line.
missing_packages() {
  local section
  for section in "$@"; do packages_of "$section"; done | sort -u |
    comm -23 - <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | awk '$1 == "installed" { print $2 }' | sort -u)
}

# install_missing SECTION...: touches the network only when something is missing, and never asks where nobody can answer.
install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is no Debian: going on in the hope that what tools/packages lists is here"
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "these packages are missing, and only root can install them: ${missing[*]}"
    as_root=(sudo)
    if [[ -n ${CI:-} || ! -t 0 ]]; then as_root+=(-n); fi
  fi
  say "installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3)
  if ! "${as_root[@]}" update >&2 ||
    ! "${as_root[@]}" install -y --no-install-recommends "${missing[@]}" >&2 </dev/null; then
    die "apt-get failed; these packages are needed: ${missing[*]}"
  fi
}
