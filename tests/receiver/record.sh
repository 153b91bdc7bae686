#!/bin/sh
# Records the ACKs of this machine's kernel, for all lines of list.txt or for the named ones. Requires root:
#   tests/receiver/record.sh [NAME…]
# It runs in real time, so no two recordings are equal. AIRTCP is the path of the program.
#
#   fixed                                      mobile
#   airtcp send, or the kernel's TCP ---airlink--- the kernel's TCP, and a program that reads at once
#
# The emulator and the reader have real-time priority (chrt), because a late reader would change the
# receiver's behaviour.
#
# tcpdump captures at the mobile side. The kernel timestamps arrivals before TCP processes them, and departures
# after TCP has sent them. Both appear in the kernel's order.
set -eu
cd "$(dirname "$0")/../.."
airtcp=${AIRTCP:-target/debug/airtcp}
airlink=$(dirname "$airtcp")/airlink
here=tests/receiver
out=${RECORD_TO:-$here/recorded}

for program in "$airtcp" "$airlink" chrt tcpdump editcap python3 socat ip; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "$0: $program is missing: cargo build; sh interop/setup.sh test" >&2
        exit 3
    fi
done
mine=receiver-$$
work=$(mktemp -d)
uname -sr | sed "s/-.*//" >"$out/kernel"
started=

end() {
    # shellcheck disable=SC2086 # none, or several
    [ -z "$started" ] || kill $started 2>/dev/null || true
    started=
    "$airlink" down "$mine" >/dev/null 2>&1 || true
    for role in fixed mobile; do
        ip netns del "$mine-$role" 2>/dev/null || true
    done
}
trap 'end; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

in_mobile() {
    ip netns exec "$mine-mobile" "$@"
}

# Sets the options that all receivers share, then the options of this receiver (see `airtcp lab receivers`).
set_up() {
    in_mobile sysctl -q -w net.ipv4.tcp_rmem="4096 131072 6291456" net.ipv4.tcp_sack=1 net.ipv4.tcp_dsack=1 \
        net.ipv4.tcp_timestamps=1 net.ipv4.tcp_window_scaling=1 net.ipv4.tcp_moderate_rcvbuf=1 net.ipv4.tcp_ecn=2
    listens=TCP4-LISTEN:9000,reuseaddr
    case $receiver in
    linux) ;;
    linux-no-sack) in_mobile sysctl -q -w net.ipv4.tcp_sack=0 ;;
    linux-no-timestamps) in_mobile sysctl -q -w net.ipv4.tcp_timestamps=0 ;;
    linux-bare) in_mobile sysctl -q -w net.ipv4.tcp_sack=0 net.ipv4.tcp_timestamps=0 net.ipv4.tcp_window_scaling=0 ;;
    linux-no-compression) in_mobile sysctl -q -w net.ipv4.tcp_comp_sack_nr=0 ;;
    linux-8k) listens=$listens,rcvbuf=8192 ;;
    linux-1m) listens=$listens,rcvbuf=1048576 ;;
    *)
        echo "$0: there is no receiver $receiver" >&2
        exit 2
        ;;
    esac
}

# chat:SIZE,MILLISECONDS,COUNT is an application that writes SIZE bytes, waits, and repeats this COUNT times.
send() {
    case $sender in
    linux:*)
        ip netns exec "$mine-fixed" timeout 120 "$airtcp" source --bytes "$bytes" --congestion-control "${sender#linux:}" \
            10.77.2.2:9000 >"$work/sender" 2>&1
        ;;
    chat:*)
        ip netns exec "$mine-fixed" bash -c '
            IFS=, read -r size wait count <<<"$0"
            exec 3>/dev/tcp/10.77.2.2/9000
            for ((i = 0; i < count; i++)); do
                head -c "$size" /dev/zero >&3
                sleep "$(printf "%d.%03d" $((wait / 1000)) $((wait % 1000)))"
            done' "${sender#chat:}" >"$work/sender" 2>&1
        ;;
    *)
        ip netns exec "$mine-fixed" timeout 120 "$airtcp" send --bytes "$bytes" --recipe "$sender" --seed "$seed" \
            --no-digest 10.77.2.2:9000 >"$work/sender" 2>&1
        ;;
    esac
}

record() {
    for role in fixed mobile; do
        ip netns add "$mine-$role"
        ip -n "$mine-$role" link set lo up
    done
    ip netns exec "$mine-fixed" sysctl -q -w net.ipv4.ip_forward=1
    set --
    for setting in $settings; do
        set -- "$@" --set "$setting"
    done
    path=$scenario
    [ ! -e "$here/paths/$scenario.toml" ] || path=$here/paths/$scenario.toml
    chrt -f 10 "$airlink" up --name "$mine" --scenario "$path" "$@" --seed "$seed" \
        --fixed-netns "$mine-fixed" --fixed-dev radio --fixed-addr 10.77.2.1/24 \
        --mobile-netns "$mine-mobile" --mobile-dev radio --mobile-addr 10.77.2.2/24 \
        --mobile-route 10.83.0.0/24 >/dev/null
    set_up
    ip netns exec "$mine-mobile" chrt -f 20 socat -u -b 262144 "$listens" OPEN:/dev/null &
    reader=$!
    ip netns exec "$mine-mobile" tcpdump -Z root -U --immediate-mode --nano -s 100 -i radio -w "$work/capture" \
        'tcp port 9000' 2>"$work/tcpdump" &
    started="$reader $!"
    capture=$!
    until grep -q listening "$work/tcpdump" && in_mobile ss -Hltn sport = 9000 | grep -q LISTEN; do
        sleep 0.05
    done
    send || {
        cat "$work/sender" >&2
        exit 1
    }
    sleep 0.5
    kill -INT "$capture"
    wait "$capture" || true
    editcap -F nsecpcap "$work/capture" "$work/capture.pcap"
    python3 $here/headers.py "$work/capture.pcap" "$out/$name.pcap"
    end
}

wanted=" $* "
grep -v '^#' $here/list.txt | while IFS='|' read -r name receiver scenario settings sender bytes seed; do
    # Remove the blanks around each field.
    name=$(echo $name) receiver=$(echo $receiver) scenario=$(echo $scenario) settings=$(echo $settings)
    sender=$(echo $sender) bytes=$(echo $bytes) seed=$(echo $seed)
    case $wanted in
    "  " | *" $name "*) ;;
    *) continue ;;
    esac
    record </dev/null
    echo "$name: $(wc -c <"$out/$name.pcap") bytes"
done
