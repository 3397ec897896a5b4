"""The compiler of the kind `Alias`: a Service, and a route, whose requests the pods of a Topology answer.

The objects have the names that those of a Topology with the name of the alias had. So a spec that becomes an alias
keeps its Service and its route under the same Application or Kustomization, and only the selector changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.network import client_service, service_port
from kaigen.compile.builders.other_apps import find_spec
from kaigen.compile.builders.routes import check_route, route_objects
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.context import Context
from kaigen.compile.engines.registry import engine_of
from kaigen.compile.expressions import Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.problems import Problems
from kaigen.compile.topology.checks import check_load_balancer
from kaigen.compile.topology.networking import default_path
from kaigen.core.json_types import FieldPath
from kaigen.kinds.alias import Alias, AliasSpec
from kaigen.kinds.base import Metadata
from kaigen.kinds.topology import Topology, TopologySpec
from kaigen.kubernetes.metadata_keys import ALIAS_OF

_TOPOLOGY: FieldPath = ("spec", "topology")
_NAME, _INSTANCE, _COMPONENT = (f"app.kubernetes.io/{key}" for key in ("name", "instance", "component"))


class AliasResolution(Struct, frozen=True):
    """What an alias leads to.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        frame: names and labels of the objects.
        serving: the spec of the Topology.
        component: value of the component label of its pods that answer.
        labels: further labels that select them.
        target: port of the pods, by name or number.
        further_ports: numbers of further ports of its Service by name.
        more: further fields of its Service.
    """

    metadata: Metadata
    spec: AliasSpec
    context: Context
    frame: Frame
    serving: TopologySpec
    component: str = SERVE
    labels: Mapping[str, str] = field(default_factory=dict)
    target: int | str = "http"
    further_ports: Mapping[str, int] = field(default_factory=dict)
    more: Mapping[str, Tree] = field(default_factory=dict)


def resolve_alias(block: Alias, context: Context, problems: Problems, naming: None) -> AliasResolution:
    """Return what an alias leads to, by the Service of the Topology as it is rendered.

    Args:
        block: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what is wrong.
        naming: there are no names of other systems.
    """
    spec, metadata = block.spec, block.metadata
    namespace = metadata.namespace or context.config.namespace
    topology = problems.attempt(lambda: find_spec(Topology, context, namespace, spec.topology, _TOPOLOGY), None)
    serving = topology.spec if topology is not None else TopologySpec()
    resolution = AliasResolution(metadata, spec, context, frame_of(metadata, context), serving)
    objects: Sequence[Mapping[str, Any]] | None = None
    if topology is not None and context.objects_of is not None:
        objects = context.objects_of(("Topology", namespace, spec.topology), context)
    # None, too, for a Topology with errors, which are reported there.
    named = (each for each in objects or () if each["metadata"]["name"] == spec.topology)
    service = next((each["spec"] for each in named if each["kind"] == "Service"), None)
    return resolution if service is None else _of_service(resolution, service)


def _of_service(resolution: AliasResolution, service: Mapping[str, Any]) -> AliasResolution:
    """Return a resolution whose Service selects what the Service of the Topology does."""
    first, *further = service["ports"]
    own = (_NAME, _INSTANCE, _COMPONENT)
    early = "publishNotReadyAddresses"
    return replace(
        resolution,
        component=service["selector"][_COMPONENT],
        labels={key: value for key, value in service["selector"].items() if key not in own},
        target=first["targetPort"],
        further_ports={port["name"]: port["port"] for port in further},
        more={early: True} if service.get(early) else {},
    )


def check_alias(resolution: AliasResolution, problems: Problems) -> None:
    """Report a route that the Topology has too, and fields without an effect."""
    spec, own = resolution.spec, resolution.serving.route
    check_load_balancer(spec.service, problems)
    if spec.route is None:
        return
    check_route(spec.route, problems)
    if own is not None and own.host == spec.route.host and own.path == spec.route.path:
        problems.error(
            "KG0455",
            f"Topology `{spec.topology}` has a route for the host `{own.host}` too",
            ("spec", "route", "host"),
            "leave `route` out in one of them, or choose another host for the Topology",
        )


def alias_objects(resolution: AliasResolution) -> list[Object]:
    """Return the objects of an alias, in the order of values.yaml."""
    spec, frame, serving = resolution.spec, resolution.frame, resolution.serving
    name = settings.text(
        "topology",
        spec.topology,
        f"Value of the label `{_NAME}` of the pods that answer: the name of their chart.",
        origin=_TOPOLOGY,
    )
    # Without the label of the release: that of the Topology is another one, whose name the chart cannot know.
    made = client_service(
        frame,
        resolution.component,
        spec.service,
        target=resolution.target,
        further_ports=resolution.further_ports,
        more=resolution.more,
        selector={_NAME: name, _COMPONENT: resolution.component, **resolution.labels},
        notes={ALIAS_OF: name},
    )
    if spec.route is None:
        return [made]
    return [
        made,
        *route_objects(
            frame,
            spec.route,
            path=spec.route.path or default_path(serving, engine_of(serving)),
            service_port=service_port(spec.service),
            pool=spec.topology if serving.inference_pool is not None else None,
            profile=resolution.context.profile.name,
        ),
    ]


def describe_alias(resolution: AliasResolution) -> Description:
    """Return the summary."""
    pool = resolution.serving.inference_pool is not None
    topology = resolution.spec.topology
    return Description(
        summary=f"Leads requests to the pods of Topology `{topology}`.",
        # Its pods are those of another app, so its own Service selects none here.
        external_objects=(("Service", resolution.metadata.name), *([("InferencePool", topology)] if pool else [])),
    )


compile_alias = KindCompiler(
    resolve=resolve_alias,
    check=check_alias,
    objects=alias_objects,
    describe=describe_alias,
    default_naming=None,
    settings_order=("topology", "service", "route"),
)
