#!/bin/sh
# Builds and runs the tests: the quick ones, or with --long the long ones, too. Other arguments go to CTest.
set -eu
cd "$(dirname "$0")/.."

labels=quick
if [ "${1:-}" = "--long" ]; then
  labels='quick|long'
  shift
fi
tools/install_packages.sh
[ -f build/release/build.ninja ] || cmake --preset release
cmake --build build/release
# Tests share the cores: a team that waits should sleep, not spin.
OMP_WAIT_POLICY=passive ctest --test-dir build/release -L "$labels" --output-on-failure -j "$(nproc)" "$@"
