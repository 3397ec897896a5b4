"""The files for Argo CD and Flux in the output tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kaigen.gitops.argocd import argocd_files
from kaigen.gitops.delivery import Delivery
from kaigen.gitops.flux import flux_files
from kaigen.gitops.tenancy import tenants_of
from kaigen.kubernetes.manifest import group_of, identity_of
from kaigen.kubernetes.schemas import is_cluster_scoped
from kaigen.yaml.dump import dump

_HEADER = "# Rendered by kaigen from kaigen.yaml. Change that, not this file.\n"


def sync_objects(delivery: Delivery) -> dict[str, tuple[dict[str, Any], Sequence[str]]]:
    """Return every object for the GitOps tools and for namespaces, with comments, by path in the tree."""
    tenants = tenants_of(delivery)
    found: dict[str, tuple[dict[str, Any], Sequence[str]]] = {
        path: (body, ()) for tenant in tenants for path, body in tenant.files().items()
    }
    if delivery.settings.argocd is not None:
        found |= argocd_files(delivery, tenants)
    if delivery.settings.flux is not None:
        found |= flux_files(delivery, tenants)
    found |= {path: (body, ()) for path, body in _kustomizations(found)}
    return dict(sorted(found.items()))


def identities(delivery: Delivery) -> dict[tuple[str, str, str, str], str]:
    """Return group, kind, namespace and name of every object for the GitOps tools and for namespaces, with its path."""
    found = {}
    for path, (body, _) in sync_objects(delivery).items():
        if "metadata" in body:
            identity = identity_of(body)
            is_global = is_cluster_scoped(str(body["apiVersion"]), identity.kind)
            place = "" if is_global else identity.namespace
            found[group_of(body), identity.kind, place, identity.name] = path
    return found


def sync_files(delivery: Delivery) -> dict[str, bytes]:
    """The files by path in the output tree."""
    return {
        path: (_HEADER + "".join(f"# {remark}\n" for remark in remarks) + "---\n" + dump(body)).encode()
        for path, (body, remarks) in sync_objects(delivery).items()
    }


def _kustomizations(paths: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a kustomization for each folder that is applied or synced as a whole."""
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        if folder.startswith("_") and "/" in folder and name != "kustomization.yaml":
            folders.setdefault(folder, []).append(name)
    for folder, names in folders.items():
        yield (
            f"{folder}/kustomization.yaml",
            {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names},
        )
