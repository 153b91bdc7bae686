#!/bin/sh
# Linux 6.12 as a process: user-mode-linux of Debian trixie
#   interop/receivers/uml-6.12/setup.sh DESTDIR
exec "$(dirname "$0")/../guest/uml-setup.sh" trixie "$1"
