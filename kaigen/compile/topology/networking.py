"""How requests reach the pods of a Topology: who may connect, the Services, the pool, the routes."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.network import headless_service, network_policy, service
from kaigen.compile.builders.routes import inference_pool, route_objects
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.topology.engine import MASTER_PORT
from kaigen.compile.topology.resolution import Resolved
from kaigen.compile.topology.workloads import SERVE


def entrance(topology: Resolved) -> list[Object]:
    """The Service, and who may connect to what is behind it."""
    return [
        network_policy(
            topology.frame,
            among_themselves=topology.parallel.nodes > 1,
            port=topology.port,
            allow_from=topology.spec.service.allow_from,
            origin=("spec", "service", "allowFrom"),
        ),
        _service(topology),
    ]


def _service(topology: Resolved) -> Object:
    given = topology.spec.service
    more: dict[str, Tree] = {}
    if given.type == "LoadBalancer":
        if given.load_balancer_class:
            more["loadBalancerClass"] = given.load_balancer_class
        if given.load_balancer_source_ranges:
            more["loadBalancerSourceRanges"] = settings.strings(
                "service.sourceRanges",
                given.load_balancer_source_ranges,
                "Networks that may connect.",
                origin=("spec", "service", "loadBalancerSourceRanges"),
            )
    return service(
        topology.frame,
        SERVE,
        type=Setting(
            "service.type",
            given.type,
            "Type of the Service.",
            {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
            origin=("spec", "service", "type"),
        ),
        port=_service_port(topology),
        target=topology.port if topology.mode == "template" else "http",
        annotations=given.annotations,
        more=more,
    )


def _service_port(topology: Resolved) -> Setting:
    return settings.count(
        "service.port", topology.spec.service.port, "Port of the Service.", origin=("spec", "service", "port")
    )


def pod_names(topology: Resolved, workloads: Sequence[Object]) -> list[Object]:
    """The Service that gives each pod of a StatefulSet its name; none where there is no StatefulSet."""
    if all(item.kind != "StatefulSet" for item in workloads):
        return []
    several = topology.parallel.nodes > 1
    component, port, name = (None, MASTER_PORT, "rendezvous") if several else (SERVE, topology.port, "http")
    return [headless_service(topology.frame, component, port, role="service-nodes", name=name)]


def routes(topology: Resolved) -> list[Object]:
    """The way in from outside of the cluster, and the pool that picks a pod for each request."""
    spec, frame = topology.spec, topology.frame
    made = []
    if spec.inference_pool is not None:
        made.append(inference_pool(frame, SERVE, spec.inference_pool, topology.port))
    if spec.route is not None:
        pool = spec.inference_pool is not None
        made += route_objects(frame, spec.route, service_port=_service_port(topology), pool=pool)
    return made
