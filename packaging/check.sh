#!/bin/sh
# Checks the packages as root: lintian, then both in a fresh Debian system without Rust, each with the time to the first result.
#   packaging/check.sh PACKAGES
set -eu

packages=$(cd "$1" && pwd)
deb=$(ls "$packages"/airtcp_*.deb)
archive=$(ls "$packages"/airtcp-*.tar.zst)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

echo "lintian $(basename "$deb")"
lintian --fail-on error,warning "$deb"
(cd "$packages" && sha256sum --check "$(basename "$archive").sha256")

system=$(mktemp -d "$packages/system.XXXXXX")
trap 'umount "$system/proc" 2>/dev/null || true; rm -rf "$system"' EXIT
debootstrap --variant=minbase --include=ca-certificates "$suite" "$system" >"$packages/debootstrap.log"
mount -t proc proc "$system/proc"
cp /etc/resolv.conf "$system/etc/resolv.conf"
cp "$deb" "$archive" pcaps/sack.pcap "$system/root"
inside() { chroot "$system" env LC_ALL=C DEBIAN_FRONTEND=noninteractive HOME=/root sh -euc "cd /root; $1"; }
if inside 'command -v cargo rustc'; then
    echo "check: the new system has Rust" >&2
    exit 1
fi

# first_result WHAT INSTALL PROGRAM: installs, simulates and analyses, in at most 30 s.
first_result() {
    start=$(date +%s%N)
    inside "$2" >"$packages/install.log" 2>&1 || { cat "$packages/install.log" >&2; exit 1; }
    inside "$3 sim --scenario leo --recipe sack --bytes 1M" | grep -q sack
    inside "$3 analyze sack.pcap" | grep -q retransmi
    took=$((($(date +%s%N) - start) / 1000000))
    echo "$1: first result after $took ms"
    [ "$took" -le 30000 ] || { echo "check: that is longer than 30 s" >&2; exit 1; }
    inside "$3 playground --output page.html" && [ -s "$system/root/page.html" ] && rm "$system/root/page.html"
}

inside 'apt-get update -qq' >/dev/null
name=$(basename "$archive" .tar.zst)
first_result 'static archive' "tar --extract --use-compress-program='zstd -d' --file $name.tar.zst || { apt-get install -y -qq zstd && tar --extract --zstd --file $name.tar.zst; }" \
    "$name/bin/airtcp"
inside "$name/bin/airlink --version; $name/bin/airtcp-serve --version"
first_result 'Debian package' "apt-get install -y -qq --no-install-recommends ./$(basename "$deb")" airtcp
inside 'airlink show leo' >/dev/null
