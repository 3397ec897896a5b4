"""Kubernetes objects among the specs: copied unchanged, one app for each file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kaigen.compile.app import App, Object, Roles
from kaigen.yaml.document_secrets import is_sops_secret

SECRET_SOURCES: Mapping[tuple[str, str], str] = {
    ("external-secrets.io/v1", "ExternalSecret"): "ExternalSecret",
    ("bitnami.com/v1alpha1", "SealedSecret"): "SealedSecret",
}
"""Kinds that make Secrets in a cluster and contain no secret values."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME_MAX = 53


def is_secret_source(data: Mapping[str, Any]) -> bool:
    """Return whether an object may bring a Secret into Git; such objects are always allowed."""
    return (data.get("apiVersion"), data.get("kind")) in SECRET_SOURCES or is_sops_secret(data)


def app_name(source: str, folders: Sequence[str] = (), taken: Collection[str] = ()) -> str:
    """Return the name of the app of a file's plain objects: the file's name with its folders, as a DNS label.

    Args:
        source: the file, relative to the repository.
        folders: folders of specs; the name is the path below them.
        taken: names of the namespace's other apps.
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
    """Return the namespace of all objects of a file if they have the same, else `namespace`."""
    named = {str(body["metadata"].get("namespace") or "") for body in bodies}
    only = named.pop() if len(named) == 1 else ""
    return only if _LABEL.fullmatch(only) else namespace


def passthrough_app(name: str, source: str, bodies: Sequence[dict[str, Any]], namespace: str, text: str) -> App:
    """Return the app of one file's plain objects.

    Args:
        name: name of the app.
        source: the file.
        bodies: the objects, which stay unchanged.
        namespace: their folder in the output tree.
        text: the file's text, which is copied for Secrets that SOPS encrypted, since their checksum covers it.
    """
    objects = []
    roles = Roles()
    for body in bodies:
        role = roles.take(re.sub(r"[^a-z0-9.-]+", "-", f"{body['kind']}-{body['metadata']['name']}".lower()))
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
        summary="Kubernetes objects copied unchanged from the specs.",
    )
