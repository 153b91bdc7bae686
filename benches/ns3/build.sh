#!/bin/sh
# Builds DIRECTORY/p0 and DIRECTORY/lte with ns-3 for `cargo bench --bench world`. Installs ns-3 from PyPI into DIRECTORY (about
# 500 MB, without dependencies), unless it is already there.
#   benches/ns3/build.sh DIRECTORY
set -eu
directory=$1
source=$(dirname "$0")
version=3.44.post0

if [ ! -e "$directory/ns3/include/ns3/core-module.h" ]; then
    echo "ns-3: installing $version into $directory" >&2
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$directory" "ns3==$version"
fi
# The libraries of the Python package refer to symbols of Python itself.
build() {
    name=$1
    shift
    c++ -std=c++20 -O2 -I"$directory/ns3/include" "$source/$name.cc" -o "$directory/$name" \
        -L"$directory/ns3/lib64" -Wl,-rpath,"$(realpath "$directory")/ns3/lib64" -Wl,--allow-shlib-undefined \
        -lns3.44-core -lns3.44-network -lns3.44-internet -lns3.44-applications -lns3.44-point-to-point "$@"
}
build p0 -lns3.44-traffic-control
build lte -lns3.44-lte -lns3.44-mobility
