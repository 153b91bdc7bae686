#!/bin/sh
# Makes a receiver of Debian's user-mode Linux kernel of one suite.
#   interop/receivers/guest/uml-setup.sh SUITE DESTDIR
set -eu

here=$(cd "$(dirname "$0")" && pwd)
suite=$1
mkdir -p "$2"
destination=$(cd "$2" && pwd)

fail() {
    echo "setup: $*" >&2
    exit 1
}

# The kernel is tied to the place where its C library lies, so the place counts as an ingredient.
stamp=$(cat "$here"/* | cksum)" $suite $destination"
[ "$(cat "$destination/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
    fail "user-mode Linux is taken from Debian's amd64 packages: this machine must be an amd64 with dpkg and apt-get."

rm -rf "$destination"
mkdir -p "$destination/run"
"$here/fetch.sh" bookworm "$destination/tools" busybox-static
"$here/fetch.sh" "$suite" "$destination/kernel" user-mode-linux
mv "$destination/kernel/usr/bin/linux.uml" "$destination/linux.uml"

# A kernel of a newer suite than this machine's needs its own suite's C library, tied in by path: it executes
# /proc/self/exe, so calling it through the other dynamic loader is not enough.
if ! release=$("$destination/linux.uml" --version 2>/dev/null); then
    "$here/fetch.sh" bookworm "$destination/tools" patchelf
    "$here/fetch.sh" "$suite" "$destination/kernel" libc6
    mv "$(dirname "$(find "$destination/kernel" -name libc.so.6)")" "$destination/lib"
    "$destination/tools/usr/bin/patchelf" --set-interpreter "$destination/lib/ld-linux-x86-64.so.2" \
        --set-rpath "$destination/lib" "$destination/linux.uml" &&
        release=$("$destination/linux.uml" --version) ||
        fail "user-mode Linux of Debian $suite does not run on this machine"
fi
package=$(awk '$1 == "user-mode-linux" { print $2 }' "$destination/kernel/versions")
"$here/initramfs.sh" "$destination/tools/bin/busybox" "$destination/initramfs.gz"
cp "$here/start" "$here/supervise" "$destination/"
cp "$here/uml-boot" "$destination/boot"
rm -rf "$destination/kernel" "$destination/tools"
echo "Linux $release (user-mode-linux $package of Debian $suite)" >"$destination/version"
echo "$stamp" >"$destination/stamp"
