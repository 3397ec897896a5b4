"""The Secrets that apps read, as data, as ExternalSecrets, and as a script that makes them and contains no values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from shlex import quote
from typing import Any

from kaigen.core.text import printable
from kaigen.kubernetes.secrets import DOCKER_CONFIG, DOCKER_CONFIG_KEY, TLS, TLS_KEYS
from kaigen.secrets.expected import ExpectedSecret
from kaigen.secrets.external import External, skeleton
from kaigen.secrets.facts import Use
from kaigen.yaml.dump import dump

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
    parts = ["\n".join((*_comment(secret), *_make(secret))) + "\n" for secret in secrets]
    if not parts:
        return ""
    body = "\n".join(parts)
    return _HEAD + (_ASK if re.search(r"\bask ", body) else "") + "\n" + body


def _comment(secret: ExpectedSecret) -> list[str]:
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


def secret_data(secret: ExpectedSecret) -> dict[str, Any]:
    """Return a Secret as plain data."""
    maker = secret.maker
    return {
        "namespace": secret.namespace,
        "name": secret.name,
        "type": secret.type,
        "keys": list(secret.keys),
        "allKeys": secret.whole,
        "optional": secret.optional,
        "madeBy": (
            {"kind": maker.source, "app": maker.app, **({"place": str(maker.mark)} if maker.mark else {})}
            if maker
            else None
        ),
        "uses": [_use(use) for use in secret.uses],
    }


def _use(use: Use) -> dict[str, Any]:
    return {
        "app": use.app,
        "object": use.object,
        "keys": list(use.keys),
        "purpose": use.purpose,
        "optional": use.optional,
        **({"place": str(use.mark)} if use.mark else {}),
        **({"field": use.field} if use.field else {}),
    }


def render_json(secrets: Iterable[ExpectedSecret]) -> str:
    """Return the Secrets as a JSON list."""
    return json.dumps([secret_data(secret) for secret in secrets], indent=2, ensure_ascii=False) + "\n"


def render_yaml(secrets: Iterable[ExpectedSecret]) -> str:
    """Return the Secrets as a YAML list."""
    return dump([secret_data(secret) for secret in secrets])


def render_external(secrets: Iterable[ExpectedSecret], external: External) -> str:
    """Return an ExternalSecret for each Secret as one YAML stream; a comment marks those with unknown keys."""
    parts = []
    for secret in secrets:
        lines = _comment(secret)
        if secret.whole and external.by_key:
            lines.append("# kaigen does not know its keys: add an entry to `spec.data` for each.")
        parts.append("---\n" + "".join(f"{line}\n" for line in lines) + dump(skeleton(secret, external)))
    return "".join(parts)
