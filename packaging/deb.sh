#!/bin/sh
# Makes the Debian package of the programs.
#   packaging/deb.sh PROGRAMS OUT
# PROGRAMS is the directory of the built programs. The package is written to the directory OUT. DEBFULLNAME and DEBEMAIL name the
# maintainer, as for Debian's own tools.
set -eu

programs=$1
out=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-airtcp developers} <${DEBEMAIL:-noreply@airtcp.invalid}>"
date=$(date --utc --date="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}" '+%a, %d %b %Y %H:%M:%S +0000')

mkdir -p "$out"
work=$(mktemp -d "$out/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 022
package=$work/debian/airtcp
DESTDIR=$package sh packaging/install.sh "$programs" /usr
mv "$package/usr/share/zsh/site-functions" "$package/usr/share/zsh/vendor-completions"
strip --strip-unneeded --remove-section=.comment "$package"/usr/bin/*
gzip -9n "$package"/usr/share/man/man1/*.1

documents=$package/usr/share/doc/airtcp
install -D -m 644 -t "$documents" README.md CHANGELOG.md
install -D -m 644 -t "$documents/examples" packaging/airtcp-serve.service pcaps/sack.pcap
printf 'airtcp (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in this directory.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$date" | gzip -9n >"$documents/changelog.gz"
gzip -9n "$documents/CHANGELOG.md"
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: airtcp\n\n'
    printf 'Files: *\nCopyright: %s\nLicense: MIT or Apache-2.0\n\n' "$(sed -n 's/^Copyright (c) //p' LICENSE-MIT)"
    printf 'License: MIT\n%s\n\n' "$(sed -n '/^Permission is/,$s/^$/./; /^Permission is/,$s/^/ /p' LICENSE-MIT)"
    printf 'License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$documents/copyright"

mkdir -p "$package/DEBIAN"
# dpkg-shlibdeps reads debian/control of the source package.
printf 'Source: airtcp\n\nPackage: airtcp\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O debian/airtcp/usr/bin/* 2>/dev/null)
cat >"$package/DEBIAN/control" <<CONTROL
Package: airtcp
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$package" | cut -f1)
Depends: ${depends#shlibs:Depends=}
Recommends: iproute2
Suggests: tcpdump, wireshark
Section: net
Priority: optional
Description: userspace TCP with swappable loss recovery, and a link emulator
 airtcp runs any loss recovery algorithm as a userspace TCP, against unmodified
 kernels over a TUN device or in reproducible virtual time. It compares senders
 with confidence intervals and explains captures. airtcp-serve puts it in front
 of an ordinary server.
 .
 airlink emulates links between two TUN devices: delay, rate, queues, loss, and
 radio bearers down to the radio link control of W-CDMA.
CONTROL
(cd "$package" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
find "$package" -exec touch --no-dereference --date="$date" {} +
dpkg-deb --root-owner-group -Zxz --build "$package" "$out/airtcp_${version}_$architecture.deb"
