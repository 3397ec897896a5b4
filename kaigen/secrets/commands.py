"""A shell script that makes Secrets with kubectl and contains none of their values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote

from kaigen.core.text import printable
from kaigen.kubernetes.secrets import DOCKER_CONFIG, DOCKER_CONFIG_KEY, TLS, TLS_KEYS
from kaigen.secrets.expected import ExpectedSecret

_HEAD = """\
#!/bin/sh
# Creates the Secrets that the apps read and nothing in the repository creates. Run it in a terminal:
#   kaigen secrets -o kubectl > make-secrets.sh && sh make-secrets.sh
# It prompts for each value without showing it and pipes it to kubectl, so no value appears on a command line, in a file
# or in the history of the shell.
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
# Names that kubectl accepts in `--from-env-file`.
_ENV_NAME = re.compile(r"(?!\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")


def script(secrets: Iterable[ExpectedSecret]) -> str:
    """Return a script for any POSIX shell that creates some Secrets; empty for none."""
    parts = ["\n".join((*comment(secret), *_make(secret))) + "\n" for secret in secrets]
    if not parts:
        return ""
    body = "\n".join(parts)
    return _HEAD + (_ASK if re.search(r"\bask ", body) else "") + "\n" + body


def comment(secret: ExpectedSecret) -> list[str]:
    """Return comment lines that describe the uses of a Secret."""
    by_app: dict[str, list[str]] = {}
    for use in secret.uses:
        by_app.setdefault(use.app, []).append(use.purpose)
    return [
        printable(f"# {secret.namespace}/{secret.name}" + (", optional" if secret.optional else "") + ":"),
        *(printable(f"#   {app}: {', '.join(dict.fromkeys(purposes))}") for app, purposes in by_app.items()),
    ]


def _make(secret: ExpectedSecret) -> list[str]:
    where = f"{quote(secret.name)} --namespace {quote(secret.namespace)}"
    keys = secret.keys
    if secret.type == DOCKER_CONFIG and keys == (DOCKER_CONFIG_KEY,) and not secret.whole:
        return [
            "# From `docker login REGISTRY`. If Docker uses a credential store, this file contains no password.",
            f"kubectl create secret docker-registry {where} "
            f'--from-file={DOCKER_CONFIG_KEY}="$HOME/.docker/config.json"',
        ]
    if secret.type == TLS and keys == TLS_KEYS and not secret.whole:
        return [
            "# Provide two files: the certificate with its chain, and its key.",
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
            f"# Provide {'this file' if len(keys) == 1 else 'these files'} outside of the repository.",
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
    return ["# Provide these files outside of the repository.", f"{create} {files}"]


def _whole(secret: ExpectedSecret, create: str) -> list[str]:
    """Return the commands for a Secret whose keys are not all known."""
    named = f", including {', '.join(map(printable, secret.keys))}" if secret.keys else ""
    if secret.as_files:
        return [
            f"# Provide a folder outside of the repository, with a file for each key{named}.",
            f"{create} --from-file={quote(secret.name)}",
        ]
    return [
        f"# Provide a file outside of the repository, with a line NAME=VALUE for each key{named}.",
        f"{create} --from-env-file={quote(f'{secret.name}.env')}",
    ]
