#!/bin/sh
# Installs the Debian packages for building, testing, `make nightly`, packaging, the demo and the benchmarks, and prints their
# names.
#   interop/setup.sh build|test|long|package|bench
# Needs root or sudo. Without both, prints the missing packages and exits with 3.
set -eu

want=${1:-build}
missing=

# need COMMAND PACKAGE: adds PACKAGE to the missing packages if COMMAND is not available.
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }

need cc gcc
need make make
[ -e /usr/include/pcap/pcap.h ] || missing="$missing libpcap-dev"
need ip iproute2
need tcpdump tcpdump
if [ "$want" = test ]; then
    # libFuzzer is written in C++.
    need c++ g++
    need socat socat
    need tshark tshark
    need unshare util-linux
    need pgrep procps
    need python3 python3
    python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip"
    [ -x /usr/bin/time ] || missing="$missing time"
    [ -x /usr/sbin/setcap ] || missing="$missing libcap2-bin"
    need curl curl
    need zsh zsh
    need fish fish
    need parallel parallel
    need jq jq
    need tcptrace tcptrace
    command -v chromium-headless-shell >/dev/null 2>&1 || need chromium chromium
    # Not on the PATH of every user.
    [ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
fi

if [ "$want" = long ]; then
    need parallel parallel
    need jq jq
    need ssh openssh-client
    need sbatch slurm-client
    # Not on the PATH of every user. The tests start their own instances of these servers.
    [ -x /usr/sbin/sshd ] || missing="$missing openssh-server"
    [ -x /usr/sbin/munged ] || missing="$missing munge"
    [ -x /usr/sbin/slurmd ] || missing="$missing slurmd"
    [ -x /usr/sbin/slurmctld ] || missing="$missing slurmctld"
fi

if [ "$want" = package ]; then
    need dpkg-shlibdeps dpkg-dev
    need lintian lintian
    need musl-gcc musl-tools
    need zstd zstd
    # To build libpcap.
    need bison bison
    need flex flex
    [ -x /usr/sbin/debootstrap ] || missing="$missing debootstrap"
    [ -x /usr/sbin/setcap ] || missing="$missing libcap2-bin"
fi

if [ "$want" = bench ]; then
    need ns ns2
    command -v chromium-headless-shell >/dev/null 2>&1 || need chromium chromium
    need tcptrace tcptrace
    need tshark tshark
    # Not on the PATH of every user.
    [ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
    [ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || missing="$missing libnginx-mod-stream"
    [ -x /usr/sbin/haproxy ] || missing="$missing haproxy"
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "setup: cargo is missing. Install Rust 1.93 or later (https://rustup.rs), then run this again." >&2
    exit 3
fi
rust=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n1.93.0\n' "$rust" | sort -V | head -n 1)" != 1.93.0 ]; then
    echo "setup: Rust $rust is too old: 1.93 or later is needed (rustup update stable)." >&2
    exit 3
fi

[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null 2>&1; then
    sudo=sudo
else
    echo "setup: missing Debian packages:$missing" >&2
    echo "setup: run as root, install sudo, or ask an administrator for: apt-get install$missing" >&2
    exit 3
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: missing:$missing (Debian package names; this system has no apt-get, so install the equivalents)" >&2
    exit 3
fi
echo "setup: installing$missing" >&2
$sudo apt-get update -qq
# Prevents installed servers (nginx, sshd, Slurm) from being started.
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' | $sudo tee /usr/sbin/policy-rc.d >/dev/null
    $sudo chmod 755 /usr/sbin/policy-rc.d
    trap '$sudo rm -f /usr/sbin/policy-rc.d' EXIT
fi
# shellcheck disable=SC2086 # a list of package names
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
