"""The specs of a Queue: itself, and a LocalQueue for each other namespace, which is an app of that namespace."""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import Metadata
from kaigen.kinds.lowering import Lowered, Lowering
from kaigen.kinds.queue import Queue, QueueSpec

_NAMESPACES: FieldPath = ("spec", "namespaces")


def specs_of(block: Queue, lowering: Lowering) -> list[Lowered]:
    """Return the specs of a Queue. A syncer puts all objects of an app into one namespace, so each has its own.

    Args:
        block: the document.
        lowering: has the namespace of documents that name none.
    """
    spec, metadata = block.spec, block.metadata
    if spec.quota is None or spec.namespaces is None:
        return [Lowered(block)]
    home = metadata.namespace or lowering.context.namespace
    local = QueueSpec(cluster_queue=metadata.name)
    others = [
        Lowered(
            Queue(metadata=_metadata(metadata, namespace), spec=local),
            {("metadata",): ("metadata",), ("metadata", "namespace"): (*_NAMESPACES, number), ("spec",): _NAMESPACES},
        )
        for number, namespace in enumerate(dict.fromkeys(spec.namespaces))
        if namespace != home
    ]
    return [Lowered(block), *others]


def _metadata(metadata: Metadata, namespace: str) -> Metadata:
    return Metadata(
        name=metadata.name,
        namespace=namespace,
        environments=metadata.environments,
        labels=metadata.labels,
        annotations=metadata.annotations,
    )
