# Functions for the receivers' setup scripts. Each script sets `destination` and then sources this file.
# shellcheck shell=sh disable=SC2154

fail() {
    echo "setup: $*" >&2
    exit 1
}

# packages PACKAGE...: installs the packages that are missing, and prints their names.
packages() {
    missing=''
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
    done
    [ -z "$missing" ] && return
    command -v apt-get >/dev/null 2>&1 ||
        fail "missing:$missing (Debian package names; this system has no apt-get, so install the equivalents)"
    sudo=''
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            fail "run as root, install sudo, or ask an administrator for: apt-get install$missing"
        sudo=sudo
    fi
    echo "setup: installing$missing" >&2
    $sudo apt-get -o DPkg::Lock::Timeout=120 update -qq >&2 || true
    # shellcheck disable=SC2086 # a list of package names
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install \
        -y -qq --no-install-recommends $missing >&2 ||
        fail "apt-get could not install$missing"
}

# lists: updates apt's package lists if there are none, as on a new machine.
lists() {
    [ -z "$(apt-get indextargets 'Label: Debian')" ] || return 0
    [ "$(id -u)" != 0 ] || apt-get update -qq >&2
}

# version PACKAGE: prints the installed version.
version() {
    dpkg-query -W -f '${Version}' "$1"
}

# finished INPUT...: succeeds if the last build used the same files and words. Otherwise removes its result.
finished() {
    inputs=$(for input in "$0" "$@"; do
        if [ -f "$input" ]; then cat "$input"; else echo "$input"; fi
    done | sha256sum)
    [ "$inputs" = "$(cat "$destination/inputs" 2>/dev/null)" ] && return
    rm -rf "$destination/inputs" "$destination/start" "$destination/version"
    return 1
}

# finish LINE: marks the build as complete and stores its description.
finish() {
    echo "$1" >"$destination/version"
    echo "$inputs" >"$destination/inputs"
}
