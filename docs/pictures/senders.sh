#!/bin/sh
# Draws the two graphs of the README: the same three losses, repaired by two senders.
#   docs/pictures/senders.sh      (airtcp must be on the PATH)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for sender in reno sack; do
    airtcp sim --scenario "$here/../examples/three-losses.toml" --recipe $sender --bytes 200k --pcap "$scratch/$sender.pcap" >"$scratch/log"
    airtcp analyze "$scratch/$sender.pcap" --to 3.5 --plot "$scratch/$sender" >"$scratch/log"
    sed "s/10\.0\.0\.1:10000 → 10\.128\.0\.1:80/$sender/" "$scratch/$sender"/*.time-sequence.svg >"$here/$sender.svg"
done
