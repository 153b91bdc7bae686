#!/bin/sh
# Makes the captures of this directory again, all or those that are named, and the analyses beside them:
#   pcaps/regenerate.sh [NAME…]              in the lab, as root: real time, so they come out differently each time
#   pcaps/regenerate.sh --analyses [NAME…]   the analyses alone, of the captures that are there
# Only the first 128 octets of a packet are kept: the headers, and a part of a station's options at least.
set -eu
cd "$(dirname "$0")/.."
airtcp=${AIRTCP:-target/debug/airtcp}

analyses=
if [ "${1:-}" = --analyses ]; then
    analyses=yes
    shift
fi
if [ ! -x "$airtcp" ]; then
    echo "$0: there is no $airtcp: cargo build, or say where it is in AIRTCP" >&2
    exit 3
fi
if [ -z "$analyses" ] && ! command -v editcap >/dev/null 2>&1; then
    echo "$0: editcap is missing: sh interop/setup.sh test" >&2
    exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What a file of the collection was made with.
provenance() {
    cat <<END
shows = "$shows"
scenario = "$scenario"
settings = [$(for setting in $settings; do printf '"%s", ' "$setting"; done | sed 's/, $//')]
sender = "$sender"
bytes = "$bytes"
seed = $seed
kernel = "$(uname -sr)"
airtcp = "$("$airtcp" --version)"
command = "$command"
END
}

capture() {
    case $sender in
    linux:*) who="--sender $sender" ;;
    *) who="--recipe $sender" ;;
    esac
    set=
    for setting in $settings; do
        set="$set --set $setting"
    done
    command="airtcp lab run --scenario $scenario$set $who --bytes $bytes --seed $seed --runs 1"
    # shellcheck disable=SC2086 # they are several words
    "$airtcp" lab run --scenario "$scenario" $set $who --bytes "$bytes" --seed "$seed" --runs 1 --quiet \
        --output "$work/$name" >/dev/null
    editcap -F nsecpcap -s 128 "$work/$name"/01-*/fixed.pcap "pcaps/$name.pcap"
    provenance >"pcaps/$name.toml"
}

wanted=" $* "
grep -v '^#' pcaps/collection.txt | while IFS='|' read -r name scenario settings sender bytes seed shows; do
    # Blanks around a field do not belong to it.
    name=$(echo $name) scenario=$(echo $scenario) settings=$(echo $settings) sender=$(echo $sender)
    bytes=$(echo $bytes) seed=$(echo $seed) shows=$(echo $shows)
    case $wanted in
    "  " | *" $name "*) ;;
    *) continue ;;
    esac
    if [ -z "$analyses" ]; then
        capture </dev/null
    fi
    "$airtcp" analyze --json "pcaps/$name.pcap" >"pcaps/$name.json"
    echo "$name: $(wc -c <"pcaps/$name.pcap") octets"
done
