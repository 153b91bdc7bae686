#!/bin/sh
# Captures a sender with a given congestion control: a kernel in user-mode Linux sends zeros for SECONDS through `airlink run`.
#   interop/congestion.sh CONGESTION SECONDS CAPTURE AIRLINK-OPTION...
#   interop/congestion.sh illinois 30 illinois.pcap -s leo
# The kernel is `uml-7` of interop/receivers. The capture is made at the sender's end of the path. AIRLINK names the
# program [target/release/airlink]. Needs root.
set -eu

fail() {
    echo "congestion: $*" >&2
    exit 1
}

# Runs in a network namespace of its own, below the init process of a PID namespace.
inside() {
    congestion=$1 seconds=$2 capture=$3
    shift 3
    ip link set lo up
    echo 1 >/proc/sys/net/ipv4/ip_forward
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    : >"$scratch/log"
    env RECEIVER_ADDR=198.51.100.2 RECEIVER_GATEWAY=198.51.100.1 RECEIVER_PREFIX=24 RECEIVER_PORT=5001 \
        SENDER_CONGESTION="$congestion" SENDER_SECONDS="$seconds" "$guest/start" >/dev/null 2>"$scratch/log" &
    sender=$!
    until grep -q ^listening "$scratch/log"; do
        kill -0 "$sender" 2>/dev/null || { cat "$scratch/log" >&2; fail "the guest did not start"; }
        sleep 0.05
    done
    "$AIRLINK" run -q "$@" --pcap-fixed "$capture" -- socat -u TCP:198.51.100.2:5001 OPEN:/dev/null ||
        fail "the transfer failed"
}

root=$(cd "$(dirname "$0")/.." && pwd)
guest=${AIRTCP_RECEIVERS:-$root/target/receivers}/uml-7
export AIRLINK="${AIRLINK:-$root/target/release/airlink}"
if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
    exit
fi
[ $# -ge 3 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -x "$AIRLINK" ] || fail "no program $AIRLINK: build it, or set AIRLINK"
[ -x "$guest/start" ] || fail "no guest in $guest: run interop/receivers/setup.sh uml-7"
exec unshare --net --mount-proc --pid --fork --kill-child=KILL sh "$0" --inside "$@"
