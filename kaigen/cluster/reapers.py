"""The kaigen-reapers of a cluster, and the namespaces that each works in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.cluster.errors import Forbidden
from kaigen.kubernetes.manifest import Object, entries, identity_of, mapping

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_LABELS = "app.kubernetes.io/name=kaigen-reaper"
_KINDS = ("apps/v1/Deployment", "batch/v1/CronJob")
_NAMESPACE = "--namespace="


class Reaper(Struct, frozen=True):
    """A kaigen-reaper.

    Attributes:
        place: its own namespace and name, `NAMESPACE/NAME`.
        namespaces: the namespaces that it works in; None for all.
    """

    place: str
    namespaces: tuple[str, ...] | None

    def works_in(self, namespace: str) -> bool:
        """Return whether it works in a namespace."""
        return self.namespaces is None or namespace in self.namespaces


def reapers(cluster: Cluster, namespaces: Iterable[str]) -> list[Reaper] | None:
    """Return the reapers of a cluster; None if the user may not look for them.

    Args:
        cluster: the cluster.
        namespaces: where they are looked for if the user may not read all namespaces.
    """
    found: list[Reaper] = []
    readable = False
    for where in ("", *namespaces):
        try:
            found += [_reaper(item) for kind in _KINDS for item in cluster.objects(kind, where, _LABELS)]
        except Forbidden:
            continue
        readable = True
        if not where:
            break
    return found if readable else None


def _reaper(obj: Object) -> Reaper:
    spec = mapping(obj.get("spec"))
    spec = mapping(mapping(spec.get("jobTemplate")).get("spec")) or spec
    pod = mapping(mapping(spec.get("template")).get("spec"))
    containers: list[Any] = [item for _, item in entries(pod.get("containers"))]
    named = tuple(
        word.removeprefix(_NAMESPACE)
        for container in containers
        for word in container.get("args", ())
        if isinstance(word, str) and word.startswith(_NAMESPACE)
    )
    identity = identity_of(obj)
    return Reaper(f"{identity.namespace}/{identity.name}", named or None)
