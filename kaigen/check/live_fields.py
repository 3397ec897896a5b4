"""Findings for fields that only the API server and controllers write, in an object that was copied from a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping, type_of

REFUSED = ("managedFields", "resourceVersion", "uid")
"""Fields of the metadata with which the API server refuses an apply (sources: k8s.io/apiserver v0.36.3,
pkg/endpoints/handlers/fieldmanager and pkg/registry/generic/registry/store.go)."""

IGNORED = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "selfLink")
"""Fields of the metadata that it ignores or replaces."""

_APPLIED = ("kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision")
"""Annotations that kubectl and the controller of Deployments write."""

_DELETE = "delete it"


def live_findings(obj: Object) -> Iterator[Problem]:
    """Check that an object has only what its author decides."""
    metadata = mapping(obj.get("metadata"))
    copied = False
    for field in (*REFUSED, *IGNORED):
        # Generated manifests have `creationTimestamp: null`.
        if metadata.get(field) not in (None, "", 0):
            copied = True
            severity = Severity.ERROR if field in REFUSED else Severity.WARNING
            yield _written(("metadata", field), severity)
    annotations = mapping(metadata.get("annotations"))
    for key in _APPLIED:
        if key in annotations:
            yield _written(("metadata", "annotations", key), Severity.WARNING)
    address = mapping(obj.get("spec")).get("clusterIP")
    if copied and type_of(obj) == "Service" and address not in (None, "", "None"):
        yield _written(("spec", "clusterIP"), Severity.WARNING)
    if obj.get("status"):
        message = "the status field is written by a controller"
        yield Problem(codes.STATUS_PRESENT, message, ("status",), "remove it", Severity.WARNING)


def _written(path: tuple[str, ...], severity: Severity) -> Problem:
    message = f"`{path[-1]}` is written by the cluster that the object was copied from"
    return Problem(codes.LIVE_FIELD, message, path, _DELETE, severity)
