#!/bin/sh
# Builds a receiver from Debian's user-mode Linux kernel: from the first of SUITES whose kernel starts on this
# processor.
#   interop/receivers/guest/uml-setup.sh SUITES DESTDIR
set -eu

here=$(cd "$(dirname "$0")" && pwd)
suites=$1
mkdir -p "$2"
destination=$(cd "$2" && pwd)

fail() {
    echo "setup: $*" >&2
    exit 1
}

# The kernel contains the path of its C library, so the path is part of the stamp.
stamp=$(cat "$here"/* | cksum)" $suites $destination"
[ "$(cat "$destination/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
    fail "user-mode Linux is taken from Debian's amd64 packages: this machine must be an amd64 with dpkg and apt-get."

rm -rf "$destination"
mkdir -p "$destination/run"
cp "$here/start" "$here/supervise" "$destination/"
cp "$here/uml-boot" "$destination/boot"
"$here/fetch.sh" bookworm "$destination/tools" busybox-static patchelf

fetch_kernel() {
    "$here/fetch.sh" "$suite" "$destination/kernel" user-mode-linux libc6
    mv "$destination/kernel/usr/bin/linux.uml" "$destination/linux.uml"

    # A kernel of a newer suite than this machine's needs the C library of its suite, linked by path. Calling
    # it through the other dynamic loader is not enough, because it executes /proc/self/exe.
    if ! release=$("$destination/linux.uml" --version 2>/dev/null); then
        mv "$(dirname "$(find "$destination/kernel" -name libc.so.6)")" "$destination/lib"
        "$destination/tools/usr/bin/patchelf" --set-interpreter "$destination/lib/ld-linux-x86-64.so.2" \
            --set-rpath "$destination/lib" "$destination/linux.uml" &&
            release=$("$destination/linux.uml" --version) ||
            fail "user-mode Linux of Debian $suite does not run on this machine"
    fi
    package=$(awk '$1 == "user-mode-linux" { print $2 }' "$destination/kernel/versions")
    # For senders. The kernel itself has only CUBIC and Reno.
    modules=$(find "$destination/kernel" -name 'tcp_*.ko')
    # shellcheck disable=SC2086 # a list of paths without spaces
    "$here/initramfs.sh" "$destination/tools/bin/busybox" "$destination/initramfs.gz" $modules
    rm -rf "$destination/kernel"
    echo "Linux $release (user-mode-linux $package of Debian $suite)" >"$destination/version"
}

# Kernels before 6.13 have a fixed-size buffer for the floating-point registers of a process. A processor with
# AMX needs more, and such a kernel ends when it starts its first process. It kills its whole process group,
# so setsid protects this script.
starts() {
    timeout 60 setsid env -u TMPDIR "$destination/linux.uml" mem=256M "initrd=$destination/initramfs.gz" root=/dev/ram0 \
        rdinit=/init quiet con=null con0=null,fd:1 "uml_dir=$destination/run" </dev/null 2>&1 | grep -q '^guest: starting'
}

for suite in $suites; do
    fetch_kernel
    if starts; then
        rm -rf "$destination/tools"
        echo "$stamp" >"$destination/stamp"
        exit 0
    fi
    echo "setup: user-mode Linux of Debian $suite does not start on this processor" >&2
done
fail "none of these kernels starts: $suites. The receiver uml-7 has the newest."
