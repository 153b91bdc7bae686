#!/bin/sh
# passt: drops out-of-order segments, sends at most two duplicate ACKs
#   interop/receivers/passt/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

# bookworm's passt (March 2023) resets a connection on which it has sent nothing, 24 s after its start.
suite=trixie

packages gcc libc6-dev
finished passt/receiver.c common/guest.[ch] common/receiver.[ch] $suite && exit

# passt may be newer than this system, so it gets the C library of its own suite.
unpacked=$destination/unpacked
rm -rf "$unpacked" "${destination:?}/lib"
sh guest/fetch.sh $suite "$unpacked" passt libc6
mkdir "$destination/lib"
cp -L "$unpacked"/usr/bin/passt "$destination/passt"
cp -L "$unpacked"/usr/lib/*/ld-linux*.so.* "$destination/lib/ld"
cp -L "$unpacked"/usr/lib/*/libc.so.6 "$destination/lib/"
version=$(sed -n 's/^passt //p' "$unpacked/versions")
rm -rf "$unpacked"

gcc -O2 -Wall -Wextra -I common passt/receiver.c common/guest.c common/receiver.c -lpthread -o "$destination/bridge"
cat >"$destination/start" <<'START'
#!/bin/sh
here=$(dirname "$0")
exec "$here/bridge" "$here/lib/ld" --library-path "$here/lib" "$here/passt"
START
chmod +x "$destination/start"
finish "passt ${version%.*} (Debian $suite passt $version), no SACK, no timestamps, no queue for what is out of order"
