#!/bin/bash
# newer-mesa.sh COMMAND [ARGUMENT…]: runs a command, and every `node` that it starts, on Mesa 26 or newer, whose software driver multiplies
# matrices in subgroups. Needs a Debian or Ubuntu with apt-get, dpkg-deb and network, and no root: packages of Debian sid are unpacked
# into the user's cache (about 90 MB, once), and this machine's node is started with their libc. Exit code 69: it cannot run here.
set -euo pipefail
suite=${HALFSTEP_LANE_SUITE:-sid}
oldest=26
cannot() { echo "newer-mesa: $*" >&2; exit 69; }
fail() { echo "newer-mesa: $*" >&2; exit 1; }
unpack=$(dirname "$(readlink -f "$0")")/../bootstrap/unpack-packages.sh

[ "$(uname -s)" = Linux ] || cannot "not Linux"
for tool in apt-get dpkg-deb flock; do command -v $tool >/dev/null || cannot "no $tool"; done
node=$(readlink -f "$(command -v node)")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/halfstep/mesa-$suite
mkdir -p "$cache"

fetch() {
  local mirror keyring= file packages=(libc6 libstdc++6 libvulkan1 mesa-vulkan-drivers) code=0
  # Debian's archive as this machine's own sources name it.
  mirror=$(apt-get update --print-uris 2>/dev/null | sed -n "s|^'\([^']*\)/dists/[^/']*/\(In\)\?Release'.*|\1|p" |
    grep -v security | head -n 1) || true
  [ -n "$mirror" ] || cannot "apt's sources name no archive"
  for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    if [ -e "$file" ]; then keyring="[signed-by=$file] "; break; fi
  done
  mkdir -p "$cache/sources"
  echo "deb $keyring$mirror $suite main" >"$cache/sources/$suite.list"
  : >"$cache/status"
  "$unpack" "$cache" "$cache/sources" "$cache/status" "" "${packages[@]}" || code=$?
  case $code in
    0) ;;
    69) cannot "cannot fetch Mesa of $suite from $mirror" ;;
    *) fail "cannot unpack Mesa of $suite" ;;
  esac
  dpkg-deb -f "$cache"/archives/mesa-vulkan-drivers_*.deb Version >"$cache/version"
  find "$cache/root/usr/lib" -name libvulkan_lvp.so -print -quit >"$cache/driver"
  find "$cache/root/usr/lib64" "$cache/root/usr/lib" -name 'ld-linux*.so*' -print -quit >"$cache/loader"
  [ -s "$cache/driver" ] && [ -s "$cache/loader" ] || fail "Mesa $(<"$cache/version") has no lavapipe, or its libc no loader"
  rm -rf "$cache/archives"
  touch "$cache/ready"
}

# A second caller waits for the first.
exec 9>"$cache/lock"
flock 9
if [ ! -e "$cache/ready" ]; then
  echo "newer-mesa: fetching Mesa of $suite into $cache (about 90 MB, once)" >&2
  fetch
fi
version=$(<"$cache/version")
[ "${version%%.*}" -ge $oldest ] || fail "$suite has Mesa $version: $oldest or newer is needed; set HALFSTEP_LANE_SUITE and delete $cache"

# A `node` that starts this machine's own with the newer libc. The loader is its executable then, so that it has to be told what to start as
# its children.
bin=$cache/bin/$(cksum <<<"$node" | cut -d ' ' -f 1)
if [ ! -x "$bin/node" ]; then
  mkdir -p "$bin"
  echo "process.execPath = \"$bin/node\";" >"$bin/exec-path.cjs"
  printf '#!/bin/sh\nexec %q --argv0 node --library-path %q %q --require %q "$@"\n' \
    "$(<"$cache/loader")" "$(dirname "$(<"$cache/driver")")" "$node" "$bin/exec-path.cjs" >"$bin/node.new"
  chmod +x "$bin/node.new"
  "$bin/node.new" -e 0 || fail "$node does not run with the libraries of $suite"
  mv "$bin/node.new" "$bin/node"
fi
printf '{"file_format_version": "1.0.1", "ICD": {"library_path": "%s", "api_version": "1.4.0"}}\n' "$(<"$cache/driver")" >"$cache/driver.json"
exec 9>&-

echo "newer-mesa: Mesa $version, node $("$bin/node" --version)" >&2
export PATH="$bin:$PATH" VK_DRIVER_FILES=$cache/driver.json VK_ICD_FILENAMES=$cache/driver.json
# Mesa's shader cache is for one version of it.
export MESA_SHADER_CACHE_DIR=$cache/shaders-$version
mkdir -p "$MESA_SHADER_CACHE_DIR"
exec "$@"
