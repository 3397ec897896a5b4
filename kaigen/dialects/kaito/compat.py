"""KAITO's names, labels, ports and folders, kept so that a migration can be compared object by object."""

from __future__ import annotations

from kaigen.dialects.kaito.images import RENDEZVOUS
from kaigen.kinds.compat import Folders, ServingNaming

WORKSPACE = "kaito.sh/workspace"
SET = "inferenceset.kaito.sh/created-by"
RAG = "kaito.sh/ragengine"

_FOLDERS = Folders(adapters="/mnt/adapter", cache="/workspace/weights", downloaded="/workspace/weights/model")
"""Folders of adapters and weights in KAITO's containers."""


def serving_names(label: str, *, first: bool = False) -> ServingNaming:
    """Return the names that KAITO's objects have.

    Args:
        label: pod label whose value is the resource's name.
        first: as in KAITO's first versions, whose Services also had the port of torchrun.
    """
    return ServingNaming(
        pod_labels={label: ""},
        container="",
        service_ports={"torch": RENDEZVOUS} if first else {},
        publish_not_ready=True,
        headless_suffix="-headless",
        folders=_FOLDERS,
    )
