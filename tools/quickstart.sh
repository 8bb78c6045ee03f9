#!/bin/sh
# Builds handgrad, trains configs/quickstart.toml on the stories in data/, and lets the model write.
# It can be run again: finished builds and training are not repeated.
set -eu
cd "$(dirname "$0")/.."

tools/install_packages.sh
[ -f build/release/build.ninja ] || cmake --preset release
cmake --build build/release --target handgrad_cli

build/release/handgrad train configs/quickstart.toml --resume auto
echo
write='build/release/handgrad generate runs/quickstart --prompt Once --tokens 700 --temperature 0.5'
echo "The model writes ($write):"
echo
$write
echo
echo "What to try next is in README.md under \"By hand\"."
