#!/bin/sh
# Runs a test program as root, in namespaces of its own if it starts other programs: cargo's runner for the tests.
#   tests/isolated.sh PROGRAM ARGUMENT...
# In its namespaces a test sees only its own devices, sockets, processes and temporary files. So tests that look for
# leftovers can run in parallel, and whatever a test has started ends with it, also when the test is killed.
set -eu
[ "$(id -u)" = 0 ] || exec sudo -E env "PATH=$PATH" "$0" "$@"

# Listing tests needs no isolation, nor do unit tests and those in virtual time: namespaces take 20 ms of each test.
case "${1##*/} $*" in
*" --list "*) exec "$@" ;;
air*-* | rlc_* | host-* | liveness-* | ns2-* | receiver-* | scenarios-* | scripts-* | stages-* | world-*) exec "$@" ;;
esac

# A program started by nohup ignores SIGHUP, and the tests send signals.
exec env --default-signal unshare --net --mount --pid --fork --mount-proc --kill-child sh -c '
    ip link set lo up
    mount -t tmpfs tmpfs /run
    mkdir /run/tmp
    export TMPDIR=/run/tmp
    # Not exec: this shell reaps orphans.
    "$@"
    exit $?' sh "$@"
