#!/bin/sh
# Runs every example that there is; `make examples` builds them first. SUDO, if not empty, is how to become root.
set -eu
cd "$(dirname "$0")/.."
programs=${CARGO_TARGET_DIR:-target}/debug/examples

ran=0
for source in examples/*.rs crates/*/examples/*.rs emulator/examples/*.rs; do
    [ -e "$source" ] || continue
    case $source in
    crates/tun/* | emulator/*) root=${SUDO:-} ;;
    *) root= ;;
    esac
    echo "example: $source"
    # None takes so long.
    $root timeout 120 "$programs/$(basename "$source" .rs)" </dev/null || {
        echo "$source ended with $?" >&2
        exit 1
    }
    ran=$((ran + 1))
done
if [ "$ran" = 0 ]; then
    echo "examples: there are none" >&2
    exit 1
fi
echo "examples: $ran ran"
