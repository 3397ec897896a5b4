"""Access to an app's pods: network policies, Services, and the monitoring of their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Setting, Tree
from kaigen.core.json_types import FieldPath, JsonObject

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.kinds.exposure import AliasService, Service
    from kaigen.kinds.operation import DownloadMonitoring


def network_switch() -> Setting:
    """Return the setting that decides whether the NetworkPolicy exists."""
    return settings.flag(
        "networkPolicy.enabled", True, "Create a NetworkPolicy that restricts connections to the app's pods."
    )


def network_policy(
    frame: Frame,
    *,
    among_themselves: bool = False,
    port: Tree = None,
    further_ports: Sequence[Tree] = (),
    allow_from: Sequence[Mapping[str, Any]] = (),
    origin: FieldPath = (),
    name: Tree = None,
) -> Object:
    """Return the policy that denies connections to the app's pods, except those named here.

    Args:
        frame: the app.
        among_themselves: whether its pods may connect to each other on every port.
        port: port that others may connect to; None for none.
        further_ports: ports that they may connect to as well, as ports of a NetworkPolicy.
        allow_from: peers that may connect to it; everyone when empty.
        origin: the spec's field of `allow_from`.
        name: name of the policy; the release's when None.
    """
    rules: list[Tree] = []
    if among_themselves:
        rules.append({"from": [{"podSelector": {"matchLabels": frame.selector()}}]})
    if port is not None:
        peers = settings.objects(
            "networkPolicy.from",
            allow_from,
            "Clients that may connect, as NetworkPolicy peers; empty for everyone.",
            origin=origin,
        )
        rules.append({"ports": [{"port": port, "protocol": "TCP"}, *further_ports], "from": peers})
    return Object(
        role="networkpolicy",
        when=network_switch(),
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": frame.metadata("", "network", name=name),
            "spec": {
                "podSelector": {"matchLabels": frame.selector()},
                "policyTypes": ["Ingress"],
                # No empty list: the API server drops it, so each apply would look like a change.
                **({"ingress": rules} if rules else {}),
            },
        },
    )


def service(
    frame: Frame,
    component: str,
    *,
    type: Tree = "ClusterIP",
    port: Tree,
    target: int | str = "http",
    annotations: Setting | None = None,
    further_ports: Mapping[str, int] | None = None,
    more: Mapping[str, Tree] | None = None,
    selector: Tree = None,
    notes: Mapping[str, Tree] | None = None,
    wave: int = 0,
) -> Object:
    """Return the Service of a component's ready pods.

    Args:
        frame: the app.
        component: value of the pods' component label.
        type: type of the Service.
        port: port of the Service.
        target: port of the pods, by name or number.
        annotations: setting with annotations of the Service.
        further_ports: numbers of further ports by name.
        more: further fields of its spec.
        selector: labels of the pods; those of the component when None.
        notes: kaigen's annotations of it.
        wave: its sync wave.
    """
    pods = frame.selector(component) if selector is None else selector
    ports: list[Tree] = [{"name": "http", "port": port, "targetPort": target, "protocol": "TCP"}]
    for name, number in (further_ports or {}).items():
        ports.append({"name": name, "port": number, "targetPort": number, "protocol": "TCP"})
    return Object(
        role="service",
        wave=wave,
        body={
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": frame.metadata("", component, wave=wave, annotations=notes, more=annotations),
            "spec": {"type": type, "selector": pods, "ports": ports, **(more or {})},
        },
    )


def client_peers(given: Service, context: Context, *, routed: bool) -> Sequence[JsonObject]:
    """Return the peers that may connect to the pods of a Service; everyone when empty.

    Those of the spec; else, where a policy denies connections to all pods of the namespace, its own pods and the peers
    that kaigen.yaml names. A load balancer's clients have no labels, and neither does a route's controller that
    kaigen.yaml does not name: these stay open, with a warning.

    Args:
        given: the spec's block.
        context: has the tenants' policies.
        routed: whether the app has a route from outside the cluster.
    """
    gitops = context.config.gitops
    tenancy = gitops.tenancy if gitops is not None else None
    if given.allow_from or tenancy is None or "Ingress" not in tenancy.default_deny:
        return given.allow_from
    if given.type != "ClusterIP" or (routed and not tenancy.ingress_from):
        return ()
    return [{"podSelector": {}}, *(peer.rule() for peer in tenancy.ingress_from)]


def service_port(given: AliasService) -> Setting:
    """Return the port of a Service."""
    return settings.count("service.port", given.port, "Port of the Service.", origin=("spec", "service", "port"))


def client_service(
    frame: Frame,
    component: str,
    given: AliasService,
    *,
    target: int | str = "http",
    further_ports: Mapping[str, int] | None = None,
    more: Mapping[str, Tree] | None = None,
    selector: Tree = None,
    notes: Mapping[str, Tree] | None = None,
    wave: int = 0,
) -> Object:
    """Return the Service of a spec that says how clients reach it.

    Args:
        frame: the app.
        component: value of the pods' component label.
        given: the spec's block.
        target: port of the pods, by name or number.
        further_ports: numbers of further ports by name.
        more: further fields of its spec.
        selector: labels of its pods; those of the component when None.
        notes: kaigen's annotations of it.
        wave: its sync wave.
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
        more={**balanced, **(more or {})},
        selector=selector,
        notes=notes,
        wave=wave,
    )


def headless_service(
    frame: Frame,
    component: str | None,
    port: int,
    *,
    role: str = "service",
    name: str = "rendezvous",
    suffix: str | None = None,
    ready: bool = False,
    further: Mapping[str, int] | None = None,
) -> Object:
    """Return the Service that gives pods stable host names, even before they are ready unless `ready`.

    Args:
        frame: the app.
        component: value of the pods' component label; None for all pods of the app.
        port: port that they connect to.
        role: the object's role.
        name: name of the port.
        suffix: end of its name; None for that of the app's host names.
        ready: whether it has only the pods that are ready.
        further: more ports, by name.
    """
    return Object(
        role=role,
        body={
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": frame.metadata(frame.headless_suffix if suffix is None else suffix, component or "network"),
            "spec": {
                "clusterIP": "None",
                **({} if ready else {"publishNotReadyAddresses": True}),
                "selector": frame.selector(component),
                "ports": [
                    {"name": each, "port": number, "targetPort": number, "protocol": "TCP"}
                    for each, number in {name: port, **(further or {})}.items()
                ],
            },
        },
    )


def pod_monitor(
    frame: Frame,
    component: str,
    monitoring: DownloadMonitoring,
    path: str,
    *,
    port: str = "http",
    wave: int = 3,
    suffix: str = "",
    further: Mapping[str, str] | None = None,
) -> Object:
    """Return a PodMonitor of a component's pods.

    Args:
        frame: the app.
        component: value of the pods' component label.
        monitoring: the block of the spec.
        path: path of the metrics.
        port: name of the containers' port.
        wave: sync wave.
        suffix: end of its name.
        further: paths of further metrics, by the name of their port.
    """
    interval: dict[str, Tree] = {"interval": monitoring.interval} if monitoring.interval else {}
    endpoints: Tree = [{"port": name, "path": at, **interval} for name, at in ((port, path), *(further or {}).items())]
    return Object(
        role=f"podmonitor{suffix}",
        wave=wave,
        body={
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": frame.metadata(suffix, "monitoring", wave=wave, labels=monitoring.labels),
            "spec": {"selector": {"matchLabels": frame.selector(component)}, "podMetricsEndpoints": endpoints},
        },
    )
