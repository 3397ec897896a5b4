"""Containers and pods that the user describes in place of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kaigen.catalog.engines import EngineFacts
from kaigen.compile.builders.pods import entry_point
from kaigen.compile.engines.base import AROUND_PODS, PODS, Engine
from kaigen.compile.engines.launch import Launch, Parallelism
from kaigen.compile.expressions import Tree
from kaigen.compile.pod_template import check_pod_template
from kaigen.compile.problems import Problems
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import Image
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.plan import Plan


class Container(Engine):
    """Any server in a container."""

    name = "container"
    understood = PODS | {"command", "args", "storage", "transfer", "models"}
    hints: ClassVar[Mapping[str, str]] = {
        "": "use `command`, `args` and `env` instead",
        "shape": "use `engine: vllm`, which supports it",
        "model.huggingFace": "create a Model and set `model` to its name, or pull the weights with `env` and `args`",
        "model.facts": "leave it out: kaigen has no memory model of the container",
    }
    requires_model = False

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the entry point of the spec."""
        return entry_point(launch.spec.command, launch.spec.args)


class PodTemplate(Engine):
    """Pods that the user describes completely; kaigen adds labels and everything around the pods."""

    name = "template"
    understood = AROUND_PODS | {"template", "provisioning"}
    hints: ClassVar[Mapping[str, str]] = {"": "set it in the template", "shape": "leave it out"}
    builds_pods = False
    requires_image = False
    requires_model = False

    def __init__(self) -> None:
        super().__init__(EngineFacts(self.name, "a pod template", metrics={}))

    @property
    def label(self) -> str:
        """The engine's name in messages."""
        return "a pod template"

    def check(self, spec: TopologySpec, problems: Problems) -> None:
        """Report a template of the wrong shape."""
        assert spec.template is not None
        check_pod_template(spec.template, problems)

    def port(self, spec: TopologySpec, problems: Problems) -> int:
        """Return the port of the spec, else the first port of a container."""
        if "port" in set_fields(spec):
            return spec.port
        for container in _containers(spec.template):
            ports = container.get("ports")
            for port in ports if isinstance(ports, list) else []:
                if isinstance(port, Mapping) and isinstance(port.get("containerPort"), int):
                    return int(port["containerPort"])
        problems.error(
            "KG0341",
            "no container of the template names a port",
            ("spec", "template"),
            "add `ports: [{name: http, containerPort: …}]` to the container",
        )
        return spec.port

    def parallelism(
        self, spec: TopologySpec, image: Image, plan: Plan | None, gpus: int, problems: Problems
    ) -> Parallelism:
        """Return one pod; kaigen does not know what runs in it."""
        return Parallelism()

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Raise, since the template has its own command."""
        raise NotImplementedError


def _containers(template: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    spec = (template or {}).get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    items = containers if isinstance(containers, list) else []
    return [item for item in items if isinstance(item, Mapping)]
