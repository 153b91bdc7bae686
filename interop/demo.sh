#!/bin/sh
# Five senders over the same W-CDMA link, 10 % of whose blocks are in error, to this machine's unmodified kernel:
# a table, and the captures.   interop/demo.sh DIRECTORY-OF-THE-PROGRAMS
set -eu

airtcp=$1/airtcp
# On a terminal, lines that it would break end in …; elsewhere they are whole.
width=''
[ ! -t 1 ] || width=$(stty size <&1 2>/dev/null | cut -d ' ' -f 2)
fit() {
    if [ "${width:-0}" -gt 20 ]; then sed -E "s/^(.{$((width - 1))})..+\$/\1…/"; else cat; fi
}
out=${OUT:-target/demo}
rm -rf "$out"

echo 'A W-CDMA bearer of 384/64 kbit/s, 10 % of its blocks in error, whose RLC gives a packet up after three'
echo 'retransmissions (MaxDAT 4) and then starts over. The receiver is this kernel; so is one of the senders.'
echo
"$airtcp" lab run --scenario wcdma-384-maxdat \
    --recipe newreno --recipe newreno+eifel --recipe sack+sifest+liw --recipe linux --sender linux:cubic \
    --runs 10 --bytes 150k --jobs 16 --radio --output "$out"

sample=$out/01-newreno+eifel
echo
echo "Why one of them did what it did: who decided, what, and why ($out/*-newreno+eifel/decisions.jsonl):"
# Not every run has a timeout.
{
    grep -h '"question":"undo"\|"what":"timeout"' "$out"/*-newreno+eifel/decisions.jsonl || true
    grep -h '"what":"lost"' "$sample/decisions.jsonl" || true
} | head -n 4 | sed 's/^/  /' | fit
echo
echo "What left towards the radio, as tcpdump reads it ($sample/fixed.pcap):"
tcpdump -nn -ttt -r "$sample/fixed.pcap" 2>/dev/null | head -n 5 | sed 's/^/  /' | fit
echo
"$airtcp" report "$out" -o "$out/report.html" >/dev/null
echo "All of it as one page, for any browser, with graphs to zoom into: $out/report.html"
echo
echo 'More to see:'
echo "  tshark -r $sample/radio.pcap --enable-heuristic rlc_udp    every radio PDU"
echo "  airtcp explain newreno+eifel                               what the recipe does"
echo "  airtcp lab run --help                                      the same with anything else"
