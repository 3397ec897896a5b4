"""Where the API server serves the objects of a kind."""

from __future__ import annotations


def resource_of(kind: str) -> str:
    """Return the plural of a kind in the API, by the default rule of Kubernetes."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def api_path(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of an object of a namespaced kind, or of all its objects.

    Args:
        kind: API version and kind, as in `v1/Pod` and `batch/v1/Job`.
        namespace: namespace of the objects; empty for all namespaces.
        name: name of the object; empty for all objects.
        subresource: `log`, `exec` and others; empty for the object itself.
    """
    version, _, name_of_kind = kind.rpartition("/")
    parts = ["apis" if "/" in version else "api", version]
    if namespace:
        parts += ["namespaces", namespace]
    return "/".join(["", *parts, *(part for part in (resource_of(name_of_kind), name, subresource) if part)])
