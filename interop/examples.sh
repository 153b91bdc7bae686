#!/bin/sh
# Runs every example. `make examples` builds them first. SUDO is the command that runs a program as root, or
# empty.
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
    # No example takes this long.
    $root timeout 120 "$programs/$(basename "$source" .rs)" </dev/null || {
        echo "$source ended with $?" >&2
        exit 1
    }
    ran=$((ran + 1))
done
if [ "$ran" = 0 ]; then
    echo "examples: no example was found" >&2
    exit 1
fi
echo "examples: $ran ran"
