#!/bin/sh
# Unpacks packages of any Debian suite into a directory. Installs nothing, and needs no root.
#   interop/receivers/guest/fetch.sh SUITE DIRECTORY PACKAGE...
# @PACKAGE means the first dependency of the metapackage PACKAGE.
# The mirror and its keys are taken from this machine's apt sources. DIRECTORY/versions gets one line per
# package.
set -eu

suite=$1
mkdir -p "$2"
directory=$(cd "$2" && pwd)
shift 2

fail() {
    echo "setup: $*" >&2
    exit 1
}

command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 ||
    fail "guest kernels come from Debian packages, and apt-get or dpkg-deb is missing here."

# The mirror of this machine's main archive also has the other suites (bookworm, bullseye, ...).
find_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 2>/dev/null |
        awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}
mirror=$(find_mirror)
if [ -z "$mirror" ] && [ "$(id -u)" = 0 ]; then
    # The package lists identify the mirror. A new machine may not have any.
    apt-get update -qq >&2
    mirror=$(find_mirror)
fi
[ -n "$mirror" ] || fail "no Debian archive among this machine's apt sources (if apt-get update never ran, run it)."

root=$directory/apt
mkdir -p "$root/lists/partial" "$root/cache/archives/partial" "$root/parts" "$root/debs"
: >"$root/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$root/sources.list"

privately() {
    "$@" -qq -o Dir::State::Lists="$root/lists" -o Dir::State::status="$root/status" -o Dir::Cache="$root/cache" \
        -o Dir::Etc::SourceList="$root/sources.list" -o Dir::Etc::SourceParts="$root/parts" \
        -o Dir::Etc::PreferencesParts="$root/parts" -o APT::Sandbox::User= -o Acquire::Languages=none
}

privately apt-get update >&2 || fail "the mirror of this machine's apt sources has no usable suite $suite."
packages=
for package; do
    case $package in
    @*) package=$(privately apt-cache depends "${package#@}" | awk '$1 == "Depends:" { print $2; exit }') ;;
    esac
    packages="$packages $package"
done
echo "setup: unpacking (not installing) from Debian $suite:$packages" >&2
# shellcheck disable=SC2086 # a list of package names
(cd "$root/debs" && privately apt-get download $packages >&2) || fail "Debian $suite here lacks one of:$packages"
for deb in "$root"/debs/*.deb; do
    dpkg-deb -x "$deb" "$directory"
    dpkg-deb --show --showformat '${Package} ${Version}\n' "$deb" >>"$directory/versions"
done
rm -rf "$root"
