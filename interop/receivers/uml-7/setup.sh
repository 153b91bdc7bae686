#!/bin/sh
# Linux 7 as a process: user-mode-linux of Debian sid, in its current version
#   interop/receivers/uml-7/setup.sh DESTDIR
exec "$(dirname "$0")/../guest/uml-setup.sh" sid "$1"
