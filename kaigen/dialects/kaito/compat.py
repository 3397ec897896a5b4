"""KAITO's names, labels, ports and folders, kept so that a migration can be compared object by object."""

from __future__ import annotations

from kaigen.dialects.kaito.images import RENDEZVOUS
from kaigen.kinds.compat import Folders, ServingNaming

WORKSPACE = "kaito.sh/workspace"
SET = "inferenceset.kaito.sh/created-by"
RAG = "kaito.sh/ragengine"

_FOLDERS = Folders(adapters="/mnt/adapter", cache="/workspace/weights", downloaded="/workspace/weights/model")
"""Folders of adapters and weights in KAITO's containers."""


CHAT_MIDDLEWARE = "kaito_chat.KaitoChat"
"""Answers `POST /chat` in front of vLLM, as the servers of presets did that KAITO removed."""


def serving_names(label: str, *, compat: bool, middleware: str = "", first: bool = False) -> ServingNaming | None:
    """Return what the objects of a resource keep from KAITO; None for nothing.

    Args:
        label: pod label whose value is the resource's name.
        compat: keep all names that KAITO's objects have.
        middleware: what answers KAITO's routes in front of vLLM; empty for none.
        first: as in KAITO's first versions, whose Services also had the port of torchrun.
    """
    if not compat:
        return ServingNaming(middleware=middleware) if middleware else None
    return ServingNaming(
        pod_labels={label: ""},
        container="",
        service_ports={"torch": RENDEZVOUS} if first else {},
        publish_not_ready=True,
        headless_suffix="-headless",
        folders=_FOLDERS,
        middleware=middleware,
    )
