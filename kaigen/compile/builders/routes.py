"""Routes from outside the cluster: Gateway API, Ingress and inference pools."""

from __future__ import annotations

from msgspec import Struct

from kaigen.catalog.proxies import gateway_limit, ingress_limit
from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.exposure import EVERY_REQUEST, Gateway, HostRoute, InferencePool, Tls

WAVE = 4
_GATEWAY = "gateway.networking.k8s.io"
_POOL = "inference.networking.k8s.io"
_ORIGIN: FieldPath = ("spec", "route")


class Share(Struct, frozen=True):
    """The share of a route's requests that another Service gets.

    Attributes:
        service: name of the Service.
        port: its port.
        weight: percentage of the requests.
    """

    service: Tree
    port: int
    weight: int


def check_route(route: HostRoute, problems: Problems) -> None:
    """Report fields of a route that its Gateway does not use."""
    gateway = route.gateway
    if gateway is None:
        return
    if gateway.name is not None and route.tls is not None:
        where = f"on the Gateway `{gateway.name}`"
        hint = "leave `tls` out: the Gateway's listener has the certificate"
        report_ignored_field(problems, "tls", (*_ORIGIN, "tls"), where, hint)
    if gateway.class_name is not None:
        for field in ("namespace", "section_name"):
            if field in set_fields(gateway):
                name = document_name(gateway, field)
                path = (*_ORIGIN, "gateway", name)
                report_ignored_field(problems, name, path, "on a Gateway of the app's own", "leave it out")


def route_objects(
    frame: Frame,
    route: HostRoute,
    *,
    path: str,
    service_port: Tree,
    pool: Tree,
    profile: str,
    share: Share | None = None,
) -> list[Object]:
    """Return the objects that route requests for a host to the app.

    Args:
        frame: the app.
        route: the spec's block.
        path: path prefix of requests.
        service_port: port of the app's Service.
        pool: name of the InferencePool to route to instead of the app's Service; None for the Service.
        profile: name of the cluster's profile.
        share: what another Service gets of the requests over a Gateway; None for nothing.
    """
    if route.ingress is not None:
        return [_ingress(frame, route, path, service_port)]
    assert route.gateway is not None
    gateways = [_gateway(frame, route)] if route.gateway.class_name else []
    backend: dict[str, Tree] = (
        {"group": _POOL, "kind": "InferencePool", "name": pool, "weight": 1}
        if pool is not None
        else {"group": "", "kind": "Service", "name": Release(), "port": service_port, "weight": 1}
    )
    backends = [backend]
    if share is not None:
        backend["weight"] = EVERY_REQUEST - share.weight
        other: dict[str, Tree] = {"group": "", "kind": "Service", "name": share.service, "port": share.port}
        backends.append({**other, "weight": share.weight})
    return [*gateways, _http_route(frame, route, path, backends, profile)]


def route_host(route: HostRoute) -> Setting:
    """Return the host name of a route."""
    return settings.text("route.host", route.host, "Host name of the route.", origin=(*_ORIGIN, "host"))


def _tls_secret(tls: Tls) -> Tree:
    return settings.text(
        "route.tlsSecret",
        tls.secret.name,
        "Secret with the certificate of the host.",
        origin=(*_ORIGIN, "tls", "secret", "name"),
    )


def _timeout(gateway: Gateway, profile: str) -> str:
    """Return the time limit of a request in Gateway API's format; empty where the controller supports none.

    Without a limit in the HTTPRoute, Envoy ends a request after 15 seconds (source:
    https://gateway.envoyproxy.io/latest/tasks/traffic/http-timeouts). `0s` means no limit.
    """
    if gateway.timeout:
        return gateway_duration(gateway.timeout)
    return "" if gateway_limit(gateway.class_name, profile) else "0s"


def _http_route(frame: Frame, route: HostRoute, path: str, backends: list[dict[str, Tree]], profile: str) -> Object:
    gateway = route.gateway
    assert gateway is not None
    parent: dict[str, Tree] = {"group": _GATEWAY, "kind": "Gateway"}
    if gateway.name:
        parent["name"] = settings.text(
            "route.gateway", gateway.name, "Gateway that the route attaches to.", origin=(*_ORIGIN, "gateway", "name")
        )
        at = (*_ORIGIN, "gateway")
        parent["namespace"] = settings.text(
            "route.gatewayNamespace",
            gateway.namespace or "",
            "Namespace of the Gateway; empty for the release's.",
            optional=True,
            origin=(*at, "namespace"),
        )
        parent["sectionName"] = settings.text(
            "route.sectionName",
            gateway.section_name or "",
            "Listener of the Gateway; empty for all.",
            optional=True,
            origin=(*at, "sectionName"),
        )
    else:
        parent["name"] = Release()
    # The CRD's defaults are written out, since Argo CD reports defaulted fields in lists as differences.
    rule: dict[str, Tree] = {"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": [*backends]}
    timeout = _timeout(gateway, profile)
    if timeout:
        rule["timeouts"] = {"request": timeout, "backendRequest": timeout}
    return Object(
        role="httproute",
        wave=WAVE,
        body={
            "apiVersion": f"{_GATEWAY}/v1",
            "kind": "HTTPRoute",
            "metadata": frame.metadata("", "route", wave=WAVE),
            "spec": {"parentRefs": [parent], "hostnames": [route_host(route)], "rules": [rule]},
        },
    )


def gateway_duration(duration: str) -> str:
    """Return a duration in Gateway API's format: no days, each unit once with at most five digits (GEP-2257)."""
    left = seconds(duration)
    text = ""
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _gateway_class(gateway: Gateway) -> Tree:
    return settings.text(
        "route.gatewayClassName",
        gateway.class_name or "",
        "GatewayClass of the app's Gateway.",
        origin=(*_ORIGIN, "gateway", "className"),
    )


def _gateway(frame: Frame, route: HostRoute) -> Object:
    assert route.gateway is not None
    listener: dict[str, Tree] = {"name": "http", "hostname": route_host(route), "port": 80, "protocol": "HTTP"}
    notes: dict[str, str] = {}
    if route.tls:
        listener |= {"name": "https", "port": 443, "protocol": "HTTPS"}
        listener["tls"] = {
            "mode": "Terminate",
            "certificateRefs": [{"group": "", "kind": "Secret", "name": _tls_secret(route.tls)}],
        }
        if route.tls.cluster_issuer:
            notes["cert-manager.io/cluster-issuer"] = route.tls.cluster_issuer
    listener["allowedRoutes"] = {"namespaces": {"from": "Same"}}
    return Object(
        role="gateway",
        wave=WAVE,
        body={
            "apiVersion": f"{_GATEWAY}/v1",
            "kind": "Gateway",
            "metadata": frame.metadata("", "route", wave=WAVE, annotations=notes),
            "spec": {"gatewayClassName": _gateway_class(route.gateway), "listeners": [listener]},
        },
    )


def _ingress(frame: Frame, route: HostRoute, path: str, service_port: Tree) -> Object:
    ingress = route.ingress
    assert ingress is not None
    limit = ingress_limit(ingress.class_name)
    given = {**(limit.annotations if limit else {}), **ingress.annotations}
    notes: dict[str, Tree] = {}
    spec: dict[str, Tree] = {
        "ingressClassName": settings.text(
            "route.ingressClassName",
            ingress.class_name or "",
            "IngressClass; empty for the cluster's default.",
            optional=True,
            origin=(*_ORIGIN, "ingress", "className"),
        ),
        "rules": [
            {
                "host": route_host(route),
                "http": {
                    "paths": [
                        {
                            "path": path,
                            "pathType": "Prefix",
                            "backend": {"service": {"name": Release(), "port": {"number": service_port}}},
                        }
                    ]
                },
            }
        ],
    }
    if route.tls:
        spec["tls"] = [{"hosts": [route_host(route)], "secretName": _tls_secret(route.tls)}]
        if route.tls.cluster_issuer:
            notes["cert-manager.io/cluster-issuer"] = route.tls.cluster_issuer
    return Object(
        role="ingress",
        wave=WAVE,
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": frame.metadata(
                "",
                "route",
                wave=WAVE,
                annotations=notes,
                more=settings.string_map(
                    "route.annotations",
                    given,
                    "Annotations of the Ingress, which its controller reads.",
                    origin=(*_ORIGIN, "ingress", "annotations"),
                ),
            ),
            "spec": spec,
        },
    )


def inference_pool(frame: Frame, component: str, pool: InferencePool, port: int) -> Object:
    """Return the pool of pods that an endpoint picker chooses from."""
    name = settings.text(
        "inferencePool.endpointPicker",
        pool.endpoint_picker,
        "Service of the endpoint picker.",
        origin=("spec", "inferencePool", "endpointPicker"),
    )
    return _pool(frame, component, port, name, pool.port, pool.failure_mode)


def router_pool(frame: Frame, component: str, port: int, *, picker: tuple[Tree, int], fail_open: bool) -> Object:
    """Return the pool that the pickers of a router read their pods from. No Gateway refers to it.

    Args:
        frame: the app.
        component: value of the pods' component label.
        port: port of the pods.
        picker: Service of the pickers, which its API requires, and their port.
        fail_open: whether requests go to any pod when the picker does not answer.
    """
    return _pool(frame, component, port, *picker, "FailOpen" if fail_open else "FailClose", suffix="-router", wave=0)


def _pool(
    frame: Frame,
    component: str,
    port: int,
    picker: Tree,
    picker_port: int,
    failure_mode: str,
    *,
    suffix: str = "",
    wave: int = WAVE,
) -> Object:
    return Object(
        role=f"inferencepool{suffix}",
        wave=wave,
        body={
            "apiVersion": f"{_POOL}/v1",
            "kind": "InferencePool",
            "metadata": frame.metadata("", "route", wave=wave),
            "spec": {
                "selector": {"matchLabels": frame.selector(component)},
                "targetPorts": [{"number": port}],
                "endpointPickerRef": {
                    "group": "",
                    "kind": "Service",
                    "name": picker,
                    "port": {"number": picker_port},
                    "failureMode": failure_mode,
                },
            },
        },
    )
