"""A shell script that makes Secrets with kubectl, in which no value of one ever stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote

from kaigen.kubernetes.secret_types import DOCKER_CONFIG, DOCKER_CONFIG_KEY, TLS, TLS_KEYS
from kaigen.secrets.expected import ExpectedSecret

_HEAD = """\
#!/bin/sh
# Makes the Secrets that the apps expect and nothing in the repository makes. In a terminal, as a script:
#   kaigen secrets -o kubectl > make-secrets.sh && sh make-secrets.sh
# It asks for each value, which is not shown, and gives it to kubectl through a pipe: so it is in no command line, which
# others on the machine could read, in no file and not in the shell's history.
"""
_ASK = r"""
ask() (
  trap 'stty echo </dev/tty' EXIT
  trap 'exit 130' INT TERM
  printf '%s, %s: ' "$1" "$2" >/dev/tty
  stty -echo </dev/tty
  IFS= read -r value </dev/tty
  echo >/dev/tty
  printf '%s' "$value"
)
"""
# What kubectl takes for a name in `--from-env-file`.
_ENV_NAME = re.compile(r"(?!\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")


def script(secrets: Iterable[ExpectedSecret]) -> str:
    """The script for some Secrets, for any POSIX shell; empty for none."""
    parts = ["\n".join((*comment(secret), *_make(secret))) + "\n" for secret in secrets]
    if not parts:
        return ""
    body = "\n".join(parts)
    return _HEAD + (_ASK if re.search(r"\bask ", body) else "") + "\n" + body


def comment(secret: ExpectedSecret) -> list[str]:
    """Lines that say what a Secret is for."""
    by_app: dict[str, list[str]] = {}
    for use in secret.uses:
        by_app.setdefault(use.app, []).append(use.purpose)
    return [
        _line(f"# {secret.namespace}/{secret.name}" + (", optional" if secret.optional else "") + ":"),
        *(_line(f"#   {app}: {', '.join(dict.fromkeys(purposes))}") for app, purposes in by_app.items()),
    ]


def _line(text: str) -> str:
    """Text that stays on its line and shows nothing that a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _make(secret: ExpectedSecret) -> list[str]:
    where = f"{quote(secret.name)} --namespace {quote(secret.namespace)}"
    keys = secret.keys
    if secret.type == DOCKER_CONFIG and keys == (DOCKER_CONFIG_KEY,) and not secret.whole:
        return [
            "# From `docker login REGISTRY`; where Docker keeps passwords in a credential store, this file has none.",
            f"kubectl create secret docker-registry {where} "
            f'--from-file={DOCKER_CONFIG_KEY}="$HOME/.docker/config.json"',
        ]
    if secret.type == TLS and keys == TLS_KEYS and not secret.whole:
        return [
            "# Two files of yours: the certificate with its chain, and its key.",
            f"kubectl create secret tls {where} --cert=tls.crt --key=tls.key",
        ]
    create = f"kubectl create secret generic {where}" + (
        f" --type={quote(secret.type)}" if secret.type != "Opaque" else ""
    )
    if secret.whole:
        return _whole(secret, create)
    if secret.as_files:
        files = " ".join(f"--from-file={quote(f'{key}={key}')}" for key in keys)
        return [
            f"# From {'a file' if len(keys) == 1 else 'files'} of yours, outside of the repository.",
            f"{create} {files}",
        ]
    if len(keys) == 1:
        (key,) = keys
        return [f"ask {quote(secret.name)} {quote(key)} | {create} --from-file={quote(f'{key}=/dev/stdin')}"]
    if all(_ENV_NAME.fullmatch(key) for key in keys):
        name = quote(secret.name)
        lines = [f"  printf '%s=' {quote(key)}; ask {name} {quote(key)}; echo" for key in keys]
        return ["{", *lines, f"}} | {create} --from-env-file=/dev/stdin"]
    files = " ".join(f"--from-file={quote(f'{key}={key}')}" for key in keys)
    return ["# From files of yours, outside of the repository.", f"{create} {files}"]


def _whole(secret: ExpectedSecret, create: str) -> list[str]:
    """For a Secret that is read with all its keys, whichever they are."""
    named = f", {', '.join(map(_line, secret.keys))} among them" if secret.keys else ""
    if secret.as_files:
        return [
            f"# From a folder of yours, outside of the repository: a file for each key{named}.",
            f"{create} --from-file={quote(secret.name)}",
        ]
    return [
        f"# From a file of yours, outside of the repository: a line NAME=VALUE for each key{named}.",
        f"{create} --from-env-file={quote(f'{secret.name}.env')}",
    ]
