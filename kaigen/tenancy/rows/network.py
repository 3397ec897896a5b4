"""What routes, Services and monitors reach."""

from __future__ import annotations

from kaigen.kubernetes.value_paths import ALL
from kaigen.tenancy.conditions.addresses import ChosenAddress
from kaigen.tenancy.conditions.references import OwnNamespace, Reference, ReferenceKind
from kaigen.tenancy.conditions.servers import Server
from kaigen.tenancy.conditions.texts import Granted, Matching, Missing, NotTrue
from kaigen.tenancy.hosts import GATEWAY_GROUP as _GROUP
from kaigen.tenancy.hosts import HOST_ROUTES, INGRESS, INGRESS_HOSTS, ROUTE_HOSTS
from kaigen.tenancy.reach import Reach

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
