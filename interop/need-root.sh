#!/bin/sh
# Exits with an error if TUN devices and namespaces are not available.   interop/need-root.sh WHAT
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
    echo "$1: TUN devices and network namespaces need root: run as root, or install sudo." >&2
    exit 3
fi
if [ ! -e /dev/net/tun ]; then
    echo "$1: /dev/net/tun is missing: modprobe tun, or give the container --device /dev/net/tun." >&2
    exit 3
fi
