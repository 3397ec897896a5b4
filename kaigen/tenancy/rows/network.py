"""What routes, Services, monitors and clusters of Ray reach.

KubeRay makes Services and Ingresses for a cluster of Ray. The rows of Services apply to the templates of Services.
Source of the fields: the CustomResourceDefinitions of ray-project/kuberay at feeaf72fa. The Ingress of a head has no
host unless an annotation names one, so it serves its path at all hosts
(ray-operator/controllers/ray/common/ingress.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import ALL, Step, mapping
from kaigen.tenancy.cel import at, texts
from kaigen.tenancy.conditions.references import OwnNamespace, Reference, ReferenceKind
from kaigen.tenancy.conditions.values import Granted, Matching, Missing, NotTrue, Server
from kaigen.tenancy.hosts import GATEWAY_GROUP as _GROUP
from kaigen.tenancy.hosts import HOST_ROUTES, INGRESS, INGRESS_HOSTS, ROUTE_HOSTS
from kaigen.tenancy.reach import RAY_HEADS, RAY_SERVICES, Reach, Refusal
from kaigen.tenancy.rows.classes import CLASS_REACHES

_NO_ADDRESS = ("", "None")
"""Addresses that name none: the API server chooses one, or the Service has none."""


class ChosenAddress(Struct, frozen=True):
    """A Service, or a template of one, whose address in the cluster the API server chooses.

    Another one could be that of a deleted Service, whose clients still connect to it.
    """

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each address."""
        spec = mapping(mapping(value).get("spec"))
        for field in ("clusterIP", "clusterIPs"):
            found = spec.get(field)
            listed = found if isinstance(found, list) else [found or ""]
            for number, address in enumerate(listed):
                if address not in _NO_ADDRESS:
                    path: FieldPath = ("spec", field, number) if isinstance(found, list) else ("spec", field)
                    yield Refusal(f"`{address}`", path)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Look for a manager of the field: policies see a Service after the API server chose its address.

        An update may keep the address that it has. No client can hide a field that it sets from `managedFields` of an
        object; those of a template are the client's own.
        """
        spec = at(value, ("spec",))
        free = (
            f"{at(spec, ('clusterIP',))}.orValue('') in {texts(_NO_ADDRESS)}"
            f" && {at(spec, ('clusterIPs',))}.orValue([]).all(a, a in {texts(_NO_ADDRESS)})"
        )
        if value != "object":
            return f"({free})"
        managers = f"{at(value, ('metadata', 'managedFields'))}.orValue([])"
        named = " || ".join(
            f"{at('m', ('fieldsV1', 'f:spec', f'f:{field}'))}.hasValue()" for field in ("clusterIP", "clusterIPs")
        )
        kept = " && ".join(
            f"{at(spec, (field,))} == {at('oldObject', ('spec', field))}" for field in ("clusterIP", "clusterIPs")
        )
        chosen = f"{managers}.size() > 0 && !{managers}.exists(m, {named})"
        return f"(({free}) || ({chosen}) || (request.operation == 'UPDATE' && {kept}))"


_ROUTES = (*HOST_ROUTES, f"TCPRoute.{_GROUP}", f"UDPRoute.{_GROUP}")
_INGRESS = (INGRESS,)
_GATEWAY = (f"Gateway.{_GROUP}",)
_POOL = "InferencePool.inference.networking.k8s.io"
_MONITORS = ("PodMonitor.monitoring.coreos.com", "ServiceMonitor.monitoring.coreos.com")
_RULES = ("spec", "rules", ALL)
_FILTERS = ((*_RULES, "filters", ALL), (*_RULES, "backendRefs", ALL, "filters", ALL))
_BACKENDS = (
    (*_RULES, "backendRefs", ALL),
    *((*place, filter_, "backendRef") for filter_ in ("requestMirror", "externalAuth") for place in _FILTERS),
)
"""Where routes name backends (source: Gateway API 1.4, `externalAuth` of the experimental channel included)."""

_CERTIFICATES = (("spec", "listeners", ALL, "tls", "certificateRefs", ALL),)
_OWN_CERTIFICATE = (("spec", "tls", "backend", "clientCertificateRef"),)
_AUTHORITIES = (
    ("spec", "listeners", ALL, "tls", "frontendValidation", "caCertificateRefs", ALL),
    ("spec", "tls", "frontend", "default", "validation", "caCertificateRefs", ALL),
    ("spec", "tls", "frontend", "perPort", ALL, "tls", "validation", "caCertificateRefs", ALL),
)
_ENDPOINTS = (("spec", "podMetricsEndpoints", ALL), ("spec", "endpoints", ALL))
_TARGET_LABEL = (
    "_?[A-Za-z][A-Za-z0-9_]*|__(metrics_path|scheme|scrape_(interval|timeout))__|__(param|tmp)_[A-Za-z0-9_]*"
)
"""Labels that relabelling may set. Others, such as `__address__`, decide which server Prometheus asks (source: the
documentation of Prometheus, relabel_config)."""
_RELABEL_ACTIONS = "(?i:replace|keep|drop|hashmod|labeldrop|labelkeep|lowercase|uppercase|keepequal|dropequal)"
"""All but labelmap, which may set any label."""

_PATH = r"[A-Za-z0-9/._~!&()*+,:=@%|?^\[\]$-]*"
"""Paths without characters that end a directive of a controller's configuration (source: CVE-2026-24512 of
ingress-nginx, kubernetes/kubernetes issue 136678)."""

_ADDRESS = Granted("addresses")

NETWORK_REACHES: tuple[Reach, ...] = (
    Reach("ingress-host", "the host", _INGRESS, (INGRESS_HOSTS,), Granted("hosts"), default="*"),
    Reach("ingress-tls", "the host", _INGRESS, (("spec", "tls", ALL, "hosts", ALL),), Granted("hosts")),
    Reach("ingress-path", "the path", _INGRESS, ((*_RULES, "http", "paths", ALL, "path"),), Matching(_PATH)),
    Reach("ingress-backend", "all hosts by a default backend", _INGRESS, (("spec", "defaultBackend"),), Missing()),
    Reach(
        "ingress-resource",
        "a backend that is not a Service",
        _INGRESS,
        ((*_RULES, "http", "paths", ALL, "backend", "resource"),),
        Missing(),
    ),
    Reach("route-host", "the host", HOST_ROUTES, (ROUTE_HOSTS,), Granted("hosts"), default="*"),
    Reach(
        "gateway-host", "the host", _GATEWAY, (("spec", "listeners", ALL, "hostname"),), Granted("hosts"), default="*"
    ),
    Reach("gateway-secret", "the Secret", _GATEWAY, _CERTIFICATES, Reference("references")),
    Reach(
        "gateway-authority",
        "the certificates of",
        _GATEWAY,
        (*_AUTHORITIES, *_OWN_CERTIFICATE),
        Reference("references"),
    ),
    Reach(
        "gateway-secret-kind",
        "certificates of kind",
        _GATEWAY,
        (*_CERTIFICATES, *_OWN_CERTIFICATE),
        ReferenceKind(("Secret",)),
    ),
    Reach(
        "gateway-authority-kind", "certificates of kind", _GATEWAY, _AUTHORITIES, ReferenceKind(("ConfigMap", "Secret"))
    ),
    # Istio merges a Deployment from the ConfigMap into the one that it makes (source: Istio, Kubernetes Gateway API,
    # automated deployment). What others merge is not a field of the Gateway either.
    Reach(
        "gateway-parameters",
        "parameters of the controller",
        _GATEWAY,
        (("spec", "infrastructure", "parametersRef"),),
        Missing(),
    ),
    # Each controller has its own (source: Gateway API 1.4, GatewayTLSConfig).
    Reach("gateway-option", "options of TLS", _GATEWAY, (("spec", "listeners", ALL, "tls", "options"),), Missing()),
    Reach("gateway-address", "the address", _GATEWAY, (("spec", "addresses", ALL, "value"),), _ADDRESS),
    Reach("route", "the reference", _ROUTES, (("spec", "parentRefs", ALL), *_BACKENDS), Reference("references")),
    # A Service as a parent changes the traffic of its clients in a mesh (source: Gateway API, GAMMA).
    Reach("route-parent", "a parent of kind", _ROUTES, (("spec", "parentRefs", ALL),), ReferenceKind(_GATEWAY)),
    # It attaches the route to Gateways of other namespaces (source: Gateway API, GEP-3793).
    Reach("route-default", "the cluster's default Gateways", _ROUTES, (("spec", "useDefaultGateways"),), Missing()),
    # Other kinds name servers of any namespace, such as Hostname of Istio, Backend of Envoy Gateway and the API of
    # Traefik as a TraefikService.
    Reach("route-backend", "a backend of kind", _ROUTES, _BACKENDS, ReferenceKind(("Service", _POOL))),
    Reach(
        "route-extension",
        "a filter of the controller",
        _ROUTES,
        tuple((*place, "extensionRef") for place in _FILTERS),
        Missing(),
    ),
    Reach(
        "pool-picker",
        "an endpoint picker of kind",
        (_POOL,),
        (("spec", "endpointPickerRef"),),
        ReferenceKind(("Service",)),
    ),
    Reach(
        "service", "a Service of type", ("Service",), (("spec", "type"),), Granted("services", always=("ClusterIP",))
    ),
    Reach(
        "service-address",
        "the address",
        ("Service",),
        (("spec", "loadBalancerIP"),),
        Granted("addresses", always=("",)),
    ),
    Reach("cluster-address", "the address", ("Service",), ((),), ChosenAddress()),
    Reach("service-name", "the server", ("Service",), (("spec", "externalName"),), Server(plain=True)),
    Reach(
        "endpoint",
        "the address",
        ("EndpointSlice.discovery.k8s.io",),
        (("endpoints", ALL, "addresses", ALL),),
        _ADDRESS,
    ),
    Reach(
        "endpoints",
        "the address",
        ("Endpoints",),
        tuple(("subsets", ALL, field, ALL, "ip") for field in ("addresses", "notReadyAddresses")),
        _ADDRESS,
    ),
    Reach("address", "external addresses", ("Service",), (("spec", "externalIPs"),), Missing()),
    Reach("monitor", "Pods of every namespace", _MONITORS, (("spec", "namespaceSelector", "any"),), NotTrue()),
    Reach(
        "monitored", "Pods of namespace", _MONITORS, (("spec", "namespaceSelector", "matchNames", ALL),), OwnNamespace()
    ),
    Reach(
        "monitor-server",
        "the server",
        _MONITORS,
        tuple(
            (*place, *path)
            for place in _ENDPOINTS
            for path in (("proxyUrl",), ("oauth2", "tokenUrl"), ("oauth2", "proxyUrl"))
        ),
        Server(plain=True),
    ),
    Reach(
        "monitor-file",
        "a file of Prometheus",
        ("ServiceMonitor.monitoring.coreos.com",),
        tuple(
            (*_ENDPOINTS[1], *path)
            for path in (("bearerTokenFile",), *(("tlsConfig", name) for name in ("caFile", "certFile", "keyFile")))
        ),
        Missing(),
    ),
    Reach(
        "monitor-label",
        "relabelling to",
        _MONITORS,
        tuple((*place, "relabelings", ALL, "targetLabel") for place in _ENDPOINTS),
        Matching(_TARGET_LABEL),
    ),
    Reach(
        "monitor-action",
        "relabelling by",
        _MONITORS,
        tuple((*place, "relabelings", ALL, "action") for place in _ENDPOINTS),
        Matching(_RELABEL_ACTIONS),
    ),
)


_RAY_KINDS = tuple(RAY_HEADS)
_RAY_PLACES = tuple(dict.fromkeys(place for places in RAY_SERVICES.values() for place in places))


def _in_heads(field: str) -> tuple[Step, ...]:
    return tuple((*head, field) for head in RAY_HEADS.values())


def _of_services() -> Iterator[Reach]:
    """Yield the rows of Services for the templates of Services; the head has a type of its own, too."""
    for row in (*NETWORK_REACHES, *CLASS_REACHES):
        if row.types == ("Service",):
            paths = tuple((*place, *path) for place in _RAY_PLACES for path in row.paths)
            paths = (*_in_heads("serviceType"), *paths) if row.name == "service" else paths
            yield row._replace(name=f"ray-{row.name}", types=_RAY_KINDS, paths=paths)


RAY_REACHES: tuple[Reach, ...] = (
    *_of_services(),
    Reach("ray-ingress", "all hosts by an Ingress", _RAY_KINDS, _in_heads("enableIngress"), NotTrue()),
)
