"""Replaces a VLAN device on kernels without one: pcaps/tags.py DEVICE VID DIRECTORY (a BPF file system)

Adds an 802.1Q tag to every outgoing frame and removes it from every incoming frame. tcpdump sees the tagged frames.
"""

import ctypes
import os
import platform
import struct
import subprocess
import sys

# bpf(2): system call number, commands, and the program type for tc.
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, OBJ_PIN = 5, 6
SCHED_CLS = 3

# <linux/bpf.h>: load a constant into a register, call a helper, exit.
MOV, CALL, EXIT = 0xB7, 0x85, 0x95
VLAN_PUSH, VLAN_POP = 18, 19

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    result = libc.syscall(BPF, command, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes))
    if result < 0:
        sys.exit(f"tags.py: bpf: {os.strerror(ctypes.get_errno())}: needs root and a kernel with CONFIG_BPF_SYSCALL")
    return result


def pin(name, *instructions):
    code = b"".join(struct.pack("=BBhi", operation, register, 0, value) for operation, register, value in instructions)
    code, licence, path = (ctypes.create_string_buffer(text) for text in (code, b"GPL", name.encode()))
    at = ctypes.addressof
    program = bpf(PROG_LOAD, struct.pack("=IIQQIIQ", SCHED_CLS, len(instructions), at(code), at(licence), 0, 0, 0))
    bpf(OBJ_PIN, struct.pack("=QII", at(path), program, 0))


device, vid, directory = sys.argv[1:]
push, pop = f"{directory}/push-{vid}", f"{directory}/pop"
end = [(MOV, 0, 0), (EXIT, 0, 0)]
if not os.path.exists(push):
    # The protocol number is in network byte order.
    (protocol,) = struct.unpack("=H", b"\x81\x00")
    pin(push, (MOV, 2, protocol), (MOV, 3, int(vid)), (CALL, 0, VLAN_PUSH), *end)
    pin(pop, (CALL, 0, VLAN_POP), *end)
subprocess.run(["tc", "qdisc", "add", "dev", device, "clsact"], check=True)
for way, program in (("egress", push), ("ingress", pop)):
    subprocess.run(["tc", "filter", "add", "dev", device, way, "bpf", "da", "object-pinned", program], check=True)
