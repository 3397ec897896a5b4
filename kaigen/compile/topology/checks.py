"""Checks of a resolved Topology: contradictions, and decisions that work but not as a reader of the spec may expect."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kaigen.catalog.proxies import GatewayLimit, IngressLimit, body_limit, gateway_limit, ingress_limit
from kaigen.compile.builders.image_build import check_build
from kaigen.compile.builders.mounts import check_mounts
from kaigen.compile.builders.pod_options import check_pod_options
from kaigen.compile.builders.pods import check_capabilities
from kaigen.compile.builders.queueing import check_queueing
from kaigen.compile.builders.routes import check_route
from kaigen.compile.builders.storage import check_room, check_storage_class
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.registry import hint_of
from kaigen.compile.model.volume import WEIGHTS_SUFFIX
from kaigen.compile.problems import Problems, ignored_fields, report_ignored_field
from kaigen.compile.topology.monitoring import check_monitoring
from kaigen.compile.topology.networking import clients_of
from kaigen.compile.topology.pod import engine_mounts, members, own_pod, params_of, required_environment
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.compile.topology.resources import check_host_memory, check_weights_in_memory, hub_model
from kaigen.compile.topology.router_checks import check_router
from kaigen.compile.topology.sizing import model_path
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.exposure import AliasService
from kaigen.kinds.model import Model
from kaigen.kinds.topology import TopologySpec

ETHERNET = ", and its pipeline stages talk over Ethernet"

_SPEC: FieldPath = ("spec",)
_SINGLE = {
    Workload.DEPLOYMENT: "on replicas of one pod",
    Workload.STATEFUL_SET: "on replicas of one pod",
    Workload.STATEFUL_SET_GROUPS: "on groups of StatefulSets, which Kueue places separately",
}
"""Why Kueue does not place the pods of a replica near each other, by what runs them."""
_DEGREES = {
    "shape.nodes": "nodes",
    "shape.tensorParallel": "tensor_parallel",
    "shape.pipelineParallel": "pipeline_parallel",
    "shape.dataParallel": "data_parallel",
}
"""Fields that may be 1 on every engine: it is what an engine without the field does."""


def check_topology(resolution: TopologyResolution, problems: Problems) -> None:
    """Report every problem of a Topology that its resolution did not."""
    spec, engine = resolution.spec, resolution.engine
    _check_fields(spec, engine, problems)
    engine.check(spec, problems)
    check_build(spec.build, spec.image, problems)
    _check_service(spec, engine, problems)
    _check_route(spec, problems)
    _check_guard(spec, engine, problems)
    check_router(resolution, problems)
    _check_limits(resolution, problems)
    _check_engine_args(spec, engine, problems)
    engine.check_flags(spec, resolution.image, resolution.parallelism, problems)
    engine.check_weights(
        spec,
        resolution.weights,
        resolution.sizing.flags,
        resolution.naming.folders,
        resolution.image,
        resolution.context.lock,
        problems,
    )
    _check_claims(resolution, problems)
    check_host_memory(spec, engine, resolution.parallelism, problems)
    check_weights_in_memory(spec, engine, resolution.parallelism, resolution.sizing, problems)
    _check_transfer(resolution, problems)
    _check_room(resolution, problems)
    _check_replicas(resolution, problems)
    _check_queue(resolution, problems)
    _check_rollout(resolution, problems)
    warn_of_surprises(resolution, problems)
    if engine.builds_pods:
        first = members(resolution)[0]
        check_mounts(engine_mounts(resolution, first), lambda _: (*_SPEC, "model"), problems)
        check_pod_options(
            partial(own_pod, resolution, first),
            spec,
            resolution.metadata.name,
            resolution.context,
            problems,
            nodes=resolution.parallelism.nodes,
        )
        check_capabilities(spec.security, problems)
        _check_environment(resolution, problems)


def _check_fields(spec: TopologySpec, engine: Engine, problems: Problems) -> None:
    """Report every field that the engine does not understand."""
    for field, path in ignored_fields(spec, engine.understood):
        if not (field in _DEGREES and getattr(spec.shape, _DEGREES[field]) == 1):
            report_ignored_field(problems, str(path[-1]), path, f"on {engine.label}", hint_of(engine, field))
    if engine.understands("servedNames") and not engine.several_names and len(spec.served_names) > 1:
        path, hint = (*_SPEC, "servedNames", 1), "keep one name: this server supports one only"
        report_ignored_field(problems, "servedNames[1]", path, f"on {engine.label}", hint)


def _check_service(spec: TopologySpec, engine: Engine, problems: Problems) -> None:
    check_load_balancer(spec.service, problems)
    if spec.service.type == "LoadBalancer" and spec.auth is None and not spec.service.load_balancer_source_ranges:
        ask = "require a key with `auth`, or " if engine.understands("auth") else ""
        problems.warning(
            "KG0352",
            "everyone who can connect to the load balancer can use the model",
            (*_SPEC, "service", "type"),
            f"{ask}list the allowed networks in `loadBalancerSourceRanges`",
        )


def check_load_balancer(service: AliasService, problems: Problems) -> None:
    """Report fields of a load balancer that a Service of another type does not use."""
    if service.type == "LoadBalancer":
        return
    for field in ("load_balancer_class", "load_balancer_source_ranges"):
        if field in set_fields(service):
            name = document_name(service, field)
            where = f"on a Service of type {service.type}"
            report_ignored_field(problems, name, (*_SPEC, "service", name), where, "set `type: LoadBalancer`")


def _check_route(spec: TopologySpec, problems: Problems) -> None:
    route = spec.route
    if route is None:
        return
    if route.gateway is None and spec.inference_pool is not None:
        hint = "use `route.gateway`, or leave the pool out"
        path = (*_SPEC, "inferencePool")
        report_ignored_field(problems, "inferencePool", path, "on an Ingress", hint)
    check_route(route, problems)


def _check_guard(spec: TopologySpec, engine: Engine, problems: Problems) -> None:
    """Warn of ways around the API key: paths that the engine does not guard."""
    guarded = engine.facts.guarded
    if spec.auth is None or guarded == "/" or not engine.understands("auth") or spec.router is not None:
        return
    message = f"{engine.label} asks for the API key only below `{guarded}`; the model answers on other paths too"
    route, service = spec.route, spec.service
    if route is not None and route.path and not f"{route.path}/".startswith(f"{guarded}/"):
        problems.warning("KG0359", message, (*_SPEC, "route", "path"), f"leave `path` out, or set `{guarded}`")
    if service.type == "LoadBalancer" and not service.load_balancer_source_ranges:
        hint = "list the allowed networks in `loadBalancerSourceRanges`, or use a `route`"
        problems.warning("KG0359", message, (*_SPEC, "service", "type"), hint)


def _check_limits(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of a route that ends requests which a model may need longer for, or refuses large ones."""
    route = resolution.spec.route
    if route is None:
        return
    path: FieldPath = (*_SPEC, "route", "ingress", "className")
    found: GatewayLimit | IngressLimit | None = None
    if route.ingress is not None:
        found = ingress_limit(route.ingress.class_name)
    elif route.gateway is not None and route.gateway.timeout is None:
        found = gateway_limit(route.gateway.class_name, resolution.context.profile.name)
        path = (*_SPEC, "route", "gateway")
    if found is not None and found.limit:
        message = f"the load balancer ends requests after {found.limit}; a model may need longer"
        problems.warning("KG0356", message, path, found.fix)
    body = body_limit(route.gateway.class_name) if route.gateway is not None else None
    if body is not None:
        message = f"the Gateway refuses requests of more than {body.limit}, such as audio, pictures and long prompts"
        problems.warning("KG0381", message, (*_SPEC, "route", "gateway", "className"), body.fix)


def _check_engine_args(spec: TopologySpec, engine: Engine, problems: Problems) -> None:
    """Report flags that kaigen sets from a field of the spec."""
    for written, path in _engine_args(spec):
        name = engine.short_flags.get(written) or written.lstrip("-").replace("_", "-")
        field = engine.managed_flags.get(name) or engine.managed_flags.get(name.removeprefix("no-"))
        if field is not None:
            message = f"the flag `--{name}` is managed by `{field}`"
            hint = f"set `{field}` instead" if engine.understands(field) else hint_of(engine, field)
            problems.error("KG0347", message, path, hint)


def _engine_args(spec: TopologySpec) -> Iterator[tuple[str, FieldPath]]:
    """Yield the spec's flags as written, with their paths."""
    given = spec.engine_args
    path: FieldPath = (*_SPEC, "engineArgs")
    if isinstance(given, dict):
        yield from ((name, (*path, name)) for name in given)
        return
    for index, argument in enumerate(given):
        if argument.startswith("-"):
            yield argument.partition("=")[0], (*path, index)


def _check_claims(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of a mounted claim that stores a Model, whose files are in a folder with the name of their revision."""
    for name, volume in resolution.spec.volumes.items():
        claim = volume.claim_name or ""
        model = claim.removesuffix(WEIGHTS_SUFFIX)
        if model == claim or resolution.context.specs.find(Model, resolution.namespace, model) is None:
            continue
        problems.warning(
            "KG0378",
            f"the volume of Model `{model}` has its files in a folder with the name of their revision, and nothing "
            "waits for them",
            (*_SPEC, "volumes", name, "claimName"),
            f"list it in `models`: the files are then in `/models/{model}`",
        )


def _check_transfer(resolution: TopologyResolution, problems: Problems) -> None:
    """Report a `transfer` block where the downloader fetches nothing."""
    if (
        "transfer" in set_fields(resolution.spec)
        and resolution.engine.builds_pods
        and not resolution.mounted.downloaded
    ):
        report_ignored_field(
            problems,
            "transfer",
            (*_SPEC, "transfer"),
            "where kaigen's downloader fetches nothing",
            "leave it out, or set it in the Model",
        )


def _check_room(resolution: TopologyResolution, problems: Problems) -> None:
    """Report a volume or scratch space that is smaller than the weights that each pod pulls."""
    spec = resolution.spec
    if spec.storage is not None:
        path = (*_SPEC, "storage", "storageClassName")
        check_storage_class(spec.storage.storage_class_name, resolution.context, path, problems)
    model = hub_model(spec, resolution.sizing)
    if model is None or not resolution.engine.builds_pods:
        return
    if spec.storage is not None:
        check_room(spec.storage.size, model, (*_SPEC, "storage", "size"), problems)
    elif spec.resources.ephemeral_storage is not None:
        path = (*_SPEC, "resources", "ephemeralStorage")
        check_room(spec.resources.ephemeral_storage, model, path, problems)


def _check_replicas(resolution: TopologyResolution, problems: Problems) -> None:
    spec = resolution.spec
    if resolution.max_replicas <= 1 and spec.disruption is not None:
        where = "on one replica, whose node could not be drained"
        hint = "leave it out, or set more replicas"
        report_ignored_field(problems, "disruption", (*_SPEC, "disruption"), where, hint)
    if spec.autoscale is not None and "replicas" in set_fields(spec.shape):
        path = (*_SPEC, "shape", "replicas")
        hint = "set `autoscale.min` instead"
        report_ignored_field(problems, "replicas", path, "where a scaler decides", hint)
    if resolution.workload is not Workload.STATEFUL_SET_GROUPS:
        return
    hint = "use LeaderWorkerSet: `shape.groups: leaderWorkerSet`"
    if spec.autoscale is not None:
        message = "no scaler can scale replicas that are StatefulSets of their own"
        problems.error("KG0353", message, (*_SPEC, "autoscale"), hint)
    elif spec.shape.replicas == 0:
        message = "replicas must be at least 1 where each replica is a StatefulSet of its own"
        problems.error("KG0353", message, (*_SPEC, "shape", "replicas"), hint)


def _check_queue(resolution: TopologyResolution, problems: Problems) -> None:
    """Report what Kueue does not do for the pods of a workload."""
    spec, workload = resolution.spec, resolution.workload
    check_queueing(spec.placement, resolution.context.profile, problems, why_single=_SINGLE.get(workload, ""))
    if spec.placement.queue is None:
        return
    if workload is Workload.STATEFUL_SET and spec.autoscale is not None and spec.autoscale.max > 1:
        problems.error(
            "KG0353",
            "Kueue scales a StatefulSet only to 0 and back, and `storage` makes the replicas a StatefulSet",
            (*_SPEC, "autoscale", "max"),
            "set `max: 1`, or leave `storage` or `placement.queue` out",
        )
    if workload is Workload.STATEFUL_SET_GROUPS:
        problems.warning(
            "KG0360",
            "Kueue admits the leader and the workers of a StatefulSet group separately, so one of them may wait "
            "for quota while the other occupies its GPUs",
            (*_SPEC, "placement", "queue"),
            "use LeaderWorkerSet, which Kueue admits as one: `shape.groups: leaderWorkerSet`",
        )


def _check_rollout(resolution: TopologyResolution, problems: Problems) -> None:
    """Report a rollout that the workload cannot do."""
    rollout, workload = resolution.spec.rollout, resolution.workload
    path: FieldPath = (*_SPEC, "rollout")
    if workload in {Workload.STATEFUL_SET, Workload.STATEFUL_SET_GROUPS}:
        several = workload is Workload.STATEFUL_SET_GROUPS
        where = "on groups of StatefulSets" if several else "on pods that own a volume"
        hint = "leave it out: they are replaced one by one"
        for field in ("max_surge", "max_unavailable"):
            if field in set_fields(rollout):
                name = document_name(rollout, field)
                report_ignored_field(problems, name, (*path, name), where, hint)
    elif rollout.max_surge in (0, "0%") and rollout.max_unavailable in (0, "0%"):
        problems.error(
            "KG0351",
            "maxSurge and maxUnavailable are both 0, so no pod could ever be replaced",
            (*path, "maxUnavailable"),
            "set one of them to 1 or more",
        )


def _check_environment(resolution: TopologyResolution, problems: Problems) -> None:
    """Report variables of the spec that kaigen sets itself."""
    required = {
        str(entry["name"]): None for member in members(resolution) for entry in required_environment(resolution, member)
    }
    for name in required:
        if name in resolution.spec.env:
            message = f"`{name}` is set by kaigen for this Topology"
            problems.error("KG0313", message, (*_SPEC, "env", name), "leave it out")
    params_of(resolution).check(resolution.spec.env, problems)


def warn_of_surprises(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of metrics that nothing collects or nobody reaches, and of nodes that the spec does not ask for."""
    _warn_of_metrics(resolution, problems)
    _warn_of_blocked_metrics(resolution, problems)
    check_monitoring(resolution, problems)
    _warn_of_open_access(resolution, problems)
    _warn_of_nodes(resolution, problems)


def _warn_of_metrics(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn where the scaler follows a metric of the engine, and the app makes nobody collect it."""
    autoscaling, spec = resolution.autoscaling, resolution.spec
    if autoscaling is None or not autoscaling.metric_name or spec.monitoring is not None:
        return
    if autoscaling.spec.pod_metric is None:
        problems.warning(
            "KG0357",
            f"the scaler follows `{autoscaling.metric_name}` of the pods, and no object of the app makes Prometheus "
            "collect it",
            (*_SPEC, "autoscale"),
            "set `monitoring: {}` for a PodMonitor, or configure Prometheus to collect it",
        )


def _warn_of_blocked_metrics(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn where the NetworkPolicy admits only pods of the app's namespace: Prometheus is rarely there."""
    spec, peers = resolution.spec, clients_of(resolution)
    if spec.monitoring is None or not peers or spec.router is not None:
        return
    if not any("namespaceSelector" in peer or "ipBlock" in peer for peer in peers):
        problems.warning(
            "KG0363",
            "`allowFrom` admits only pods of this namespace, so a Prometheus in another one cannot read the metrics",
            (*_SPEC, "service", "allowFrom"),
            "add `namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}` with the namespace of "
            "Prometheus",
        )


def _warn_of_open_access(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of a model that every pod of the cluster may use without a key, in a cluster that several teams share."""
    config, spec = resolution.context.config, resolution.spec
    tenancy = config.gitops.tenancy if config.gitops is not None else None
    denied = tenancy is not None and "Ingress" in tenancy.default_deny
    if spec.auth is not None or clients_of(resolution) or not (config.tenants or denied):
        return
    ask = "require a key with `auth`, or " if resolution.engine.understands("auth") else ""
    named = ", or name the ingress controller in `gitops.tenancy.ingressFrom` of kaigen.yaml" if denied else ""
    problems.warning(
        "KG0333",
        "every pod of the cluster may connect to the model, without a key",
        (*_SPEC, "service", "allowFrom"),
        f"{ask}list the clients in `service.allowFrom`{named}",
    )


def _warn_of_nodes(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of nodes, and of pipeline stages over Ethernet, that the plan chose and the spec does not mention."""
    shape, parallelism = resolution.spec.shape, resolution.parallelism
    slow = uses_ethernet(resolution)
    chosen = shape.nodes is None or (slow and shape.pipeline_parallel is None)
    if resolution.sizing.plan is None or parallelism.nodes == 1 or not chosen:
        return
    accept = f"`shape.nodes: {parallelism.nodes}`"
    if slow:
        accept += f" and `shape.pipelineParallel: {parallelism.pipeline}`"
    problems.warning(
        "KG0358",
        f"a replica uses {parallelism.summary}{ETHERNET if slow else ''}",
        model_path(resolution.spec),
        f"use larger nodes or more GPUs of a node; a Topology accepts it with {accept}",
    )


def uses_ethernet(resolution: TopologyResolution) -> bool:
    """Whether pipeline stages are on nodes without a fast network that the catalogue knows."""
    plan = resolution.sizing.plan
    return plan is not None and plan.layout.nodes > 1 and plan.layout.pp > 1 and not plan.hardware.network


def stops_the_only_replica(resolution: TopologyResolution) -> bool:
    """Whether a change stops the only replica before the next one starts."""
    spec, rollout = resolution.spec, resolution.spec.rollout
    if not resolution.engine.builds_pods or (spec.autoscale.min if spec.autoscale else spec.shape.replicas) != 1:
        return False
    if resolution.workload in {Workload.STATEFUL_SET, Workload.STATEFUL_SET_GROUPS}:
        return True
    if rollout.max_surge is not None:
        return rollout.max_surge in (0, "0%")
    return not resolution.can_surge or rollout.max_unavailable not in (None, 0, "0%")
