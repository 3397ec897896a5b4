"""Credentials for a registry, from where `docker login`, `helm registry login` and their helpers keep them.

The format is that of Docker's `config.json`; helpers speak the protocol of docker-credential-helpers.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaigen.diagnostics.diagnostic import SystemFailure

DOCKER_HUB = "https://index.docker.io/v1/"
_HELPER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HELPER_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who pushes. What is secret is not in its `repr`."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)


def find_credentials(host: str) -> Credentials | None:
    """The credentials for a registry; None when nobody logged in there.

    Looks into `$DOCKER_CONFIG/config.json` (`~/.docker/config.json`), then into Helm's
    `$HELM_REGISTRY_CONFIG` (`~/.config/helm/registry/config.json`).

    Raises:
        SystemFailure: a file or a helper is damaged.
    """
    for path in _files():
        found = _from_file(path, host)
        if found is not None:
            return found
    return None


def _files() -> list[Path]:
    home = Path(os.path.expanduser("~"))
    docker = Path(os.environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    config = Path(
        os.environ.get("HELM_CONFIG_HOME")
        or Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "helm")
    )
    helm = Path(os.environ.get("HELM_REGISTRY_CONFIG") or config / "registry" / "config.json")
    return [docker, helm]


def _from_file(path: Path, host: str) -> Credentials | None:
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no JSON"
        raise SystemFailure(f"cannot read credentials from {path}: {why}") from None
    if not isinstance(data, dict):
        raise SystemFailure(f"cannot read credentials from {path}: it holds no mapping")
    names = [host, f"https://{host}", f"http://{host}"]
    if host in ("docker.io", "registry-1.docker.io", "index.docker.io"):
        names.insert(0, DOCKER_HUB)
    helpers = _mapping(data.get("credHelpers"))
    for name in names:
        if name in helpers:
            return _ask(str(helpers[name]), name)
    store = data.get("credsStore")
    auths = _mapping(data.get("auths"))
    for name in names:
        entry = _mapping(auths.get(name))
        if entry.get("auth") or entry.get("identitytoken"):
            return _entry(entry, path)
    if isinstance(store, str) and store:
        for name in names:
            found = _ask(store, name)
            if found is not None:
                return found
    return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entry(entry: dict[str, Any], path: Path) -> Credentials:
    import base64
    import binascii

    user = password = ""
    if entry.get("auth"):
        try:
            text = base64.b64decode(str(entry["auth"]), validate=True).decode()
        except (binascii.Error, ValueError):
            raise SystemFailure(
                f"cannot read credentials from {path}: damaged `auth`", hint="log in again"
            ) from None
        user, _, password = text.rstrip("\0").partition(":")
    return Credentials(user, password, str(entry.get("identitytoken") or ""))


def _ask(helper: str, name: str) -> Credentials | None:
    """What `docker-credential-HELPER get` knows; None when it knows nothing of this registry."""
    import subprocess

    if not _HELPER_NAME.fullmatch(helper):
        raise SystemFailure(
            f"`{helper}` cannot be a credential helper", hint="see `credHelpers` in docker's config.json"
        )
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"], input=name.encode(), capture_output=True, check=False, timeout=_HELPER_WAIT_S
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
    except FileNotFoundError:
        raise SystemFailure(
            f"{program} is not on the PATH", hint="docker's config.json asks for it"
        ) from None
    except subprocess.TimeoutExpired:
        raise SystemFailure(f"{program} does not answer") from None
    except ValueError:
        raise SystemFailure(f"{program} gives no JSON") from None
    user, secret = str(_mapping(answer).get("Username") or ""), str(_mapping(answer).get("Secret") or "")
    if not secret:
        return None
    # The protocol's name for a token that is exchanged for others.
    return Credentials(identity_token=secret) if user == "<token>" else Credentials(user, secret)
