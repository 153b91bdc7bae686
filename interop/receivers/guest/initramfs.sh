#!/bin/sh
# Builds the guests' initial file system: busybox, /init, /sink, /source, and the named kernel modules.
#   interop/receivers/guest/initramfs.sh BUSYBOX OUTPUT [MODULE...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
busybox=$1
output=$2
shift 2

tree=$output.d
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/modules"
cp "$busybox" "$tree/bin/busybox"
for applet in $("$busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"
done
cp "$here/init" "$here/sink" "$here/source" "$tree/"
chmod +x "$tree/init" "$tree/sink" "$tree/source"
[ $# = 0 ] || cp "$@" "$tree/modules/"
(cd "$tree" && find . | "$busybox" cpio -o -H newc 2>/dev/null) | gzip -1 >"$output"
rm -rf "$tree"
