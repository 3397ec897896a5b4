"""Labels and annotations that kaigen, Kubernetes, a syncer or a cloud gives a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

RESERVED_LABELS = (
    r"^(app\.kubernetes\.io/(name|instance|component|managed-by)"
    r"|kaigen\.dev/.*"
    r"|(batch\.kubernetes\.io|jobset\.sigs\.k8s\.io|leaderworkerset\.sigs\.k8s\.io)/.*"
    r"|(statefulset|apps)\.kubernetes\.io/pod-(name|index)"
    r"|controller-uid|job-name|controller-revision-hash|pod-template-hash)$"
)
"""Pattern of labels that kaigen or a controller sets, and that selectors may contain."""

EXPIRES = "kaigen.dev/expires"
"""Label by which kaigen-reaper finds Jobs whose pods expire, and volumes that expire."""

POD_TTL = "kaigen.dev/pod-ttl"
"""Annotation of a Job: seconds until its pods are deleted after it completed, or `never`."""

FAILED_POD_TTL = "kaigen.dev/failed-pod-ttl"
"""Annotation of a Job: seconds until its pods are deleted after it failed, or `never`."""

RUN = "kaigen.dev/job"
"""Annotation of a volume that expires: name of the Job whose end starts the clock."""

TTL = "kaigen.dev/ttl"
"""Annotation of a volume: seconds until it is deleted after that Job completed, or `never`."""

FAILED_TTL = "kaigen.dev/failed-ttl"
"""Annotation of a volume: seconds until it is deleted after that Job failed, or `never`."""

EXPIRES_AT = "kaigen.dev/expires-at"
"""Annotation of a volume: when it is deleted, as an RFC 3339 time, in place of these three."""

SCALED_BY = "kaigen.dev/scaled-by"
"""Annotation of a workload whose replicas are not in Git: what sets them, such as `idle, hours`."""
ALIAS_OF = "kaigen.dev/alias-of"
"""Annotation of the Service of an Alias: name of the Topology whose pods answer."""

_OF_OBJECTS = (
    "argocd.argoproj.io/",
    "helm.sh/",
    "helm.toolkit.fluxcd.io/",
    "kubectl.kubernetes.io/",
    "kueue.x-k8s.io/",
    "kustomize.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "reconcile.fluxcd.io/",
)
"""Beginnings of labels and annotations that syncers and queues read from whole objects. On a pod template they would
restart pods, or start a run, with each change; a queue would take each pod for a workload."""

_SYNCERS = frozenset({"argocd.argoproj.io", "helm.sh"})
_FLUX = ".toolkit.fluxcd.io"

_KUSTOMIZE = frozenset(
    {"config.kubernetes.io", "internal.config.kubernetes.io", "config.k8s.io", "kustomize.config.k8s.io"}
)
"""Domains of the annotations that kustomize obeys when it builds a folder, and API groups of its own files."""

_AZURE_CLIENT = "azure.workload.identity/client-id"
AZURE_IDENTITY = {"azure.workload.identity/use": "true"}
"""The label of pods to which Azure's webhook gives the identity of their ServiceAccount."""


def without_object_keys(given: Mapping[str, T]) -> dict[str, T]:
    """Return the labels or annotations of an object that are useful on its pods too."""
    return {key: value for key, value in given.items() if not key.startswith(_OF_OBJECTS)}


def is_syncer_key(key: str) -> bool:
    """Return whether Argo CD, Flux or Helm obeys a label or an annotation of this key."""
    domain = key.partition("/")[0] if "/" in key else ""
    return domain in _SYNCERS or domain.endswith(_FLUX)


def is_build_annotation(key: str) -> bool:
    """Return whether kustomize obeys an annotation of an object when it builds a folder."""
    return "/" in key and key.partition("/")[0] in _KUSTOMIZE


def is_build_group(group: str) -> bool:
    """Return whether an API group is of the files that kustomize reads, such as a Kustomization or a ResourceList."""
    return group in _KUSTOMIZE


def labels_for_identity(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that pods need besides the annotations of their ServiceAccount.

    Azure's webhook reads only pods with a label (source: azure-workload-identity, service account labels and
    annotations); those of other clouds read all pods of an annotated account.
    """
    return dict(AZURE_IDENTITY) if _AZURE_CLIENT in annotations else {}
