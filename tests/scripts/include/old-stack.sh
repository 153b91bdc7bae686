#!/bin/sh
# Sets up a TCP without the options of RFC 7323 and RFC 2018, and with a receive memory of twice $1 bytes.
set -e
BUFFER=$(($1 * 2))
sysctl -q net.ipv4.tcp_timestamps=0 net.ipv4.tcp_window_scaling=0
echo 0 > /proc/sys/net/ipv4/tcp_sack
sysctl -q -w net.ipv4.tcp_rmem="4096 ${BUFFER} 6291456" 2> /dev/null || exit 1
