#!/bin/sh
# lwIP from Debian's source package, with SACK and timestamps
#   interop/receivers/lwip-sack/setup.sh DESTINATION
set -eu

cd "$(dirname "$0")/.."
destination=$1
. common/build.sh

packages gcc libc6-dev dpkg-dev
finished lwip/receiver.c lwip-sack/lwipopts.h common/receiver.[ch] && exit

lists
# apt's sources may not include source packages. A private configuration fetches them from the same mirror.
# shellcheck disable=SC2016 # apt's variables
archives=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) main' 'Created-By: Packages' 'Label: Debian' \
    'Component: main' | sort -u)
[ -n "$archives" ] || fail "no Debian archive among this machine's apt sources (apt-get update, if it was never run)"
source=$destination/source
rm -rf "$source"
mkdir -p "$source/lists/partial" "$source/cache/archives/partial" "$source/parts"
echo "$archives" | sed 's|^|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] |' >"$source/sources.list"
privately() {
    apt-get -qq -o Dir::Etc::SourceList="$source/sources.list" -o Dir::Etc::SourceParts="$source/parts" \
        -o Dir::State::Lists="$source/lists" -o Dir::Cache="$source/cache" -o APT::Sandbox::User= "$@" >&2
}
echo "setup: fetching the source package lwip" >&2
privately update || fail "the mirror of this machine's apt sources has no usable list of source packages"
(cd "$source" && privately --download-only source lwip) || fail "the source package lwip could not be fetched"
version=$(sed -n 's/^Version: //p' "$source"/lwip_*.dsc)
# apt has verified the archive's signature; the uploader's key is not available here.
dpkg-source --no-check --extract "$source"/lwip_*.dsc "$source/lwip" >"$source/log"

echo "setup: building lwIP $version" >&2
lwip=$source/lwip
includes="-I lwip-sack -isystem $lwip/port/include -isystem $lwip/src/include"
mkdir "$source/objects"
for file in "$lwip"/src/core/*.c "$lwip"/src/core/ipv[46]/*.c "$lwip"/src/api/*.c "$lwip"/src/netif/ethernet.c \
    "$lwip"/port/sys_arch.c; do
    # shellcheck disable=SC2086 # several options
    gcc -O2 -w $includes -c "$file" -o "$source/objects/$(basename "$file" .c).o"
done
# shellcheck disable=SC2086
gcc -O2 -Wall -Wextra -I common $includes lwip/receiver.c common/receiver.c "$source"/objects/*.o \
    -lpthread -o "$destination/start"
rm -rf "$source"
finish "lwIP ${version%%+*} (Debian source package lwip $version), SACK and timestamps"
