#!/bin/sh
# Install a program and its locked packages. Runs in the builds of kaigen's images.
#
#   sh install.sh packages LOCK...   create /opt/kaigen, and install the packages of lock files into it
#   sh install.sh program            build the program of the working folder, and install it into /opt/kaigen
#   sh install.sh torch LOCK         install PyTorch into /opt/torch, where /opt/kaigen of other images finds it
#
# The build may have three secrets. They are mounted, so no layer has them:
#   pip.conf   pip's configuration, such as the address of a package index with its login (mounted as /etc/pip.conf)
#   ca.crt     certificates of further authorities, such as that of a TLS proxy
#   torch.txt  lock of another build of PyTorch, such as one for CPUs, in place of LOCK
# Proxies are the build arguments HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which every builder knows.
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
target=/opt/kaigen
torch=/opt/torch

if [ -s /run/secrets/ca.crt ]; then
    trusted=$(mktemp)
    trap 'rm -f "$trusted"' EXIT
    system=/etc/ssl/certs/ca-certificates.crt
    if [ -f "$system" ]; then cat "$system" > "$trusted"; fi
    cat /run/secrets/ca.crt >> "$trusted"
    export PIP_CERT="$trusted"
fi

install_into() {
    into=$1
    shift
    /opt/build/bin/pip --python "$into/bin/python" install "$@"
}

locked() {
    into=$1
    shift
    # All locks in one run, so that none replaces a package of another.
    for lock in "$@"; do set -- "$@" -r "$(without_torch "$lock")"; shift; done
    if [ $# -gt 0 ]; then install_into "$into" --require-hashes --only-binary :all: "$@"; fi
}

# Install a lock of which the packages of SOURCES have no wheels: these last, built with the setuptools of the others.
# Both are parts of one complete lock, so nothing is resolved again.
locked_with_sources() {
    into=$1 wheels=$(mktemp --suffix=.txt) sources=$(mktemp --suffix=.txt)
    awk -v names="$SOURCES" -v wheels="$wheels" -v sources="$sources" \
        'BEGIN { count = split(names, list); for (i = 1; i <= count; i++) known[list[i]] }
        /^[a-z0-9]/ { split($1, parts, "=="); to = parts[1] in known ? sources : wheels }
        to { print > to }' "$2"
    install_into "$into" --require-hashes --no-deps --only-binary :all: -r "$wheels"
    install_into "$into" --require-hashes --no-deps --no-build-isolation --no-binary :all: -r "$sources"
}

# Print the name of a lock without the packages of PyTorch's image, if there is one. Those that it lacks are not for its
# build of PyTorch, such as CUDA's.
without_torch() {
    if [ ! -f "$torch/packages.txt" ]; then echo "$1"; return; fi
    rest=$(mktemp --suffix=.txt)
    awk 'NR == FNR { known[$1]; next } /^[a-z0-9]/ { split($1, parts, "=="); skip = parts[1] in known } !skip' \
        "$torch/packages.txt" "$1" > "$rest"
    echo "$rest"
}

site_packages() {
    "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

case $1 in
packages)
    shift
    python -m venv /opt/build
    # VENV_OPTIONS: more options for the environment of the program.
    # shellcheck disable=SC2086
    python -m venv --without-pip ${VENV_OPTIONS:-} "$target"
    if [ -d "$torch" ]; then site_packages "$torch" > "$(site_packages "$target")/torch.pth"; fi
    if [ -f requirements-build.txt ]; then /opt/build/bin/pip install --require-hashes -r requirements-build.txt; fi
    # SOURCES: names of packages of the only lock that are built here.
    if [ -n "${SOURCES:-}" ]; then locked_with_sources "$target" "$1"; else locked "$target" "$@"; fi
    ;;
program)
    /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .
    install_into "$target" --no-deps --no-index /wheels/*.whl
    ;;
torch)
    python -m venv /opt/build
    python -m venv --without-pip "$torch"
    lock=$2
    if [ -s /run/secrets/torch.txt ]; then lock=/run/secrets/torch.txt; fi
    locked "$torch" "$lock"
    cat "$2" "$lock" | sed -n 's/^\([a-z0-9][a-z0-9._-]*\)==.*/\1/p' | sort -u > "$torch/packages.txt"
    ;;
*)
    echo "usage: sh install.sh packages LOCK... | program | torch LOCK" >&2
    exit 2
    ;;
esac
