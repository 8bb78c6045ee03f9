#!/bin/sh
# Installs what handgrad needs to be built and tested, from Debian 12. Does nothing if all of it is there.
set -eu
packages="g++ cmake ninja-build pkg-config python3 libeigen3-dev libhdf5-dev libcxxopts-dev libgtest-dev libtomlplusplus-dev
  nlohmann-json3-dev libfmt-dev libxxhash-dev libdnnl-dev"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "these packages are missing; install them as root:$missing" >&2; exit 1; }
  sudo=sudo
fi
echo "installing:$missing"
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
