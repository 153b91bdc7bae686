#!/bin/sh
# Builds receivers: third-party TCP stacks that follow the contract in README.md.
#   interop/receivers/setup.sh          lists them
#   interop/receivers/setup.sh NAME...  builds these into ${AIRTCP_RECEIVERS:-target/receivers}/NAME
#   interop/receivers/setup.sh --ci     builds those that every change is tested with
# Exit code 1: a receiver could not be built. The others are built anyway.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ "$*" != --ci ] || set -- gvisor lwip lwip-sack smoltcp uml

if [ $# = 0 ]; then
    # The second line of each setup script describes its receiver.
    for setup in "$here"/*/setup.sh; do
        printf '%-12s%s\n' "$(basename "$(dirname "$setup")")" "$(sed -n '2s/^# //p' "$setup")"
    done | sort
    exit
fi

for name in "$@"; do
    if [ ! -f "$here/$name/setup.sh" ]; then
        echo "setup: there is no receiver \"$name\"; interop/receivers/setup.sh lists them" >&2
        exit 2
    fi
done

built=${AIRTCP_RECEIVERS:-$here/../../target/receivers}
mkdir -p "$built"
built=$(cd "$built" && pwd)
failed=''
for name in "$@"; do
    mkdir -p "$built/$name"
    # One build of a receiver at a time. dash supports no descriptors above 9.
    exec 9>"$built/$name/.lock"
    flock 9
    sh "$here/$name/setup.sh" "$built/$name" 9>&- || failed="$failed $name"
done
[ -z "$failed" ] && exit
echo "setup: not built:$failed" >&2
exit 1
