"""How requests reach the pods of a Topology: network policy, Services, inference pool, routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.network import headless_service, network_policy, service
from kaigen.compile.builders.routes import inference_pool, route_objects
from kaigen.compile.builders.workloads import SERVE, WORKER
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.distributed_llama import READY_SUFFIX
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.compile.topology.router_config import ROUTER
from kaigen.core.json_types import JsonObject
from kaigen.kinds.exposure import AliasService
from kaigen.kinds.topology import TopologySpec


def clients_of(resolution: TopologyResolution) -> Sequence[JsonObject]:
    """Return the peers that may connect to the pods of a Topology; everyone when empty.

    Those of the spec; else, where a policy denies connections to all pods of the namespace, its own pods and the peers
    that kaigen.yaml names. A load balancer's clients have no labels, and neither does a route's controller that
    kaigen.yaml does not name: these stay open, with a warning.
    """
    spec, gitops = resolution.spec, resolution.context.config.gitops
    tenancy = gitops.tenancy if gitops is not None else None
    if spec.service.allow_from or tenancy is None or "Ingress" not in tenancy.default_deny:
        return spec.service.allow_from
    if spec.service.type != "ClusterIP" or (spec.route is not None and not tenancy.ingress_from):
        return ()
    return [{"podSelector": {}}, *(peer.rule() for peer in tenancy.ingress_from)]


def service_objects(resolution: TopologyResolution) -> list[Object]:
    """Return the Service, and the policy that decides who may connect to its pods."""
    if resolution.spec.router is not None:
        # The router's own policies replace it.
        return [_service(resolution)]
    return [
        network_policy(
            resolution.frame,
            among_themselves=resolution.parallelism.nodes > 1,
            port=resolution.port,
            further_ports=resolution.engine.data_ports(resolution.spec, resolution.parallelism),
            allow_from=clients_of(resolution),
            origin=("spec", "service", "allowFrom"),
        ),
        _service(resolution),
    ]


def _service(resolution: TopologyResolution) -> Object:
    naming = resolution.naming
    more: dict[str, Tree] = {"publishNotReadyAddresses": True} if naming.publish_not_ready else {}
    return exposed_service(
        resolution.frame,
        resolution.spec.service,
        SERVE if resolution.spec.router is None else ROUTER,
        target="http" if resolution.engine.builds_pods else resolution.port,
        further_ports=naming.service_ports,
        more=more,
    )


def exposed_service(
    frame: Frame,
    given: AliasService,
    component: str,
    *,
    target: int | str,
    further_ports: Mapping[str, int],
    more: Mapping[str, Tree],
    selector: Tree = None,
    notes: Mapping[str, Tree] | None = None,
) -> Object:
    """Return the Service that clients use.

    Args:
        frame: the app.
        given: the spec's block.
        component: value of its component label.
        target: port of the pods, by name or number.
        further_ports: numbers of further ports by name.
        more: further fields of its spec.
        selector: labels of its pods; those of the component when None.
        notes: kaigen's annotations of it.
    """
    balanced: dict[str, Tree] = {}
    if given.type == "LoadBalancer":
        if given.load_balancer_class:
            balanced["loadBalancerClass"] = given.load_balancer_class
        if given.load_balancer_source_ranges:
            balanced["loadBalancerSourceRanges"] = settings.strings(
                "service.sourceRanges",
                given.load_balancer_source_ranges,
                "Networks (CIDR) that may connect.",
                origin=("spec", "service", "loadBalancerSourceRanges"),
            )
    return service(
        frame,
        component,
        type=Setting(
            "service.type",
            given.type,
            "Type of the Service.",
            {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
            origin=("spec", "service", "type"),
        ),
        port=service_port(given),
        target=target,
        annotations=settings.string_map(
            "service.annotations",
            given.annotations,
            "Annotations of the Service.",
            origin=("spec", "service", "annotations"),
        ),
        further_ports=further_ports,
        more={**balanced, **more},
        selector=selector,
        notes=notes,
    )


def service_port(given: AliasService) -> Setting:
    """Return the port of the Service of a spec's block."""
    return settings.count("service.port", given.port, "Port of the Service.", origin=("spec", "service", "port"))


def headless_services(resolution: TopologyResolution) -> list[Object]:
    """Return the Service that gives the pods of StatefulSets host names; none for other workloads."""
    frame, port = resolution.frame, resolution.engine.rendezvous_port
    ready = _ready_workers(resolution)
    if resolution.workload is Workload.STATEFUL_SET_GROUPS:
        return [headless_service(frame, None, port, role="service-nodes"), *ready]
    if resolution.workload is Workload.STATEFUL_SET:
        return [headless_service(frame, SERVE, resolution.port, role="service-nodes", name="http")]
    return ready


def _ready_workers(resolution: TopologyResolution) -> list[Object]:
    """Return the Service by which the root of a ring finds in DNS which workers are ready; none for other engines."""
    if not resolution.engine.is_ring or resolution.parallelism.nodes == 1:
        return []
    port = resolution.engine.rendezvous_port
    made = headless_service(resolution.frame, WORKER, port, role="service-ready", suffix=READY_SUFFIX, ready=True)
    return [made]


def default_path(spec: TopologySpec, engine: Engine) -> str:
    """Return the path that requests from outside may have: only what the engine guards, if there is a key."""
    return "/" if spec.auth is None else engine.facts.guarded


def route_objects_of(resolution: TopologyResolution) -> list[Object]:
    """Return the routes from outside the cluster, and the pool that picks a pod for each request."""
    spec, frame = resolution.spec, resolution.frame
    objects = []
    if spec.inference_pool is not None:
        objects.append(inference_pool(frame, SERVE, spec.inference_pool, resolution.port))
    if spec.route is not None:
        pool = Release() if spec.inference_pool is not None else None
        objects += route_objects(
            frame,
            spec.route,
            path=spec.route.path or default_path(spec, resolution.engine),
            service_port=service_port(spec.service),
            pool=pool,
            profile=resolution.context.profile.name,
        )
    return objects
