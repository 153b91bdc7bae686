#!/bin/sh
# Linux 6.1, Debian bookworm's cloud kernel, in a PC emulated by QEMU
#   interop/receivers/qemu/setup.sh DESTDIR
# Installs QEMU if it is missing (root or sudo). The kernel is only unpacked.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
guest=$(cd "$here/../guest" && pwd)
mkdir -p "$1"
destination=$(cd "$1" && pwd)

fail() {
    echo "setup: $*" >&2
    exit 1
}

stamp=$(cat "$guest"/* "$here"/* | cksum)
[ "$(cat "$destination/stamp" 2>/dev/null)" = "$stamp" ] && command -v qemu-system-x86_64 >/dev/null 2>&1 && exit 0

if ! command -v qemu-system-x86_64 >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || fail "qemu-system-x86_64 is missing and this system has no apt-get: install QEMU."
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            fail "run as root, install sudo, or ask an administrator for: apt-get install qemu-system-x86"
        sudo=sudo
    fi
    echo "setup: installing qemu-system-x86" >&2
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null
fi

rm -rf "$destination"
mkdir -p "$destination/run"
"$guest/fetch.sh" bookworm "$destination/tools" busybox-static lz4
"$guest/fetch.sh" bookworm "$destination/kernel" @linux-image-cloud-amd64

# An uncompressed kernel saves the emulated machine two seconds.
image=$(echo "$destination"/kernel/boot/vmlinuz-*)
offset=$(LC_ALL=C grep -abo -m 1 -P '\x02\x21\x4c\x18' "$image" | head -n 1 | cut -d : -f 1)
[ -n "$offset" ] || fail "$image is no longer compressed with LZ4: qemu/setup.sh must be changed for its new format"
# lz4 reports an error for the data after the kernel in the image, which is not LZ4.
tail -c +$((offset + 1)) "$image" | "$destination/tools/usr/bin/lz4" -d -q >"$destination/vmlinux" 2>/dev/null || true
[ "$(head -c 4 "$destination/vmlinux" | tr -d '\177')" = ELF ] || fail "the data unpacked from $image is not a kernel"

# In the order of their dependencies.
modules=
for name in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net; do
    module=$(find "$destination/kernel/lib/modules" -name "$name.ko")
    [ -n "$module" ] || fail "$image has no module $name"
    modules="$modules $module"
done
# shellcheck disable=SC2086 # a list of paths without spaces
"$guest/initramfs.sh" "$destination/tools/bin/busybox" "$destination/initramfs.gz" $modules
cp "$guest/start" "$guest/supervise" "$here/deliver" "$destination/"
cp "$here/boot" "$destination/boot"
package=$(awk '/^linux-image/ { print $2 }' "$destination/kernel/versions")
rm -rf "$destination/kernel" "$destination/tools"
echo "Linux ${package%-*} (linux-image-cloud-amd64 $package of Debian bookworm, in QEMU without KVM)" >"$destination/version"
echo "$stamp" >"$destination/stamp"
