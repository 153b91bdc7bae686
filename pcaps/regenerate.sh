#!/bin/sh
# Records the captures of this directory again, all or the named ones, and analyzes them.
#   pcaps/regenerate.sh [NAME…]              needs root; runs in real time, so every recording differs
#   pcaps/regenerate.sh --analyses [NAME…]   only repeats the analyses of the existing captures
# The captures in collection.txt come from the lab, with the first 128 bytes of each packet: all headers, and at least a
# part of a station's options. The captures in kernels.txt come from kernels.sh.
set -eu
cd "$(dirname "$0")/.."
airtcp=${AIRTCP:-target/debug/airtcp}
airlink=$(dirname "$airtcp")/airlink

analyses=
if [ "${1:-}" = --analyses ]; then
    analyses=yes
    shift
fi
if [ ! -x "$airtcp" ]; then
    echo "$0: $airtcp does not exist: run cargo build, or set AIRTCP to its path" >&2
    exit 3
fi
if [ -z "$analyses" ] && ! command -v editcap >/dev/null 2>&1; then
    echo "$0: editcap is missing: sh interop/setup.sh test" >&2
    exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints how a capture was recorded.
provenance() {
    cat <<END
shows = "$shows"
scenario = "$scenario"
settings = [$(for setting in $settings; do printf '"%s", ' "$setting"; done | sed 's/, $//')]
sender = "$sender"
bytes = "$bytes"
seed = $seed
kernel = "$(uname -sr | sed "s/-.*//")"
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
    # shellcheck disable=SC2086 # lists of options
    "$airtcp" lab run --scenario "$scenario" $set $who --bytes "$bytes" --seed "$seed" --runs 1 --quiet \
        --output "$work/$name" >/dev/null
    editcap -F nsecpcap -s 128 "$work/$name"/01-*/fixed.pcap "pcaps/$name.pcap"
    provenance >"pcaps/$name.toml"
}

capture_between_kernels() {
    # shellcheck disable=SC2086 # the words of a command
    set -- $how
    place=$1
    shift
    sh pcaps/kernels.sh "$airlink" "$scenario" "$to" "$bytes" "$seed" "$file" "$place" "$@"
    cat >"pcaps/$name.toml" <<END
shows = "$shows"
scenario = "$scenario"
settings = []
sender = "linux:cubic"
bytes = "$bytes"
seed = $seed
kernel = "$(uname -sr | sed "s/-.*//")"
airtcp = "$("$airtcp" --version)"
command = "pcaps/regenerate.sh $name"
capture = "$1 -w $file $(shift && echo "$*"), in the $place's namespace"
END
}

analyze() {
    "$airtcp" analyze --json "$file" >"pcaps/$name.json"
    echo "$name: $(wc -c <"$file") bytes"
}

wanted=" $* "
is_wanted() {
    case $wanted in
    "  " | *" $name "*) ;;
    *) return 1 ;;
    esac
}

grep -v '^#' pcaps/collection.txt | while IFS='|' read -r name scenario settings sender bytes seed shows; do
    # Removes the spaces around each field.
    name=$(echo $name) scenario=$(echo $scenario) settings=$(echo $settings) sender=$(echo $sender)
    bytes=$(echo $bytes) seed=$(echo $seed) shows=$(echo $shows)
    is_wanted || continue
    file=pcaps/$name.pcap
    [ -n "$analyses" ] || capture </dev/null
    analyze
done
grep -v '^#' pcaps/kernels.txt | while IFS='|' read -r file scenario to how bytes seed shows; do
    file=pcaps/$(echo $file) scenario=pcaps/scenarios/$(echo $scenario).toml to=$(echo $to) how=$(echo $how)
    bytes=$(echo $bytes) seed=$(echo $seed) shows=$(echo $shows)
    name=$(basename "${file%.*}")
    is_wanted || continue
    [ -n "$analyses" ] || capture_between_kernels </dev/null
    analyze
done
