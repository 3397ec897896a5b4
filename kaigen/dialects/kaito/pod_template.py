"""Pod templates of users, with the nodes of a resource."""

from __future__ import annotations

from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.nodes import TAINT, Nodes
from kaigen.dialects.kaito.resource import ResourceLowering
from kaigen.programs.files import FOLDER, VOLUME, program_text, programs_in

_ANNOTATION = "kaigen.dev/program-"


def with_placement(
    template: dict[str, Any], draft: Draft, nodes: Nodes, at: FieldPath, lowering: ResourceLowering
) -> dict[str, Any]:
    """Return a pod template with the nodes of a resource, which are removed from the Topology.

    KAITO overwrites the affinity of a template; here both apply.

    Args:
        template: of the user.
        draft: the Topology.
        nodes: what is known about the nodes.
        at: path of the template.
        lowering: collects problems.
    """
    spec = draft.data["spec"]
    placement = spec.pop("placement", {})
    resources = spec.pop("resources", {})
    pod = template.get("spec")
    if not isinstance(pod, dict):
        lowering.error("KG0412", "`spec` is missing in the pod template", at, "add `spec` with the containers")
        return template
    pod = dict(pod)
    labels = nodes.mig_labels(lowering.context.profile) | placement.get("nodeSelector", {})
    if "instanceType" in resources:
        labels["node.kubernetes.io/instance-type"] = resources["instanceType"]
    merged: dict[str, Any] = {}
    if labels:
        merged["nodeSelector"] = labels
    if "affinity" in placement:
        merged["affinity"] = placement["affinity"]
    for field, more in merged.items():
        own = pod.get(field, {})
        pod[field] = _merged(own, more) if isinstance(own, dict) else own
    tolerations = [dict(TAINT)] if nodes.named else []
    own = pod.get("tolerations", [])
    if tolerations and isinstance(own, list) and tolerations[0] not in own:
        pod["tolerations"] = [*own, *tolerations]
    return {**template, "spec": pod}


def with_programs(template: dict[str, Any]) -> dict[str, Any]:
    """Return a pod template of kaigen's with the programs that its containers name, as annotations of the pod.

    A template is one setting of the chart, which cannot contain the name of a ConfigMap of the release.
    """
    pod = dict(template["spec"])
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    for field in ("initContainers", "containers"):
        if field in pod:
            pod[field] = [
                {**each, "volumeMounts": [*each["volumeMounts"], mount]} if any(programs_in(each)) else each
                for each in pod[field]
            ]
    names = sorted({*programs_in(template)})
    if not names:
        return template
    paths = {name: f"metadata.annotations['{_ANNOTATION}{name}']" for name in names}
    items = [{"path": name, "fieldRef": {"fieldPath": path}} for name, path in paths.items()]
    pod["volumes"] = [*pod["volumes"], {"name": VOLUME, "downwardAPI": {"items": items}}]
    metadata = template.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), **{f"{_ANNOTATION}{name}": program_text(name) for name in names}}
    return {**template, "metadata": {**metadata, "annotations": annotations}, "spec": pod}


def _merged(own: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return two fragments of a pod merged, so that both apply."""
    result = dict(own)
    for key, value in more.items():
        here = result.get(key)
        if isinstance(here, dict) and isinstance(value, dict):
            result[key] = _merged(here, value)
        elif isinstance(here, list) and isinstance(value, list):
            both = key == "nodeSelectorTerms" and here and value
            # A node must match one term, so the other conditions are added to each.
            result[key] = [_joined(term, value[0]) for term in here] if both else [*here, *value]
        else:
            result[key] = value
    return result


def _joined(term: Any, other: dict[str, Any]) -> Any:
    if not isinstance(term, dict):
        return term
    own = term.get("matchExpressions", [])
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else []), *other["matchExpressions"]]}


def runs_as_non_root(template: dict[str, Any]) -> bool:
    """Whether a pod template, or one of its containers, sets `runAsNonRoot`."""
    spec = template.get("spec")
    pod = spec if isinstance(spec, dict) else {}
    containers = pod.get("containers")
    parts = [pod, *(containers if isinstance(containers, list) else [])]
    contexts = [part.get("securityContext") for part in parts if isinstance(part, dict)]
    return any(isinstance(context, dict) and context.get("runAsNonRoot") is True for context in contexts)


def first_port(template: dict[str, Any]) -> int | None:
    """Return the first container port of a pod template; None when it has none."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else []:
        ports = container.get("ports") if isinstance(container, dict) else None
        for port in ports if isinstance(ports, list) else []:
            number = port.get("containerPort") if isinstance(port, dict) else None
            if isinstance(number, int) and not isinstance(number, bool):
                return number
    return None
