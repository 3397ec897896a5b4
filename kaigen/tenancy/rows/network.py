"""What routes, Services and monitors reach."""

from __future__ import annotations

from kaigen.kubernetes.value_paths import ALL
from kaigen.tenancy.conditions.references import OwnNamespace, Reference
from kaigen.tenancy.conditions.servers import Server
from kaigen.tenancy.conditions.texts import Granted, Matching, Missing, NotTrue
from kaigen.tenancy.reach import Reach

ROUTES = ("HTTPRoute.gateway.networking.k8s.io", "GRPCRoute.gateway.networking.k8s.io")
_INGRESS = ("Ingress.networking.k8s.io",)
_GATEWAY = ("Gateway.gateway.networking.k8s.io",)
_MONITORS = ("PodMonitor.monitoring.coreos.com", "ServiceMonitor.monitoring.coreos.com")
_RULES = ("spec", "rules", ALL)
_MIRROR = ("requestMirror", "backendRef")
_ENDPOINTS = (("spec", "podMetricsEndpoints", ALL), ("spec", "endpoints", ALL))
_TARGET_LABEL = (
    "_?[A-Za-z][A-Za-z0-9_]*|__(metrics_path|scheme|scrape_(interval|timeout))__|__(param|tmp)_[A-Za-z0-9_]*"
)
"""Labels that relabelling may set. Others, such as `__address__`, decide which server Prometheus asks (source: the
documentation of Prometheus, relabel_config)."""
_RELABEL_ACTIONS = (
    "(?i:replace|keep|drop|hashmod|labeldrop|labelkeep|lowercase|uppercase|keepequal|dropequal)"
)
"""All but labelmap, which may set any label."""

_PATH = r"[A-Za-z0-9/._~!&()*+,:=@%|?^\[\]$-]*"
"""Paths without characters that end a directive of a controller's configuration (source: CVE-2026-24512 of
ingress-nginx, kubernetes/kubernetes issue 136678)."""

_ADDRESS = Granted("addresses")

NETWORK_REACHES: tuple[Reach, ...] = (
    Reach("ingress-host", "the host", _INGRESS, ((*_RULES, "host"),), Granted("hosts"), default="*"),
    Reach("ingress-tls", "the host", _INGRESS, (("spec", "tls", ALL, "hosts", ALL),), Granted("hosts")),
    Reach(
        "ingress-path",
        "the path",
        _INGRESS,
        ((*_RULES, "http", "paths", ALL, "path"),),
        Matching(_PATH),
    ),
    Reach(
        "ingress-backend",
        "all hosts by a default backend",
        _INGRESS,
        (("spec", "defaultBackend"),),
        Missing(),
    ),
    Reach("route-host", "the host", ROUTES, (("spec", "hostnames", ALL),), Granted("hosts"), default="*"),
    Reach(
        "gateway-host",
        "the host",
        _GATEWAY,
        (("spec", "listeners", ALL, "hostname"),),
        Granted("hosts"),
        default="*",
    ),
    Reach(
        "gateway-secret",
        "the Secret",
        _GATEWAY,
        (("spec", "listeners", ALL, "tls", "certificateRefs", ALL),),
        Reference("references"),
    ),
    Reach(
        "gateway-authority",
        "the certificates of",
        _GATEWAY,
        (
            ("spec", "listeners", ALL, "tls", "frontendValidation", "caCertificateRefs", ALL),
            ("spec", "tls", "frontend", "default", "validation", "caCertificateRefs", ALL),
            ("spec", "tls", "frontend", "perPort", ALL, "tls", "validation", "caCertificateRefs", ALL),
            ("spec", "tls", "backend", "clientCertificateRef"),
        ),
        Reference("references"),
    ),
    Reach("gateway-address", "the address", _GATEWAY, (("spec", "addresses", ALL, "value"),), _ADDRESS),
    Reach(
        "route",
        "the reference",
        ROUTES,
        (
            ("spec", "parentRefs", ALL),
            (*_RULES, "backendRefs", ALL),
            (*_RULES, "filters", ALL, *_MIRROR),
            (*_RULES, "backendRefs", ALL, "filters", ALL, *_MIRROR),
        ),
        Reference("references"),
    ),
    Reach(
        "service",
        "a Service of type",
        ("Service",),
        (("spec", "type"),),
        Granted("services", always=("ClusterIP",)),
    ),
    Reach(
        "service-address",
        "the address",
        ("Service",),
        (("spec", "loadBalancerIP"),),
        Granted("addresses", always=("",)),
    ),
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
    Reach(
        "monitor", "Pods of every namespace", _MONITORS, (("spec", "namespaceSelector", "any"),), NotTrue()
    ),
    Reach(
        "monitored",
        "Pods of namespace",
        _MONITORS,
        (("spec", "namespaceSelector", "matchNames", ALL),),
        OwnNamespace(),
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
            for path in (
                ("bearerTokenFile",),
                *(("tlsConfig", name) for name in ("caFile", "certFile", "keyFile")),
            )
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
