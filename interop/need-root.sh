#!/bin/sh
# Tests against the real kernel need a TUN device and namespaces: say so at once if that cannot be.
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
    echo "make test: tests against the kernel need root (TUN devices, network namespaces); run as root or install sudo." >&2
    exit 3
fi
if [ ! -e /dev/net/tun ]; then
    echo "make test: /dev/net/tun is missing: modprobe tun, or give the container --device /dev/net/tun." >&2
    exit 3
fi
