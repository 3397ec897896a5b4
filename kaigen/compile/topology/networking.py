"""How requests reach the pods of a Topology: network policy, Services, inference pool, routes."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders.network import (
    client_peers,
    client_service,
    headless_service,
    network_policy,
    service_port,
)
from kaigen.compile.builders.pools import canary_service, share_of
from kaigen.compile.builders.routes import inference_pool, route_objects
from kaigen.compile.builders.workloads import SERVE, WORKER
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.distributed_llama import READY_SUFFIX
from kaigen.compile.expressions import Release
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.compile.topology.router_config import ROUTER
from kaigen.core.json_types import JsonObject
from kaigen.kinds.exposure import EVERY_REQUEST
from kaigen.kinds.topology import TopologySpec


def clients_of(resolution: TopologyResolution) -> Sequence[JsonObject]:
    """Return the peers that may connect to the pods of a Topology; everyone when empty."""
    spec = resolution.spec
    return client_peers(spec.service, resolution.context, routed=spec.route is not None)


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
    naming, canary = resolution.naming, resolution.canary
    if canary is not None and canary.weight == EVERY_REQUEST:
        return canary_service(resolution.frame, resolution.spec.service, canary)
    return client_service(
        resolution.frame,
        SERVE if resolution.spec.router is None else ROUTER,
        resolution.spec.service,
        target="http" if resolution.engine.builds_pods or resolution.spec.router is not None else resolution.port,
        further_ports=naming.service_ports,
        more={"publishNotReadyAddresses": True} if naming.publish_not_ready else {},
    )


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
            share=share_of(resolution.canary),
        )
    return objects
