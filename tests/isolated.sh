#!/bin/sh
# Cargo's test runner: runs a test program as root, in separate namespaces if it starts other programs.
#   tests/isolated.sh PROGRAM ARGUMENT...
# In its namespaces, a test has only its own devices, sockets, processes and temporary files. Tests that look
# for leftovers can therefore run in parallel, and every process that a test starts ends with the test, even
# if the test is killed.
set -eu
# `id` would take longer than most unit tests.
while read -r key user _; do [ "$key" = Uid: ] && break; done </proc/self/status
[ "$user" = 0 ] || exec sudo -E env "PATH=$PATH" "$0" "$@"

# Listing tests, unit tests and tests in virtual time need no isolation. Namespaces cost 20 ms per test.
case "${1##*/} $*" in
*" --list "*) exec "$@" ;;
air*-* | rlc_* | host-* | liveness-* | ns2-* | receiver-* | scenarios-* | scripts-* | stages-* | world-*) exec "$@" ;;
esac

# A program started by nohup ignores SIGHUP, but the tests send signals.
exec env --default-signal unshare --net --mount --pid --fork --mount-proc --kill-child sh -c '
    ip link set lo up
    mount -t tmpfs tmpfs /run
    mkdir /run/tmp
    export TMPDIR=/run/tmp
    # No exec: this shell must stay PID 1 to reap orphaned processes.
    "$@"
    exit $?' sh "$@"
