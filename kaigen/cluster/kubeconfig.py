"""The address of a cluster and the credentials of its user, as kubectl reads them.

Where the package `kubernetes` does something else than kubectl, it would be another cluster or another user: of
several files it takes the last `current-context` and not the first, a credential plugin that fails makes the user
anonymous, and it ignores impersonation. The first is corrected here, the others are errors.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import config as kube_config
from kubernetes.client import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigMerger
from msgspec import Struct
from yaml import YAMLError

from kaigen.diagnostics.errors import SystemFailure

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What the package raises for a file that is YAML and not a kubeconfig, or has credentials that are not base64."""
_HINT = "set KUBECONFIG, or --kubeconfig and --context"


class Login(Struct, frozen=True):
    """How to reach a cluster.

    Attributes:
        configuration: address and credentials, as the package has them.
        namespace: the namespace of the context.
    """

    configuration: Configuration
    namespace: str


def log_in(kubeconfig: str = "", context: str = "") -> Login:
    """Return how to reach a cluster; only credential plugins run, nothing is sent to it.

    Args:
        kubeconfig: path of a kubeconfig; empty for kubectl's own choice, or the account of the pod.
        context: its name; empty for the current one.

    Raises:
        SystemFailure: there is no such configuration, or its credentials cannot be had.
    """
    configuration = Configuration()
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    in_cluster = not path and not context and not Path("~/.kube/config").expanduser().exists()
    try:
        if in_cluster and (_SERVICE_ACCOUNT / "token").exists():
            kube_config.load_incluster_config(client_configuration=configuration)
            own = (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
            return Login(configuration, own or "default")
        path = path or KUBE_CONFIG_DEFAULT_LOCATION
        merger = KubeConfigMerger(path)
        name = context or _current_context(merger)
        with _messages() as messages:
            kube_config.load_kube_config(path, name or None, client_configuration=configuration)
    except (ConfigException, OSError, YAMLError, *_MALFORMED) as error:
        raise SystemFailure(f"no usable kubeconfig: {error}", hint=_HINT) from None
    chosen = _named(merger, "contexts", name).get("context") or {}
    user = _named(merger, "users", str(chosen.get("user", ""))).get("user") or {}
    _check_user(str(chosen.get("user")), user, configuration, messages)
    return Login(configuration, str(chosen.get("namespace") or "default"))


def _current_context(merger: KubeConfigMerger) -> str:
    """Return the current context of several files: of the first one that has any."""
    found = (content.get("current-context") for content in merger.config_files.values())
    return next((str(name) for name in found if name), "")


def _named(merger: KubeConfigMerger, part: str, name: str) -> dict[str, Any]:
    """Return an entry of a list of the merged files; empty if there is none."""
    for content in merger.config_files.values():
        for entry in content.get(part) or []:
            if entry["name"] == name:
                return dict(entry)
    return {}


def _check_user(name: str, user: dict[str, Any], configuration: Configuration, messages: list[str]) -> None:
    """Refuse a user whom the package would let do more, or less, than kubectl does."""
    if any(user.get(key) for key in _IMPERSONATION):
        hint = "use kubectl, or a context whose user has no `as`, `as-uid`, `as-groups` or `as-user-extra`"
        raise SystemFailure(f"user {name} of the kubeconfig impersonates another, which kaigen cannot do", hint=hint)
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        why = "; ".join(messages) or "no token and no certificate"
        hint = f"run the command of user {name} in the kubeconfig to see what it says"
        raise SystemFailure(f"the credential plugin of user {name} failed: {why}", hint=hint)


@contextmanager
def _messages() -> Iterator[list[str]]:
    """Yield what is logged during the block; the package logs errors of credential plugins, and goes on."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler, root = Collector(), logging.getLogger()
    root.addHandler(handler)
    try:
        yield found
    finally:
        root.removeHandler(handler)
