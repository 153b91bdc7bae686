#!/bin/sh
# passt: drops what is out of order, two duplicate ACKs and no more
#   interop/receivers/passt/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

# Not bookworm's: passt of March 2023 resets every connection on which it sends nothing 24 s after its start.
suite=trixie

packages gcc libc6-dev
finished passt/receiver.c common/guest.[ch] common/receiver.[ch] $suite && exit

# Later than this system's, perhaps: it gets the C library that it was built with.
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
