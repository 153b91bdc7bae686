#!/bin/sh
# This machine's kernel sends random bytes to each built receiver, without loss and at 5 % loss. The SHA-256
# digests of both ends are compared.
#   interop/receivers/check.sh [--rootless] [--bytes N] NAME...
# Exit code 0: every byte arrived at every receiver.
set -eu

# Runs in the sender's namespaces, below the init process of a PID namespace: when that ends, all processes
# end.
inside() {
    start=$1 scratch=$2 loss=$3
    unshare --net sleep 1000 &
    forwarder=$!
    forward() { nsenter --target "$forwarder" --net "$@"; }
    until [ "$(readlink /proc/$forwarder/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done

    # No segmentation offload, because losses must hit single packets, as on a radio link, and not segments of
    # 64 kB.
    ip link add veth0 gso_max_segs 1 type veth peer name veth1 netns "$forwarder"
    ip addr add 192.0.2.1/24 dev veth0
    ip link set veth0 up
    # Without duplicate ACKs (passt), every loss costs a timeout. The usual minimum of 200 ms would only slow
    # the test down.
    ip route add default via 192.0.2.254 rto_min 10ms
    # The namespace inherits the machine's congestion control. reno is available in every namespace.
    echo reno >/proc/sys/net/ipv4/tcp_congestion_control
    forward ip addr add 192.0.2.254/24 dev veth1
    forward ip link set veth1 up
    forward sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    if [ "$loss" != 0 ]; then
        forward nft -f - <<RULES
table ip path {
  chain data {
    type filter hook forward priority 0
    iifname veth1 numgen random mod 100 < $loss drop
  }
}
RULES
    fi

    forward env RECEIVER_ADDR=198.51.100.2 RECEIVER_GATEWAY=198.51.100.1 RECEIVER_PREFIX=24 RECEIVER_PORT=5001 \
        TMPDIR="$scratch" "$start" >"$scratch/received" 2>"$scratch/log" &
    receiver=$!
    until grep -q ^listening "$scratch/log"; do
        kill -0 "$receiver" 2>/dev/null || return 1
        sleep 0.05
    done
    date +%s%N >"$scratch/began"
    socat -u -t 60 "FILE:$scratch/sent" TCP:198.51.100.2:5001
    wait "$receiver" || return 1
    date +%s%N >"$scratch/ended"
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
    exit
fi

names=''
bytes=5000000
user=''
[ "$(id -u)" = 0 ] || user=--map-root-user
while [ $# != 0 ]; do
    case $1 in
        --rootless) user=--map-root-user ;;
        --bytes) shift && bytes=$1 ;;
        -*) echo "check: unknown option $1" >&2 && exit 2 ;;
        *) names="$names $1" ;;
    esac
    shift
done
if [ -z "$names" ]; then
    echo "check: name the receivers to check, as interop/receivers/setup.sh lists them" >&2
    exit 2
fi
for tool in ip nft socat unshare nsenter; do
    if ! command -v $tool >/dev/null 2>&1; then
        echo "check: $tool is missing: apt-get install iproute2 nftables socat util-linux" >&2
        exit 3
    fi
done

here=$(cd "$(dirname "$0")" && pwd)
built=${AIRTCP_RECEIVERS:-$here/../../target/receivers}
scratch=$(mktemp -d)
run=''
trap 'rm -rf "$scratch"' EXIT
# The end of unshare kills its child and the whole PID namespace.
trap 'trap "" TERM; [ -z "$run" ] || { kill -KILL "$run"; wait "$run" || true; }; exit 143' HUP INT TERM

# Prints the digest of the received data.
received() {
    sha256sum <"$scratch/received" | cut -d' ' -f1
}

check() {
    rm -f "$scratch/received" "$scratch/log" "$scratch/ended"
    : >"$scratch/log"
    # shellcheck disable=SC2086 # empty if the caller is root
    unshare $user --net --pid --mount --fork --kill-child --mount-proc timeout --kill-after=5 180 \
        sh "$here/check.sh" --inside "$built/$1/start" "$scratch" "$2" >&2 &
    run=$!
    wait "$run" && status=0 || status=$?
    run=''
    what="$bytes bytes"
    [ "$2" = 0 ] || what="$what at $2 % loss"
    if [ "$status" = 0 ] && [ "$(received)" = "$digest" ]; then
        seconds=$(awk -v a="$(cat "$scratch/began")" -v b="$(cat "$scratch/ended")" 'BEGIN { printf "%.1f", (b - a) / 1e9 }')
        echo "ok $1: $(cat "$built/$1/version"): $what, $seconds s"
    else
        reason=$(grep -v ^listening "$scratch/log" | tail -n 1)
        [ "$status" != 124 ] && [ "$status" != 137 ] || reason="not finished after 180 s"
        [ "$status" != 0 ] || reason="the received data ($(wc -c <"$scratch/received") bytes) differs from the sent data"
        echo "FAILED $1: $what: ${reason:-exit $status}"
        failed=1
    fi
}

failed=0
head -c "$bytes" /dev/urandom >"$scratch/sent"
digest=$(sha256sum <"$scratch/sent" | cut -d' ' -f1)
for name in $names; do
    if [ ! -x "$built/$name/start" ]; then
        echo "FAILED $name: not built: interop/receivers/setup.sh $name"
        failed=1
        continue
    fi
    check "$name" 0
    check "$name" 5
done
exit $failed
