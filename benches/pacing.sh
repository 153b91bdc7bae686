#!/bin/sh
# What a sender that paces costs at 1 Gbit/s, ours beside the kernel's own: BBR with BBR, CUBIC with CUBIC.
#   sudo sh benches/pacing.sh [ROUNDS] [DIRECTORY-OF-THE-PROGRAMS]
#
# A sender's namespace, a wire of 1 Gbit/s and 10 ms with a queue of one bandwidth-delay product (tc tbf and netem), and a
# receiver's namespace with the kernel's own TCP. Ours comes into the first namespace by a TUN device, one packet at a time;
# the kernel's sender hands down segments of 64 KB. The share of a core is that of the sending program, and that of the whole
# machine (both ends, and what the kernel does beside the programs), less what the idle machine takes.
set -eu

rounds=${1:-5}
airtcp=${2:-target/release}/airtcp
from=pacing-$$-from to=pacing-$$-to
seconds=6
bytes=2G

clean() {
    for namespace in $from $to; do ip netns delete "$namespace" 2>/dev/null || true; done
}
trap clean EXIT
trap 'exit 130' INT TERM

ip netns add $from
ip netns add $to
ip link add wire-from netns $from type veth peer name wire-to netns $to
ip -n $from address add 10.84.0.1/24 dev wire-from
ip -n $to address add 10.84.0.2/24 dev wire-to
for namespace in $from $to; do ip -n $namespace link set lo up; done
ip -n $from link set wire-from up
ip -n $to link set wire-to up
ip -n $to route add 10.83.0.0/16 via 10.84.0.1
ip netns exec $from sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
ip netns exec $from tc qdisc add dev wire-from root tbf rate 1gbit burst 256kb limit 1500kb
ip netns exec $to tc qdisc add dev wire-to root netem delay 10ms limit 100000

# Ticks that the machine has worked, and that the program $1 has.
machine() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; }
program() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }
received() { ip netns exec $to cat /sys/class/net/wire-to/statistics/rx_bytes; }

idle() {
    before=$(machine)
    sleep 2
    echo $((($(machine) - before) / 2))
}

# measure NAME PROGRAM…: a line with the rate and the two shares.
measure() {
    name=$1
    shift
    nothing=$(idle)
    ip netns exec $to "$airtcp" sink 9000 --no-digest >/dev/null 2>&1 &
    sink=$!
    sleep 0.5
    "$@" >/dev/null 2>&1 &
    sender=$!
    sleep 2
    machine_before=$(machine) program_before=$(program $sender) received_before=$(received)
    sleep $seconds
    machine_after=$(machine) program_after=$(program $sender) received_after=$(received)
    kill $sender $sink 2>/dev/null || true
    wait $sender $sink 2>/dev/null || true
    awk -v name="$name" -v seconds=$seconds -v ticks="$(getconf CLK_TCK)" -v idle="$nothing" \
        -v machine=$((machine_after - machine_before)) -v program=$((program_after - program_before)) \
        -v received=$((received_after - received_before)) 'BEGIN {
            printf "%-14s %6.0f Mbit/s   program %5.1f %%   machine %6.1f %% of a core\n", name,
                received * 8 / seconds / 1e6, 100 * program / seconds / ticks, 100 * (machine / seconds - idle) / ticks
        }'
}

for round in $(seq "$rounds"); do
    echo "round $round"
    for recipe in bbr-linux linux linux+pacing sack; do
        measure $recipe "$airtcp" send --no-digest --netns $from --recipe $recipe --bytes $bytes 10.84.0.2:9000
    done
    for control in bbr cubic; do
        measure linux:$control ip netns exec $from "$airtcp" source --congestion-control $control --bytes $bytes 10.84.0.2:9000
    done
done
