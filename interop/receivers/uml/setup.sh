#!/bin/sh
# Linux 6.1 as a process: user-mode-linux of Debian bookworm, or of sid where 6.1 does not start
#   interop/receivers/uml/setup.sh DESTDIR
exec "$(dirname "$0")/../guest/uml-setup.sh" "bookworm sid" "$1"
