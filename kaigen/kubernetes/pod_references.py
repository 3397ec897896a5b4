"""The fields of a pod's spec that contain names of other objects."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.kubernetes.object_kind import ReferenceField
from kaigen.kubernetes.pods import CONTAINER_FIELDS
from kaigen.kubernetes.secret_types import DOCKER_CONFIG, DOCKER_CONFIG_KEY

_SECRET = ("Secret",)
_CONFIG_MAP = ("ConfigMap",)


def _of_containers() -> Iterator[ReferenceField]:
    for field in CONTAINER_FIELDS:
        yield ReferenceField(f"{field}[].env[].valueFrom.configMapKeyRef.name", _CONFIG_MAP, "reads")
        yield ReferenceField(f"{field}[].env[].valueFrom.secretKeyRef.name", _SECRET, "reads")
        yield ReferenceField(f"{field}[].envFrom[].configMapRef.name", _CONFIG_MAP, "reads")
        yield ReferenceField(f"{field}[].envFrom[].secretRef.name", _SECRET, "reads")


POD_REFERENCES = (
    ReferenceField("serviceAccountName", ("ServiceAccount",), "runs as"),
    ReferenceField(
        "imagePullSecrets[].name",
        _SECRET,
        "pulls with",
        keys=(DOCKER_CONFIG_KEY,),
        secret_type=DOCKER_CONFIG,
        as_files=True,
    ),
    *_of_containers(),
    ReferenceField("volumes[].persistentVolumeClaim.claimName", ("PersistentVolumeClaim",), "mounts"),
    ReferenceField("volumes[].configMap.name", _CONFIG_MAP, "reads", as_files=True),
    ReferenceField("volumes[].secret.secretName", _SECRET, "reads", as_files=True),
    ReferenceField("volumes[].projected.sources[].configMap.name", _CONFIG_MAP, "reads", as_files=True),
    ReferenceField("volumes[].projected.sources[].secret.name", _SECRET, "reads", as_files=True),
    ReferenceField(
        "volumes[].azureFile.secretName", _SECRET, "reads", keys=("azurestorageaccountname", "azurestorageaccountkey")
    ),
    ReferenceField("volumes[].*.secretRef.name", _SECRET, "reads"),
    ReferenceField("volumes[].*.nodePublishSecretRef.name", _SECRET, "reads"),
    ReferenceField("resourceClaims[].resourceClaimName", ("ResourceClaim.resource.k8s.io",)),
    ReferenceField("resourceClaims[].resourceClaimTemplateName", ("ResourceClaimTemplate.resource.k8s.io",)),
)
"""Paths are relative to the spec of the pod."""
