#!/bin/sh
# Makes .venv unless it is there and works, and installs into it one set of locked packages and kaigen itself.
#
#   sh tools/venv.sh base|dev|go|lock|chat|bench-chat
#
# base is what kaigen runs on; dev is base and what tests, linters and generators take; go is a Go, unless the
# one on the PATH will do; lock is what `make lock` runs; chat is what the chat server and its tests take, in a .venv
# of its own, since PyTorch brings gigabytes; bench-chat is what it is measured beside. PYTHON names the interpreter; without it the first usual name that is new enough is taken.
# A stamp .venv/.NAME (for chat: .done and .bench) says when a set was last installed: the Makefile compares it with the lock files.
set -eu
cd "$(dirname "$0")/.."

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11
    fi
    for name in "$@"; do
        if "$name" -c "$new_enough" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    echo "kaigen needs Python 3.11 or newer, and found none as: $*. Install one, or say make PYTHON=/path/to/python3.11" >&2
    exit 1
}

venv=.venv
locks=requirements

install() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps "$@"
}

# Lock files hold every package that is needed, so pip has nothing to resolve and --no-deps leaves nothing out.
case ${1:-} in
base) files='base build' about='what kaigen runs on (5 MB)' ;;
dev) files='dev build helm' about='what the tests take (260 MB, once)' ;;
go)
    case $(PATH="$PWD/.venv/bin:$PATH" && cd tests/cluster/tools/etcd && go env GOVERSION 2>/dev/null) in
    go1.2[6-9]* | go1.[3-9][0-9]*) exit 0 ;;
    esac
    files='go' about='Go, to build the programs of the cluster (70 MB, once)'
    ;;
lock) files='lock' about='what resolves the lock files' ;;
chat)
    files='requirements requirements-test' about='PyTorch and what else the chat server takes (5 GB, once)'
    venv=runtimes/chat/.venv locks=runtimes/chat
    ;;
bench-chat)
    files='requirements-bench' about='what the chat server is measured beside'
    venv=runtimes/chat/.venv locks=runtimes/chat
    ;;
*)
    echo "usage: sh tools/venv.sh base|dev|go|lock|chat|bench-chat" >&2
    exit 2
    ;;
esac

if ! "$venv/bin/python" -c "import pip; $new_enough" >/dev/null 2>&1; then
    python=$(find_python)
    echo "Making $venv with $("$python" --version)" >&2
    "$python" -m venv --clear "$venv"
fi

echo "Installing $about" >&2
set -- "$1"
for file in $files; do
    set -- "$@" -r "$locks/$file.txt"
done
name=$1
shift
install --require-hashes "$@"
case $name in
base) install --no-build-isolation --editable . && touch .venv/.base ;;
dev) install --no-build-isolation --editable . && touch .venv/.base .venv/.dev ;;
go) ;;
lock) touch .venv/.lock ;;
chat) touch "$venv/.done" ;;
bench-chat) touch "$venv/.bench" ;;
esac
