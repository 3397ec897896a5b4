"""Lists whose entries are merged by a key, as in strategic merge patches of kubectl and kustomize."""

from __future__ import annotations

from collections.abc import Mapping

MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "secrets": ("name",),
}
"""List and the fields of its entries, of which the first that an entry has identifies it.

Source: `x-kubernetes-patch-merge-key` in the OpenAPI document of Kubernetes. kubectl does not apply them to custom
resources; kaigen does."""

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
"""Lists of containers."""
