#!/bin/sh
# Linux 5.10 as a process: user-mode-linux of Debian bullseye
#   interop/receivers/uml-5.10/setup.sh DESTDIR
exec "$(dirname "$0")/../guest/uml-setup.sh" bullseye "$1"
