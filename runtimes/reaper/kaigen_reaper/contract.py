"""The labels and annotations of objects that expire. `README.md` describes them for users."""

from __future__ import annotations

from collections.abc import Mapping

EXPIRES = "kaigen.dev/expires"
"""Label with the value `true` of Jobs and volumes that the reaper looks at."""

POD_TTL = "kaigen.dev/pod-ttl"
FAILED_POD_TTL = "kaigen.dev/failed-pod-ttl"
"""Annotations of a Job: seconds from its end to the deletion of its finished pods, or `never`."""

JOB = "kaigen.dev/job"
TTL = "kaigen.dev/ttl"
FAILED_TTL = "kaigen.dev/failed-ttl"
"""Annotations of a volume: the Job whose end starts the clock, and the seconds from then, or `never`."""

EXPIRES_AT = "kaigen.dev/expires-at"
"""Annotation of a volume that replaces the other three: a time in RFC 3339, in UTC."""

VOLUME_ANNOTATIONS = (JOB, TTL, FAILED_TTL, EXPIRES_AT)

SELECTOR = f"{EXPIRES}=true"
"""Label selector of the Jobs and volumes."""

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
"""Label that Kubernetes sets on the pods of a Job: the UID of the Job."""

JOB_NAME = "batch.kubernetes.io/job-name"
"""Label that Kubernetes sets on the pods of a Job: the name of the Job."""

APP_LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/name")
"""Labels that are the same on all objects of an app."""

_ARGO_CD = "argocd.argoproj.io/tracking-id"
_FLUX = "kustomize.toolkit.fluxcd.io/name"


def is_tracked(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Return whether Argo CD or Flux applied the object, and would create it again."""
    return _ARGO_CD in annotations or _FLUX in annotations or _FLUX in labels
