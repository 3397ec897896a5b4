"""A pod template that a Topology takes as it is, in place of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import Labels, Object, Setting, Tree
from kaigen.compile.bricks import settings
from kaigen.compile.problems import Problems
from kaigen.compile.serving.workloads import SERVE, Fleet, deployment
from kaigen.kinds.topology import TopologySpec


def template_port(spec: TopologySpec, problems: Problems) -> int:
    """The port that the template serves on: the spec's, else the first that a container names.

    Args:
        spec: the spec.
        problems: takes that nobody names one.
    """
    if "port" in spec.model_fields_set:
        return spec.port
    for container in _containers(spec.template):
        ports = container.get("ports")
        for port in ports if isinstance(ports, list) else []:
            if isinstance(port, Mapping) and isinstance(port.get("containerPort"), int):
                return int(port["containerPort"])
    problems.error(
        "KG0341",
        "the template names no port of a container, so nobody knows where it serves",
        ("spec", "template"),
        "add `ports: [{name: http, containerPort: …}]` to the container",
    )
    return spec.port


def template_deployment(template: Mapping[str, Any], fleet: Fleet, problems: Problems) -> Object:
    """A Deployment of the template's pods, with the app's labels added to theirs.

    Args:
        template: as the spec has it.
        fleet: what all workloads of the app have in common.
        problems: takes what is wrong with the template.
    """
    metadata = template.get("metadata")
    given: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    for part in sorted(template.keys() - {"metadata", "spec"}):
        problems.error(
            "KG0340",
            f"a pod template has no field `{part}`",
            ("spec", "template", part),
            "it has `metadata` and `spec`",
        )
    spec = template.get("spec")
    if not isinstance(spec, dict):
        at = ("spec", "template")
        problems.error("KG0341", "the template has no `spec`", at, "add it, with `containers`")
        spec = {}
    made = deployment(fleet, {})
    labels = fleet.frame.selector(SERVE)
    own = {**_texts(given.get("labels")), **labels.own}
    notes = {**_texts(given.get("annotations")), **fleet.annotations}
    pod: Setting = Setting(
        "podSpec", spec, "Spec of the pods.", settings.OBJECT, origin=("spec", "template", "spec")
    )
    whole: dict[str, Tree] = {
        "metadata": {
            "labels": Labels(labels.common, own, labels.helper),
            **({"annotations": notes} if notes else {}),
        },
        "spec": pod,
    }
    body = dict(made.body)
    body["spec"] = {**body["spec"], "template": whole}  # type: ignore[dict-item]
    return Object(role=made.role, body=body, wave=made.wave)


def _texts(value: object) -> dict[str, str]:
    """A mapping of texts, as labels and annotations are; the schema speaks of other values."""
    return {str(key): text for key, text in value.items()} if isinstance(value, Mapping) else {}


def _containers(template: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    spec = (template or {}).get("spec")
    found = spec.get("containers") if isinstance(spec, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
