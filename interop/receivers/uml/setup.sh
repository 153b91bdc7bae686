#!/bin/sh
# Linux 6.1 as a process: user-mode-linux of Debian bookworm
#   interop/receivers/uml/setup.sh DESTDIR
exec "$(dirname "$0")/../guest/uml-setup.sh" bookworm "$1"
