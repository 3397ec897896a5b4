"""A pod template that a Topology takes as it is, in place of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import Object
from kaigen.compile.pod_template import check_pod_template, pod_template
from kaigen.compile.problems import Problems
from kaigen.compile.topology.workloads import SERVE, Fleet, deployment
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
    check_pod_template(template, problems)
    made = deployment(fleet, {})
    whole = pod_template(
        template, fleet.frame, SERVE, fleet.annotations, defaults={}, doc="Spec of the pods."
    )
    body = dict(made.body)
    body["spec"] = {**body["spec"], "template": whole}  # type: ignore[dict-item]
    return Object(role=made.role, body=body, wave=made.wave)


def _containers(template: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    spec = (template or {}).get("spec")
    found = spec.get("containers") if isinstance(spec, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
