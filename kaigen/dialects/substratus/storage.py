"""Where the files of Models and Datasets are stored: in a folder of the bucket of artifacts, or in a volume."""

from __future__ import annotations

from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.names import artifact_hash, plural
from kaigen.dialects.substratus.resource import SubstratusLowering

DEFAULT_SIZE = "100Gi"
"""The local disk that the operator gives to the cache of a bucket."""

_STORE: FieldPath = ("spec", "store")


def put_store(draft: Draft, lowering: SubstratusLowering) -> None:
    """Put the bucket or the volume of a Model or a Dataset.

    Args:
        draft: the Model or Dataset.
        lowering: of the resource.
    """
    artifacts = lowering.settings.get("artifacts")
    at = lowering.size_at()
    if artifacts is None:
        volume: dict[str, Any] = {"size": lowering.size or DEFAULT_SIZE, "retain": True}
        draft.put((*_STORE, "volume"), volume | shared_volume(lowering), at)
        return
    draft.hints["KG0317"] = "in kaigen.yaml, make `dialects.substratus.artifacts` a block with `uri` and `credentials`"
    bucket: dict[str, Any] = {"uri": artifacts} if isinstance(artifacts, str) else dict(artifacts)
    draft.put((*_STORE, "bucket"), bucket | {"uri": _uri(str(bucket["uri"]), lowering)}, at)


def shared_volume(lowering: SubstratusLowering) -> dict[str, Any]:
    """Return the fields of a volume that pods of several nodes mount; none without such a class."""
    storage_class = lowering.settings.get("storageClassName")
    if not storage_class:
        return {}
    return {"storageClassName": storage_class, "accessModes": ["ReadWriteMany"]}


def _uri(root: str, lowering: SubstratusLowering) -> str:
    """Return the folder of the files: a readable one, or with `compat` the operator's hash."""
    cluster, root = lowering.settings.get("clusterName"), root.rstrip("/")
    kind, namespace, name = lowering.kind, lowering.namespace, lowering.name
    if not lowering.compat:
        return "/".join(part for part in (root, cluster, namespace, plural(kind), name) if part)
    if not cluster:
        lowering.error(
            "KG0412",
            "the operator's folder in the bucket depends on the name of the cluster, which nothing says",
            lowering.directive_at("compat"),
            "set `dialects.substratus.clusterName` in kaigen.yaml",
        )
    return f"{root}/{artifact_hash(str(cluster), namespace, kind, name)}"
