"""Where the objects of syncers are in the output tree: for those that write the tree, and those that judge a tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

ARGOCD_FOLDER = "_argocd"
FLUX_FOLDER = "_flux"

SYNCER_FOLDERS: Mapping[str, str] = {ARGOCD_FOLDER: "Argo CD", FLUX_FOLDER: "Flux"}
"""The folders at the top of a tree with the objects of each tool, and its name; no namespace can have these names."""

TENANT_FOLDER = "_tenant"
"""The folder of a namespace with the objects of its tenancy; no app can have this name."""

_GUARDS = f"{FLUX_FOLDER}/after"
_GUARD_DIGITS = 8


def guard_folder(namespace: str, app: str, needs: str) -> str:
    """Return the folder of the Flux component of an app with a route, whose path is a hash of what the app waits for.

    A commit reaches the Kustomization of an app, and the one that changes its `dependsOn`, in any order. Without the
    component, a route with a weight for new pods would be applied before Flux knows that it has to wait for them. With
    the previous `dependsOn`, the component is not found, and nothing is applied.
    """
    return f"{_GUARDS}/{namespace}.{app}/{sha256(needs.encode()).hexdigest()[:_GUARD_DIGITS]}"


def guard_component(folder: str) -> str:
    """Return the path of a component as a Kustomization names it, from the folder of the manifests of an app."""
    return f"../../../{folder}"


def is_guard_component(component: str, namespace: str, app: str) -> bool:
    """Return whether a Kustomization names the component of an app, whatever the app waits for."""
    home = re.escape(guard_component(f"{_GUARDS}/{namespace}.{app}"))
    return re.fullmatch(rf"{home}/[0-9a-f]{{{_GUARD_DIGITS}}}", component) is not None
