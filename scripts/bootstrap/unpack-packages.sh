#!/bin/bash
# unpack-packages.sh FOLDER SOURCES STATUS RELEASE PACKAGE…: fetches Debian packages and what they need, and unpacks them into FOLDER/root.
# It needs no root. SOURCES is a folder of apt's sources files. STATUS names installed packages, in dpkg's form, which are not fetched.
# RELEASE is the one to prefer, or empty. The packages stay in FOLDER/archives. Exit code 69: they cannot be had here.
set -euo pipefail
folder=$1 sources=$2 status=$3 release=$4
shift 4
cannot() { echo "unpack-packages: $*" >&2; exit 69; }
for tool in apt-get dpkg-deb; do command -v $tool >/dev/null || cannot "no $tool"; done

work=$folder/work root=$folder/root archives=$folder/archives
rm -rf "$work" "$root" "$archives"
mkdir -p "$work"/lists/partial "$work/parts" "$archives/partial" "$root"/usr/{lib,lib64,bin}
options=(-q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$sources" -o Dir::Etc::Preferences=/dev/null
  -o Dir::Etc::PreferencesParts="$work/parts" -o Dir::State="$work" -o Dir::State::Lists="$work/lists"
  -o Dir::State::status="$status" -o Dir::Cache="$work" -o Dir::Cache::Archives="$archives" -o APT::Default-Release="$release"
  -o APT::Install-Recommends=false -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true -o Acquire::Languages=none
  -o Acquire::Retries=3)
apt-get "${options[@]}" -o APT::Update::Error-Mode=any update >"$work/log" 2>&1 ||
  { tail -n 5 "$work/log" >&2; cannot "apt's sources cannot be read"; }
apt-get "${options[@]}" --download-only install "$@" >"$work/log" 2>&1 ||
  { tail -n 5 "$work/log" >&2; cannot "cannot fetch $*"; }
# Packages of suites before the merge of /usr have files in /lib.
for name in lib lib64 bin; do ln -s "usr/$name" "$root/$name"; done
for file in "$archives"/*.deb; do
  [ -e "$file" ] || cannot "nothing to fetch: $* are installed"
  dpkg-deb --fsys-tarfile "$file" | tar -x --no-same-owner --keep-directory-symlink -C "$root"
done
rm -rf "$work"
