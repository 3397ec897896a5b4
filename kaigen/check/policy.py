"""Policies for objects in Git: Pod Security, names and labels, resources, and no secrets.

`kaigen.check.schema_check` checks whether the API server accepts an object.
"""

from __future__ import annotations

from kaigen.check import codes
from kaigen.check.amounts import claim_findings, scratch_findings
from kaigen.check.folder_build import folder_build_findings
from kaigen.check.image_names import image_findings
from kaigen.check.kind_policies import kind_findings
from kaigen.check.names import metadata_findings, object_name_findings, pod_name_findings
from kaigen.check.pod_security_findings import security_findings
from kaigen.check.resources import resource_findings
from kaigen.check.secret_values import literal_findings, secret_findings
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.pod_security import LEVELS
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.schemas import is_cluster_scoped

_NAMESPACE = ("metadata", "namespace")


def check_names(obj: Object) -> list[Problem]:
    """Check the names, labels, annotations and keys of an object that the API server checks beyond its schema, the
    names of its images, and that a build of its folder does not change it."""
    metadata = mapping(obj.get("metadata"))
    return [
        *object_name_findings(obj),
        *metadata_findings(metadata, ("metadata",)),
        *folder_build_findings(obj),
        *kind_findings(obj),
        *image_findings(obj),
    ]


def check_policy(obj: Object, *, pod_security: str = "restricted") -> list[Problem]:
    """Check an object against the policies.

    Args:
        obj: one Kubernetes object of plain values; values of the wrong type are ignored.
        pod_security: the level of the Pod Security Standards that its pods must meet: `privileged`, `baseline`
            or `restricted`.

    Returns:
        All problems; missing requests and the like are warnings.

    Raises:
        ValueError: there is no such level.
    """
    if pod_security not in LEVELS:
        raise ValueError(f"no Pod Security level {pod_security!r}; there are {', '.join(LEVELS)}")
    metadata = mapping(obj.get("metadata"))
    findings = [*check_names(obj), *claim_findings(obj), *secret_findings(obj)]
    if "namespace" in metadata and is_cluster_scoped(str(obj.get("apiVersion")), str(obj.get("kind"))):
        message = f"a {obj.get('kind')} belongs to no namespace"
        findings.append(
            Problem(codes.NAMESPACE_ON_CLUSTER_KIND, message, ("metadata", "namespace"), "remove metadata.namespace")
        )
    if obj.get("status"):
        message = "the status field is written by a controller"
        findings.append(Problem(codes.STATUS_PRESENT, message, ("status",), "remove it", Severity.WARNING))
    for template in pod_templates(obj):
        if template.path and template.metadata:
            findings += metadata_findings(template.metadata, (*template.path, "metadata"))
        found = containers(template)
        findings += pod_name_findings(template, found)
        findings += scratch_findings(template)
        findings += security_findings(template, pod_security)
        for container in found:
            if not template.single:  # its controller sets requests
                findings += resource_findings(template, container)
            findings += literal_findings(container)
    return findings
