#!/usr/bin/env bash
# Proves that a fresh Debian 12 needs nothing but a clone: makes a minimal system in a folder with debootstrap, clones
# this repository's HEAD into it, and runs ./dev demo and ./dev test in there. Needs root, network access to a Debian
# mirror, and about 4 GB of disk for the time of the run.
#
# Usage: tests/fresh_machine.sh [FOLDER]     FOLDER must not exist; without one a temporary one is used.
#   RONDO_MIRROR   the Debian mirror, http://deb.debian.org/debian
#   RONDO_SECURITY_MIRROR   that of its security updates, http://deb.debian.org/debian-security
#   RONDO_KEEP=1   keep the folder afterwards
#   RONDO_STEPS    what to run in there, "demo test"
set -euo pipefail

say() { printf 'fresh machine: %s\n' "$*"; }
fail() {
  printf 'fresh machine: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || fail "this makes a root file system and needs root; run it as root"
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && git rev-parse --show-toplevel)
mirror=${RONDO_MIRROR:-http://deb.debian.org/debian}
security=${RONDO_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
steps=${RONDO_STEPS:-demo test}
if (($# > 0)); then
  [[ ! -e $1 ]] || fail "$1 exists; give a folder that does not"
  mkdir -p "$1"
  root=$(cd "$1" && pwd)
else
  root=$(mktemp -d /var/tmp/rondo-fresh.XXXXXX)
fi

mounted=()
clean_up() {
  local place
  for place in "${mounted[@]}"; do
    umount --recursive "$place" 2>/dev/null || umount --recursive --lazy "$place" || true
  done
  if [[ ${RONDO_KEEP:-0} == 1 ]]; then
    say "kept $root"
  elif mount | grep -q " $root/"; then
    say "something is still mounted under $root; not removing it"
  else
    rm -rf --one-file-system "$root"
  fi
}
trap clean_up EXIT

if ! command -v debootstrap >/dev/null; then
  say "installing debootstrap"
  apt-get update -qq && apt-get install -qq -y --no-install-recommends debootstrap >/dev/null
fi

say "making a minimal Debian 12 in $root (a few minutes)"
debootstrap --variant=minbase --include=ca-certificates,git bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
  tail -n 20 "$root.log" >&2
  fail "debootstrap failed; its output is in $root.log"
}
rm -f "$root.log"

# The updates a fresh machine has, and this machine's way to the network.
{
  echo "deb $mirror bookworm main"
  echo "deb $mirror bookworm-updates main"
  echo "deb $security bookworm-security main"
} >"$root/etc/apt/sources.list"
if [[ -f /etc/resolv.conf ]]; then cat /etc/resolv.conf >"$root/etc/resolv.conf"; fi
cp /etc/hosts "$root/etc/hosts"
apt-config dump | grep -E '^Acquire::(http|https)::.*Proxy' >"$root/etc/apt/apt.conf.d/99proxy" || true

# A mount point of its own, or `ip netns exec` in there cannot set the root apart.
if mount --bind "$root" "$root" 2>/dev/null; then
  mount --make-private "$root"
  mounted=("$root")
fi
for place in proc sys dev; do
  mkdir -p "$root/$place"
  if mount --rbind --make-rslave "/$place" "$root/$place" 2>/dev/null; then
    mounted=("$root/$place" "${mounted[@]}")
  else
    say "cannot mount /$place in there; going on without it"
  fi
done

say "cloning $repository at $(git -C "$repository" rev-parse --short HEAD)"
git clone --quiet --no-hardlinks "$repository" "$root/root/rondo"

for step in $steps; do
  say "./dev $step"
  # An empty environment: nothing of this machine's settings may help.
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -c "cd /root/rondo && ./dev $step"
done
say "passed: $steps"
