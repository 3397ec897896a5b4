"""Kubernetes objects among the specs: let through as they are, an app for each file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kaigen.compile.app import App, Object
from kaigen.yaml.document_secrets import is_sops_secret

SECRET_WAYS: Mapping[tuple[str, str], str] = {
    ("external-secrets.io/v1", "ExternalSecret"): "ExternalSecret",
    ("bitnami.com/v1alpha1", "SealedSecret"): "SealedSecret",
}
"""Kinds that bring Secrets into a cluster and hold none."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME_MAX = 53


def is_secret_way(data: Mapping[str, Any]) -> bool:
    """Whether an object is one of the ways in which a Secret may stand in Git; these are always let through."""
    return (data.get("apiVersion"), data.get("kind")) in SECRET_WAYS or is_sops_secret(data)


def app_name(source: str, folders: Sequence[str] = (), taken: Collection[str] = ()) -> str:
    """Name of the app that holds a file's plain objects: the file's own with its folders, as a DNS label.

    Args:
        source: the file, relative to the repository.
        folders: those that specs are read from; what stands below them is the name.
        taken: names of the other apps of the namespace.
    """
    for folder in sorted(folders, key=len, reverse=True):
        prefix = f"{folder.rstrip('/')}/"
        if source.startswith(prefix):
            below = source.removeprefix(prefix)
            break
    else:
        below = source.rsplit("/", 1)[-1]
    stem = re.sub(r"\.(?:ya?ml|json)$", "", below, flags=re.IGNORECASE).lower()
    name = re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:_NAME_MAX].strip("-") or "objects"
    return f"{name[: _NAME_MAX - len('-objects')].strip('-')}-objects" if name in taken else name


def plain_namespace(bodies: Sequence[Mapping[str, Any]], namespace: str) -> str:
    """The namespace that all of a file's objects name, where they agree on one; else `namespace`."""
    named = {str(body["metadata"].get("namespace") or "") for body in bodies}
    only = named.pop() if len(named) == 1 else ""
    return only if _LABEL.fullmatch(only) else namespace


def passthrough_app(
    name: str, source: str, bodies: Sequence[dict[str, Any]], namespace: str, text: str
) -> App:
    """The app of one file's plain objects.

    Args:
        name: the app's.
        source: the file.
        bodies: the objects, which are not changed.
        namespace: the folder they go to in the output tree.
        text: the file's text, which stays as it is for a Secret that SOPS encrypted: its checksum is over that.
    """
    objects = []
    roles: dict[str, int] = {}
    for body in bodies:
        role = re.sub(r"[^a-z0-9.-]+", "-", f"{body['kind']}-{body['metadata']['name']}".lower())
        roles[role] = roles.get(role, 0) + 1
        if roles[role] > 1:
            role = f"{role}-{roles[role]}"
        if is_sops_secret(body):
            ending = "json" if source.lower().endswith(".json") else "yaml"
            objects.append(Object(role=role, body=body, verbatim=text, ending=ending))
        else:
            objects.append(Object(role=role, body=body))
    return App(
        name=name,
        namespace=namespace,
        kind="Kubernetes",
        source=source,
        objects=tuple(objects),
        settings=(),
        summary="Kubernetes objects let through as they were written.",
    )
