"""The compiler of the kind `Alias`: a Service, and a route, whose requests the pods of a Topology answer.

The objects have the names that those of a Topology with the name of the alias had. So a spec that becomes an alias
keeps its Service and its route under the same Application or Kustomization, and only the selector changes.
"""

from __future__ import annotations

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import completion_test
from kaigen.compile.builders.network import service_port
from kaigen.compile.builders.pools import (
    Answering,
    Canary,
    answering_pods,
    canary_service,
    find_canary,
    find_serving,
    leading_service,
    share_of,
    waiting_job,
)
from kaigen.compile.builders.routes import check_route, route_objects
from kaigen.compile.context import Context
from kaigen.compile.engines.registry import engine_of
from kaigen.compile.finish import frame_of
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.problems import Problems
from kaigen.compile.topology.checks import check_load_balancer
from kaigen.compile.topology.networking import default_path
from kaigen.core.json_types import FieldPath
from kaigen.kinds.alias import Alias, AliasSpec
from kaigen.kinds.base import Metadata
from kaigen.kinds.exposure import EVERY_REQUEST
from kaigen.kinds.topology import TopologySpec

_TOPOLOGY: FieldPath = ("spec", "topology")
_CANARY: FieldPath = ("spec", "canary", "topology")
_NAME = "app.kubernetes.io/name"


class AliasResolution(Struct, frozen=True):
    """What an alias leads to.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        frame: names and labels of the objects.
        serving: the spec of the Topology.
        topology: name of the Topology, which `spec.topology` is unless that has pools with names of their own.
        answering: its pods.
        canary: a second pool that answers a share; None for none.
    """

    metadata: Metadata
    spec: AliasSpec
    context: Context
    frame: Frame
    serving: TopologySpec
    topology: str
    answering: Answering = Answering()
    canary: Canary | None = None


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
    found = problems.attempt(lambda: find_serving(context, namespace, spec.topology, _TOPOLOGY), None)
    serving = found.topology.spec if found is not None else TopologySpec()
    name = found.topology.metadata.name if found is not None else spec.topology
    given = spec.canary
    canary = None
    if given is not None:
        canary = problems.attempt(lambda: find_canary(context, namespace, given.topology, given.weight, _CANARY), None)
    pods = answering_pods(context, namespace, name) if found is not None else Answering()
    return AliasResolution(metadata, spec, context, frame_of(metadata, context), serving, name, pods, canary)


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
    spec, frame, serving, canary = resolution.spec, resolution.frame, resolution.serving, resolution.canary
    name = settings.text(
        "topology",
        resolution.topology,
        f"Value of the label `{_NAME}` of the pods that answer: the name of their chart.",
        origin=_TOPOLOGY,
    )
    waiting = waiting_job(frame, resolution.context, canary)
    made = leading_service(frame, spec.service, name, resolution.answering)
    if canary is not None and canary.weight == EVERY_REQUEST:
        made = canary_service(frame, spec.service, canary)
    tests = [
        test for each in waiting if each.kind == "Job" for test in completion_test(frame, each, resolution.context)
    ]
    if spec.route is None:
        return [*waiting, made, *tests]
    return [
        *waiting,
        made,
        *route_objects(
            frame,
            spec.route,
            path=spec.route.path or default_path(serving, engine_of(serving)),
            service_port=service_port(spec.service),
            pool=resolution.topology if serving.inference_pool is not None else None,
            profile=resolution.context.profile.name,
            share=share_of(canary),
        ),
        *tests,
    ]


def describe_alias(resolution: AliasResolution) -> Description:
    """Return the summary."""
    pool = resolution.serving.inference_pool is not None
    topology = resolution.topology
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
    settings_order=("topology", "canary", "service", "route"),
)
