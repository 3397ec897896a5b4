"""Names of Substratus: of its API, of apps, and of what it stores."""

from __future__ import annotations

from hashlib import md5

from kaigen.kinds.lowering import Lowering

API_VERSION = "substratus.ai/v1"

SERVERS = ("Server", "ModelServer")

_PRECEDENCE = (("Model",), ("Dataset",), SERVERS, ("Notebook",))
"""Kinds whose apps may have the same name, in the order in which they keep it."""


def plural(kind: str) -> str:
    """Return the name of a kind in paths: `models` of `Model`."""
    return f"{short(kind)}s"


def short(kind: str) -> str:
    """Return the name of a kind in names of apps and images: `server` of both kinds of servers."""
    return "server" if kind in SERVERS else kind.lower()


def app_name(kind: str, name: str, lowering: Lowering, namespace: str | None = None, *, compat: bool = False) -> str:
    """Return the name of the app of a resource, with a suffix where a resource of another kind has the name.

    Args:
        kind: of the resource.
        name: of the resource.
        lowering: of a document.
        namespace: of the resource; None for that of the document.
        compat: keep the operator's names, which always end in the kind of servers and notebooks.
    """
    if compat and kind not in {"Model", "Dataset"}:
        return f"{name}-{short(kind)}"
    for kinds in _PRECEDENCE:
        if kind in kinds:
            return name
        if any(lowering.find_object(API_VERSION, other, name, namespace) for other in kinds):
            return f"{name}-{short(kind)}"
    return name


def artifact_hash(cluster: str, namespace: str, kind: str, name: str) -> str:
    """Return the folder of the operator in the bucket (source: its internal/resources and docs/design.md)."""
    place = f"clusters/{cluster}/namespaces/{namespace}/{plural(kind)}/{name}"
    return md5(place.encode(), usedforsecurity=False).hexdigest()
