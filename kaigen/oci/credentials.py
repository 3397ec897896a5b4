"""Registry credentials as `docker login`, `helm registry login`, `podman login` and their helpers store them.

The format is Docker's `config.json`; helpers use the protocol of docker-credential-helpers. Podman's files may also
name a namespace of a registry (containers-auth.json(5)), which is not read.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure

DOCKER_HUB = "https://index.docker.io/v1/"
_HELPER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HELPER_WAIT_S = 60


class Credentials(Struct, frozen=True):
    """The user who pushes. `repr` shows no field."""

    user: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        return "Credentials()"


def find_credentials(host: str) -> Credentials | None:
    """Return the credentials for a registry; None when no login is stored.

    Reads `$DOCKER_CONFIG/config.json` (`~/.docker/config.json`), then Helm's `$HELM_REGISTRY_CONFIG`
    (`~/.config/helm/registry/config.json`), then Podman's `$REGISTRY_AUTH_FILE`
    (`$XDG_RUNTIME_DIR/containers/auth.json` and `~/.config/containers/auth.json`).

    Raises:
        SystemFailure: a file or a helper is damaged.
    """
    for path in _files():
        credentials = _from_file(path, host)
        if credentials is not None:
            return credentials
    return None


def listed_registries() -> set[str]:
    """Return the names in `auths` and `credHelpers` of the files.

    Raises:
        SystemFailure: a file is damaged.
    """
    read = [_read(path) or {} for path in _files()]
    return {name for data in read for field in ("auths", "credHelpers") for name in _mapping(data.get(field))}


def _files() -> list[Path]:
    home = Path(os.path.expanduser("~"))
    docker = Path(os.environ.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    config = Path(os.environ.get("HELM_CONFIG_HOME") or settings / "helm")
    helm = Path(os.environ.get("HELM_REGISTRY_CONFIG") or config / "registry" / "config.json")
    if os.environ.get("REGISTRY_AUTH_FILE"):
        return [docker, helm, Path(os.environ["REGISTRY_AUTH_FILE"])]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    podman = [Path(folder, "containers", "auth.json") for folder in (runtime, settings) if folder]
    return [docker, helm, *podman]


def _read(path: Path) -> dict[str, Any] | None:
    """Return the content of a file; None if it does not exist."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not valid JSON"
        raise SystemFailure(f"cannot read credentials from {path}: {reason}") from None
    if not isinstance(data, dict):
        raise SystemFailure(f"cannot read credentials from {path}: not a JSON object")
    return data


def _from_file(path: Path, host: str) -> Credentials | None:
    data = _read(path)
    if data is None:
        return None
    names = [host, f"https://{host}", f"http://{host}"]
    if host in ("docker.io", "registry-1.docker.io", "index.docker.io"):
        names.insert(0, DOCKER_HUB)
    helpers = _mapping(data.get("credHelpers"))
    for name in names:
        if name in helpers:
            return _call_helper(str(helpers[name]), name)
    store = data.get("credsStore")
    auths = _mapping(data.get("auths"))
    for name in names:
        entry = _mapping(auths.get(name))
        if entry.get("auth") or entry.get("identitytoken"):
            return _entry(entry, path)
    if isinstance(store, str) and store:
        for name in names:
            credentials = _call_helper(store, name)
            if credentials is not None:
                return credentials
    return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entry(entry: dict[str, Any], path: Path) -> Credentials:
    user = password = ""
    if entry.get("auth"):
        try:
            text = base64.b64decode(str(entry["auth"]), validate=True).decode()
        except (binascii.Error, ValueError):
            raise SystemFailure(f"cannot read credentials from {path}: invalid `auth`", hint="log in again") from None
        user, _, password = text.rstrip("\0").partition(":")
    return Credentials(user, password, str(entry.get("identitytoken") or ""))


def _call_helper(helper: str, name: str) -> Credentials | None:
    """Return the answer of `docker-credential-HELPER get`; None when it has no credentials for this registry."""
    if not _HELPER_NAME.fullmatch(helper):
        raise SystemFailure(
            f"`{helper}` is not a valid name of a credential helper", hint="fix `credHelpers` in Docker's config.json"
        )
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"], input=name.encode(), capture_output=True, check=False, timeout=_HELPER_WAIT_S
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
    except FileNotFoundError:
        raise SystemFailure(
            f"{program} is not on the PATH", hint="install it, or remove it from Docker's config.json"
        ) from None
    except subprocess.TimeoutExpired:
        raise SystemFailure(f"{program} did not answer within {_HELPER_WAIT_S} s") from None
    except ValueError:
        raise SystemFailure(f"{program} did not print JSON") from None
    user, secret = str(_mapping(answer).get("Username") or ""), str(_mapping(answer).get("Secret") or "")
    if not secret:
        return None
    # The protocol's name for a token that is exchanged for others.
    return Credentials(identity_token=secret) if user == "<token>" else Credentials(user, secret)
