"""KAITO's names, labels, ports and folders, kept so that a migration can be compared object by object."""

from __future__ import annotations

from kaigen.dialects.kaito.images import RENDEZVOUS
from kaigen.kinds.compat import ServingNaming

WORKSPACE = "kaito.sh/workspace"
SET = "inferenceset.kaito.sh/created-by"
RAG = "kaito.sh/ragengine"

_PATHS = {
    "/adapters": "/mnt/adapter",
    "/cache/model": "/workspace/tfs/weights",
    "/cache": "/workspace/weights",
}
"""Where KAITO's containers have adapters and weights."""


def serving_names(label: str, *, first: bool = False) -> ServingNaming:
    """Names of what serves.

    Args:
        label: that pods have, with the resource's name.
        first: as in KAITO's first versions, whose Services had the port of torchrun too.
    """
    ports = {"torch": RENDEZVOUS} if first else {}
    return ServingNaming({label: ""}, ports, "-headless", _PATHS)
