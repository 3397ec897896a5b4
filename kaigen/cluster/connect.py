"""The way to a cluster for commands, which run without the packages of the extra `kaigen[cluster]`, too."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from kaigen.diagnostics.errors import SystemFailure
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

with lazy_imports():
    from kaigen.cluster import client

_PACKAGES = ("kubernetes", "pathspec")


def require_extra() -> None:
    """Check that the packages are installed.

    Raises:
        SystemFailure: one is missing; the message is the command that installs it.
    """
    if any(find_spec(name) is None for name in _PACKAGES):
        raise SystemFailure("working on a cluster needs more packages: pip install 'kaigen[cluster]'")


def connect(context: str = "", kubeconfig: str = "") -> Cluster:
    """Return the cluster of a context; nothing is sent yet.

    Args:
        context: its name; empty for the current one.
        kubeconfig: path of a kubeconfig; empty for kubectl's own choice, or the account of the pod.

    Raises:
        SystemFailure: the extra is not installed, or there is no such configuration.
    """
    require_extra()
    return client.Cluster(kubeconfig, context)
