"""A kustomization for each namespace and for the environment, for overlays and `kubectl apply -k`.

No path that Argo CD or Flux gets from kaigen leads to them: these read the folders of apps, so nothing is applied
twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from kaigen.core.json_types import Json
from kaigen.yaml.dump import dump

_HEADER = "# Rendered by kaigen. Change the specs, not this file.\n---\n"
_FILE = "kustomization.yaml"


def group_kustomizations(paths: Iterable[str]) -> dict[str, bytes]:
    """Return a kustomization for each namespace, of its apps, and one for the environment.

    That of the environment also has the objects of namespaces themselves, before the apps. Those of a namespace do not,
    because its teams may not be allowed to change them.

    Args:
        paths: the files of the output tree. Apps without manifests are left out.
    """
    apps: dict[str, list[str]] = {}
    tenants = []
    for path in sorted(paths):
        match path.split("/"):
            case [namespace, folder, "manifests", name] if name == _FILE and folder.startswith("_"):
                tenants.append(f"{namespace}/{folder}/manifests")
            case [namespace, app, "manifests", name] if name == _FILE:
                apps.setdefault(namespace, []).append(f"{app}/manifests")
    if not apps:
        return {}
    files = {f"{namespace}/{_FILE}": _kustomization(folders) for namespace, folders in apps.items()}
    return {**files, _FILE: _kustomization([*tenants, *apps])}


def _kustomization(resources: list[str]) -> bytes:
    listed: list[Json] = [*resources]
    body: dict[str, Json] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": listed,
    }
    return (_HEADER + dump(body)).encode()
