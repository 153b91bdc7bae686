#!/bin/sh
# Makes the captures of this directory again, all or those that are named, and the analyses beside them:
#   pcaps/regenerate.sh [NAME…]              as root: real time, so they come out differently each time
#   pcaps/regenerate.sh --analyses [NAME…]   the analyses alone, of the captures that are there
# collection.txt is made in the lab: 128 octets of a packet, the headers and a part of a station's options at least.
# kernels.txt is made by kernels.sh.
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
    # shellcheck disable=SC2086 # they are several words
    "$airtcp" lab run --scenario "$scenario" $set $who --bytes "$bytes" --seed "$seed" --runs 1 --quiet \
        --output "$work/$name" >/dev/null
    editcap -F nsecpcap -s 128 "$work/$name"/01-*/fixed.pcap "pcaps/$name.pcap"
    provenance >"pcaps/$name.toml"
}

# From kernel to kernel: what another kind of capture is there for.
capture_between_kernels() {
    # shellcheck disable=SC2086 # the command's words
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
    echo "$name: $(wc -c <"$file") octets"
}

wanted=" $* "
is_wanted() {
    case $wanted in
    "  " | *" $name "*) ;;
    *) return 1 ;;
    esac
}

grep -v '^#' pcaps/collection.txt | while IFS='|' read -r name scenario settings sender bytes seed shows; do
    # Blanks around a field do not belong to it.
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
