#!/bin/sh
# smoltcp (Rust): one SACK block, a fixed window
#   interop/receivers/smoltcp/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

command -v cargo >/dev/null 2>&1 || fail "smoltcp needs Rust 1.93 or later: https://rustup.rs"
finished smoltcp/src/main.rs smoltcp/Cargo.toml smoltcp/Cargo.lock "$(rustc --version)" && exit

echo "setup: building smoltcp" >&2
cargo build --quiet --release --locked --manifest-path smoltcp/Cargo.toml --target-dir "$destination/target" ||
    fail "smoltcp could not be built"
mv "$destination/target/release/smoltcp-receiver" "$destination/start"
rm -rf "$destination/target"
version=$(sed -n '/^name = "smoltcp"$/{n;s/^version = "\(.*\)"$/\1/p}' smoltcp/Cargo.lock)
finish "smoltcp $version (crate), SACK of one block and timestamps"
