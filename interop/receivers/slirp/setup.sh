#!/bin/sh
# libslirp, QEMU's user network (4.4BSD's TCP): no SACK, no timestamps, no window scale
#   interop/receivers/slirp/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

packages gcc libc6-dev libslirp-dev
finished slirp/receiver.c common/guest.[ch] common/receiver.[ch] "$(version libslirp0)" && exit

gcc -O2 -Wall -Wextra -I common slirp/receiver.c common/guest.c common/receiver.c -lslirp -lpthread -o "$destination/start"
finish "libslirp $(version libslirp0 | cut -d- -f1) (Debian libslirp0 $(version libslirp0)), no SACK, no timestamps"
