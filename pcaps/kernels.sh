#!/bin/sh
# Captures a transfer from kernel to kernel, for pcaps/regenerate.sh.
#   kernels.sh AIRLINK SCENARIO v4|v6|tagged BYTES SEED FILE NAMESPACE COMMAND…
# COMMAND captures in NAMESPACE (`sender` or `receiver`). It is run with `-w` and the name of a temporary file.
#
#   sender            router            receiver
#     eth0 ---Ethernet--- eth0   radio ---airlink--- radio
set -eu

airlink=$1 scenario=$2 kind=$3 bytes=$4 seed=$5 file=$6 place=$7
shift 7
here=$(cd "$(dirname "$0")" && pwd)
prefix=pcaps-$$
work=$(mktemp -d)
started=

end() {
    # shellcheck disable=SC2086 # a list of process IDs, which may be empty
    [ -z "$started" ] || kill $started 2>/dev/null || true
    [ ! -e "$work/link" ] || "$airlink" down "$prefix" >/dev/null 2>&1 || true
    for role in sender router receiver; do
        ip netns del "$prefix-$role" 2>/dev/null || true
    done
    umount "$work/bpf" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM HUP

in_() {
    role=$1
    shift
    ip netns exec "$prefix-$role" "$@"
}

for role in sender router receiver; do
    ip netns add "$prefix-$role"
    in_ $role ip link set lo up
done
ip link add eth0 netns "$prefix-sender" type veth peer name eth0 netns "$prefix-router"
for at in sender:2 router:1; do
    role=${at%:*}
    # Without segmentation offload, each captured frame is one packet of the path.
    in_ "$role" ip link set eth0 gso_max_segs 1 up
    in_ "$role" ip addr add "10.77.1.${at#*:}/24" dev eth0
    in_ "$role" ip addr add "fd77:1::${at#*:}/64" dev eth0 nodad
done
if [ "$kind" = tagged ]; then
    mkdir "$work/bpf"
    mount -t bpf none "$work/bpf"
    for role in sender router; do
        # Not `ip netns exec`, which uses a separate mount namespace.
        nsenter --net="/run/netns/$prefix-$role" python3 "$here/tags.py" eth0 7 "$work/bpf"
    done
fi
in_ router sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
in_ sender ip route add default via 10.77.1.1
in_ sender ip -6 route add default via fd77:1::1
touch "$work/link"
"$airlink" up --name "$prefix" --scenario "$scenario" --seed "$seed" \
    --fixed-netns "$prefix-router" --fixed-dev radio --fixed-addr 10.77.2.1/24 --fixed-addr fd77:2::1/64 \
    --mobile-netns "$prefix-receiver" --mobile-dev radio --mobile-addr 10.77.2.2/24 --mobile-addr fd77:2::2/64 \
    --mobile-route 10.77.1.0/24 --mobile-route fd77:1::/64 >/dev/null

case $kind in
v6) to='TCP6:[fd77:2::2]:9000' ;;
*) to=TCP4:10.77.2.2:9000 ;;
esac
# Not through `in_`, because `$!` would then be the number of a subshell.
ip netns exec "$prefix-receiver" socat -u TCP6-LISTEN:9000,ipv6-v6only=0 "CREATE:$work/received" &
receiver=$!
started=$receiver
program=$1
shift
# tcpdump allows no options after a filter, so the file comes first.
set -- -w "$work/capture" "$@"
[ "$program" != tcpdump ] || set -- -Z root -U --immediate-mode "$@"
ip netns exec "$prefix-$place" "$program" "$@" 2>"$work/errors" &
capture=$!
started="$started $capture"
tries=0
until [ -s "$work/capture" ] && in_ receiver ss -Hltn 'sport = :9000' | grep -q .; do
    tries=$((tries + 1))
    if [ $tries -gt 100 ]; then
        cat "$work/errors" >&2
        exit 1
    fi
    sleep 0.1
done

head -c "$bytes" /dev/urandom >"$work/sent"
# TCP_CONGESTION (6:13), because not every kernel has this setting per namespace.
in_ sender socat -u "OPEN:$work/sent" "$to,setsockopt-string=6:13:cubic"
wait $receiver
cmp "$work/sent" "$work/received"
# The last packets may still be in flight.
sleep 1
kill $capture
wait $capture || true
# dumpcap creates files that only root can read, so copy the content.
cat "$work/capture" >"$file"
