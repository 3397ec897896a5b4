#!/bin/sh
# Create .venv if it is missing or broken, and install one set of locked packages and kaigen itself into it.
#
#   sh tools/venv.sh base|dev|docs|go|lock|mutants|chat|bench-chat
#
# base        kaigen's own dependencies
# dev         base, and the packages of tests, linters and generators
# docs        MkDocs, which builds the documentation site
# go          a Go compiler, unless the one on the PATH is new enough
# lock        the resolver that `make lock` runs
# mutants     the mutation tester that `make mutants` runs
# chat        the chat server, the classifier, the trainer and their tests, in a .venv of their own, because PyTorch takes gigabytes
# bench-chat  the peers the chat server is compared with
#
# PYTHON names the interpreter; by default it is the first common name that is new enough. A stamp .venv/.NAME (for
# chat: .done and .bench) records when a set was last installed: the Makefile compares it with the lock files.
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
    echo "kaigen needs Python 3.11 or newer; tried: $*. Install it, or run make PYTHON=/path/to/python3.11" >&2
    exit 1
}

venv=.venv
locks=requirements

install() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps "$@"
}

# Lock files list every package, so pip has nothing to resolve and --no-deps leaves nothing out.
case ${1:-} in
base) files='base build' about='the dependencies of kaigen (5 MB)' ;;
dev) files='dev build helm' about='the dependencies of the tests (300 MB, once)' ;;
docs) files='docs' about='MkDocs, for the documentation site (15 MB, once)' ;;
go)
    case $(PATH="$PWD/.venv/bin:$PATH" && cd tests/cluster/tools/etcd && go env GOVERSION 2>/dev/null) in
    go1.2[6-9]* | go1.[3-9][0-9]*) exit 0 ;;
    esac
    files='go' about='Go, to build the programs of the cluster (70 MB, once)'
    ;;
lock) files='lock' about='the resolver of the lock files' ;;
mutants) files='mutants' about='the mutation tester' ;;
chat)
    files='chat/requirements chat/requirements-test classify/requirements classify/requirements-test train/requirements'
    about='PyTorch and the other dependencies of the chat server, the classifier and the trainer (5 GB, once)'
    venv=runtimes/chat/.venv locks=runtimes
    ;;
bench-chat)
    files='requirements-bench' about='the peers of the chat server'
    venv=runtimes/chat/.venv locks=runtimes/chat
    ;;
*)
    echo "usage: sh tools/venv.sh base|dev|docs|go|lock|mutants|chat|bench-chat" >&2
    exit 2
    ;;
esac

if ! "$venv/bin/python" -c "import pip; $new_enough" >/dev/null 2>&1; then
    python=$(find_python)
    echo "Creating $venv with $("$python" --version)" >&2
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
docs) touch .venv/.docs ;;
go) ;;
lock) touch .venv/.lock ;;
mutants) touch .venv/.mutants ;;
chat) touch "$venv/.done" ;;
bench-chat) touch "$venv/.bench" ;;
esac
