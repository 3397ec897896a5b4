"""Plain Kubernetes objects among the specs: let through as they are, an app for each file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kaigen.compile.app import App, Object


def app_name(source: str) -> str:
    """Name of the app that holds a file's plain objects: the file's own, as a DNS label."""
    stem = source.rsplit("/", 1)[-1].rsplit(".", 1)[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:53].strip("-") or "objects"


def passthrough_app(source: str, bodies: Sequence[dict[str, Any]], namespace: str) -> App:
    """The app of one file's plain objects.

    Args:
        source: the file.
        bodies: the objects, which are not changed.
        namespace: the folder they go to in the output tree.
    """
    objects = []
    roles: dict[str, int] = {}
    for body in bodies:
        role = re.sub(r"[^a-z0-9.-]+", "-", f"{body['kind']}-{body['metadata']['name']}".lower())
        roles[role] = roles.get(role, 0) + 1
        if roles[role] > 1:
            role = f"{role}-{roles[role]}"
        objects.append(Object(role=role, body=body))
    return App(
        name=app_name(source),
        namespace=namespace,
        kind="Kubernetes",
        source=source,
        objects=tuple(objects),
        settings=(),
        summary="Kubernetes objects let through as they were written.",
    )
