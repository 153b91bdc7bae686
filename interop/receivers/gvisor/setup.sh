#!/bin/sh
# gVisor's netstack (Go): SACK without DSACK, an ACK for each segment
#   interop/receivers/gvisor/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

command -v go >/dev/null 2>&1 || fail "gvisor needs Go 1.23 or later: https://go.dev/dl, or the package golang of your system"
finished gvisor/main.go gvisor/go.mod gvisor/go.sum "$(go version)" && exit

module=$(sed -n 's/^.*\(gvisor.dev.gvisor v[^ ]*\)$/\1/p' gvisor/go.mod)
echo "setup: building gvisor from the Go module $module (a minute, the first time)" >&2
(cd gvisor && CGO_ENABLED=0 go build -trimpath -o "$destination/start" .) || fail "gvisor could not be built"
finish "gVisor netstack ($module), SACK and timestamps"
