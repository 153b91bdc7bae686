#!/bin/sh
# Installs the programs with their man pages and shell completions, and the plug-in for Wireshark.
#   packaging/install.sh PROGRAMS PREFIX
# PROGRAMS is the directory of the built programs. The environment variable DESTDIR is put before PREFIX.
set -eu

programs=$1
root=${DESTDIR:-}$2
install -D -m 755 -t "$root/bin" "$programs/airtcp" "$programs/airtcp-serve" "$programs/airlink"
install -D -m 644 -t "$root/share/airtcp" interop/wireshark/airtcp.lua
install -d "$root/share/bash-completion/completions" "$root/share/zsh/site-functions" "$root/share/fish/vendor_completions.d"
for program in airtcp airtcp-serve airlink; do
    "$programs/$program" man "$root/share/man/man1"
    "$programs/$program" completions bash >"$root/share/bash-completion/completions/$program"
    "$programs/$program" completions zsh >"$root/share/zsh/site-functions/_$program"
    "$programs/$program" completions fish >"$root/share/fish/vendor_completions.d/$program.fish"
done
