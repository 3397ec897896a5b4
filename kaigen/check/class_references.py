"""Findings for storage, priority and runtime classes that `external` of kaigen.yaml does not list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.check import codes
from kaigen.check.app_references import MissingObject
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.cluster_needs import DEFAULT_CLASS, cluster_needs
from kaigen.kubernetes.manifest import Identity, Object, identity_of

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry

_TYPES = {
    "StorageClass": "StorageClass.storage.k8s.io",
    "PriorityClass": "PriorityClass.scheduling.k8s.io",
    "RuntimeClass": "RuntimeClass.node.k8s.io",
}


def check_classes(objs: Sequence[Object], external: Sequence[ExternalEntry]) -> Iterator[tuple[int, MissingObject]]:
    """Yield a warning for each class that is neither listed nor made, with the index of its object.

    Args:
        objs: the objects.
        external: what kaigen.yaml lists. Classes of a kind are checked only if it lists some of that kind.
    """
    listed = {kind: [item for item in external if item.kind == kind] for kind in _TYPES}
    if not any(listed.values()):
        return
    made = {identity_of(obj) for obj in objs}
    for number, obj in enumerate(objs):
        for need in cluster_needs(obj):
            known = listed.get(need.kind)
            if not known or need.name == DEFAULT_CLASS:
                continue
            target = Identity(_TYPES[need.kind], "", need.name)
            if target in made or any(item.is_named(need.kind, "", need.name) for item in known):
                continue
            hint = did_you_mean(need.name, [item.name for item in known])
            yield (
                number,
                MissingObject(
                    codes.REFERENCE_UNRESOLVED,
                    f"there is no {need.kind} `{need.name}`",
                    need.path,
                    hint or "list it in `external` of kaigen.yaml if the cluster has it",
                    Severity.WARNING,
                    target=target,
                ),
            )
