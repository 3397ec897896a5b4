"""What a StorageClass in a cluster says of itself."""

from __future__ import annotations

from kaigen.kubernetes.manifest import Object, mapping

STORAGE_CLASS = "storage.k8s.io/v1/StorageClass"

_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def is_default(storage_class: Object) -> bool:
    """Return whether claims without a class get this one."""
    return mapping(mapping(storage_class.get("metadata")).get("annotations")).get(_IS_DEFAULT) == "true"
