#!/bin/sh
# lwIP as Debian builds it: no SACK, no timestamps
#   interop/receivers/lwip/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

packages gcc libc6-dev liblwip-dev
finished lwip/receiver.c common/receiver.[ch] "$(version liblwip0)" && exit

gcc -O2 -Wall -Wextra -I common -isystem /usr/include/lwip lwip/receiver.c common/receiver.c \
    -llwip -lpthread -o "$destination/start"
finish "lwIP $(version liblwip0 | cut -d+ -f1) (Debian liblwip0 $(version liblwip0)), no SACK, no timestamps"
