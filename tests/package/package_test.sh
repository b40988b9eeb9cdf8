#!/usr/bin/env bash
# Installs a build into a temporary prefix, builds the outside project against it, and runs that.
# Usage: package_test.sh find_package|pkg_config CMAKE BUILD_DIR COMPILER GENERATOR
set -euo pipefail

way=$1 cmake=$2 build=$3 compiler=$4 generator=$5
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
# An installed tree may be moved: nothing in it may remember where it was installed.
mv "$work/first" "$work/prefix"

case $way in
  find_package)
    "$cmake" -G "$generator" -S "$here/outside" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
    "$cmake" --build "$work/build"
    ;;
  pkg_config)
    PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name rondo.pc)")
    export PKG_CONFIG_PATH
    mkdir "$work/build"
    # shellcheck disable=SC2046 # the flags are words
    "$compiler" -std=c++20 -Wall -Wextra -Werror "$here/outside/main.cpp" $(pkg-config --cflags --libs rondo) -pthread \
      -o "$work/build/outside"
    ;;
  *)
    echo "unknown way '$way': find_package or pkg_config" >&2
    exit 2
    ;;
esac
LD_LIBRARY_PATH=$(dirname "$(find "$work/prefix" -name librondo.so)") "$work/build/outside"
