#!/usr/bin/env python3
"""headers.py FROM TO: copies a capture of IPv4 packets, and cuts each packet to its headers."""

import struct
import sys

capture = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "wb") as out:
    out.write(capture[:24])
    at = 24
    while at < len(capture):
        seconds, nanos, kept, length = struct.unpack_from("<4I", capture, at)
        packet = capture[at + 16 : at + 16 + kept]
        ip = 4 * (packet[0] & 15)
        headers = packet[: ip + 4 * (packet[ip + 12] >> 4)]
        out.write(struct.pack("<4I", seconds, nanos, len(headers), length) + headers)
        at += 16 + kept
