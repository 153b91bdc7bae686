#!/bin/sh
# A transfer from airtcp to this machine's unmodified kernel, in a namespace of its own: every octet checked,
# the capture beside it.   interop/demo.sh AIRTCP [SIZE]
set -eu

airtcp=$1
size=${2:-200M}
recipe=${RECIPE:-sack}
netns=airtcp-demo-$$
out=${OUT:-target/demo}
mkdir -p "$out"
sink=

finish() {
    [ -n "$sink" ] && kill "$sink" 2>/dev/null || true
    ip netns del "$netns" 2>/dev/null || true
}
trap finish EXIT
trap 'exit 130' INT TERM

ip netns add "$netns"
ip -n "$netns" link set lo up

echo "A kernel receiver in namespace $netns; airtcp sends it $size with recipe $recipe."
"$airtcp" sink 9000 --netns "$netns" --echo-digest >"$out/sink.txt" 2>"$out/sink.log" &
sink=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -q . "$out/sink.log" 2>/dev/null && break
    sleep 0.1
done

"$airtcp" send --bytes "$size" 10.83.0.1:9000 --netns "$netns" --recipe "$recipe" --verify \
    --decisions "$out/decisions.jsonl"
wait "$sink" && sink=
echo
echo "What the kernel's program received:"
sed 's/^/  /' "$out/sink.txt"

# A capture of a smaller run: two hundred megabytes of packets are no pleasure to read.
"$airtcp" sink 9000 --netns "$netns" >/dev/null 2>"$out/sink.log" &
sink=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    grep -q . "$out/sink.log" 2>/dev/null && break
    sleep 0.1
done
"$airtcp" send --bytes 100k 10.83.0.1:9000 --netns "$netns" --recipe "$recipe" --quiet \
    --pcap "$out/demo.pcap" >/dev/null
wait "$sink" && sink=
echo
echo "The first packets of a transfer of 100 kB ($out/demo.pcap), as tcpdump reads them:"
tcpdump -nn -ttt -r "$out/demo.pcap" 2>/dev/null | head -n 8 | cut -c 1-150 | sed 's/^/  /'
echo
echo "Kept: $out/demo.pcap  $out/decisions.jsonl (who changed the window, and why)"
