#!/bin/sh
# Makes an archive of the programs that runs on any Linux of this architecture: statically linked, with musl.
#   packaging/dist.sh OUT
# Installs musl's compiler and Rust target if they are missing, and builds libpcap from Debian's source package.
set -eu

out=$1
machine=$(uname -m)
target=$machine-unknown-linux-musl
built=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -d "$(rustc --print target-libdir --target "$target")" ] || rustup target add "$target"

# musl has neither the kernel's headers nor libpcap.
pcap=$out/libpcap-musl
flags="-idirafter /usr/include -idirafter /usr/include/$(gcc -print-multiarch)"
if [ ! -e "$pcap/libpcap.a" ]; then
    rm -rf "$pcap"
    mkdir -p "$pcap/lists/partial" "$pcap/sources"
    cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
        sed 's/^Types: deb$/Types: deb-src/; /^deb /d' >"$pcap/sources/debian.sources"
    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list 2>/dev/null >"$pcap/sources/debian.list" || true
    apt="apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$pcap/sources -o Dir::State::lists=$pcap/lists"
    (
        cd "$pcap"
        $apt update
        $apt source --download-only libpcap
        dpkg-source --no-check --extract libpcap_*.dsc source
        cd source
        CC=musl-gcc CFLAGS="-O2 $flags" ./configure --quiet --with-pcap=linux --without-libnl --disable-dbus \
            --disable-rdma --disable-usb --disable-bluetooth --disable-shared
        make --silent
        cp libpcap.a ..
        cp VERSION ..
    )
fi
env "CFLAGS_$(echo "$target" | tr - _)=$flags" LIBPCAP_LIBDIR="$pcap" LIBPCAP_VER="$(cat "$pcap/VERSION")" \
    cargo build --release --locked --target "$target" -p airtcp-cli -p airtcp-serve -p airlink

name=airtcp-$version-$machine-linux
rm -rf "${out:?}/$name"
sh packaging/install.sh "$built/$target/release" "$out/$name"
strip "$out/$name"/bin/*
install -m 644 -t "$out/$name" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE packaging/airtcp-serve.service
tar --create --zstd --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}" --directory "$out" --file "$out/$name.tar.zst" "$name"
rm -rf "${out:?}/$name"
(cd "$out" && sha256sum "$name.tar.zst" >"$name.tar.zst.sha256" && cat "$name.tar.zst.sha256")
