#!/bin/sh
# Runs the checks of `make check` (formatting, clippy, unit tests) on the crates that differ from a revision.
#   tests/changed.sh REVISION
set -eu
cd "$(dirname "$0")/.."

# Each changed or new file belongs to the package of the nearest Cargo.toml above it.
packages=$({ git diff --name-only "$1"; git ls-files --others --exclude-standard; } | while read -r file; do
    case $file in *.rs | *.toml | *.js | *.css | *.html | *.json) ;; *) continue ;; esac
    directory=$(dirname "$file")
    until [ -e "$directory/Cargo.toml" ]; do directory=$(dirname "$directory"); done
    sed -n '/^\[package\]/,/^\[/s/^name = "\(.*\)"/-p \1/p' "$directory/Cargo.toml"
done | sort -u)
if [ -z "$packages" ]; then
    echo "check: no crate differs from $1"
    exit 0
fi
echo "check:" $packages
$CARGO fmt --all --check
# shellcheck disable=SC2086 # a list of options, one per line
$CARGO clippy --locked --all-targets $packages -- -D warnings
# shellcheck disable=SC2086
$CARGO nextest run --locked --lib --bins --no-tests pass $packages
