"""Ingresses, routes, Gateways, Services and endpoints: hosts, addresses, certificates and backends."""

from __future__ import annotations

from tests.tenancy.objects import gateway, ingress, object_of, service
from tests.tenancy.tenants import Body


def _route(**spec: object) -> Body:
    return object_of("gateway.networking.k8s.io/v1", "HTTPRoute", spec={"hostnames": ["x.a.example.com"], **spec})


def _secret_of(namespace: str) -> Body:
    certificate = {"certificateRefs": [{"name": "c", "namespace": namespace}]}
    return gateway(port=443, protocol="HTTPS", tls=certificate)


_AUTHORITY: Body = {"caCertificateRefs": [{"kind": "ConfigMap", "group": "", "name": "c", "namespace": "team-b"}]}


def _gateway_tls(**tls: object) -> Body:
    """Return a Gateway with TLS for all of its listeners."""
    body = gateway(port=443, protocol="HTTPS", tls={"certificateRefs": [{"name": "c"}]})
    return {**body, "spec": {**body["spec"], "tls": tls}}


def _with_address(value: str, type_: str = "IPAddress") -> Body:
    body = gateway()
    return {**body, "spec": {**body["spec"], "addresses": [{"type": type_, "value": value}]}}


def _endpoints(address: str) -> Body:
    subsets = [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]
    return object_of("v1", "Endpoints", subsets=subsets)


def _slice(address: str, family: str = "IPv4") -> Body:
    return object_of(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType=family,
        endpoints=[{"addresses": [address]}],
        ports=[{"port": 80}],
    )


_MIRROR: Body = {
    "type": "RequestMirror",
    "requestMirror": {"backendRef": {"name": "s", "namespace": "team-b", "port": 80}},
}

DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"certificates of {place}": (body, "the certificates of `team-b/c`")
        for place, body in (
            ("clients", _gateway_tls(frontend={"default": {"validation": _AUTHORITY}})),
            (
                "clients of a port",
                _gateway_tls(frontend={"default": {}, "perPort": [{"port": 443, "tls": {"validation": _AUTHORITY}}]}),
            ),
            ("a Gateway itself", _gateway_tls(backend={"clientCertificateRef": {"name": "c", "namespace": "team-b"}})),
        )
    },
    "address of a Gateway": (_with_address("198.51.100.7"), "the address `198.51.100.7`"),
    "name as the address of a Gateway": (_with_address("x.team-b.svc", "Hostname"), "the address `x.team-b.svc`"),
    "address of a load balancer": (
        service(type="LoadBalancer", loadBalancerIP="198.51.100.7"),
        "the address `198.51.100.7`",
    ),
    **{
        f"{name} as a Service": (service(type="ExternalName", externalName=name), f"the server `{name}`")
        for name in ("x.team-b.svc.cluster.local", "kubernetes.default.svc", "metadata.google.internal", "x")
    },
    "address of endpoints": (_endpoints("10.0.0.1"), "the address `10.0.0.1`"),
    "address of an EndpointSlice": (_slice("10.0.0.1"), "the address `10.0.0.1`"),
    "name as endpoints": (_slice("x.team-b.svc", "FQDN"), "the address `x.team-b.svc`"),
    "path that ends a directive": (
        object_of(
            "networking.k8s.io/v1",
            "Ingress",
            spec={
                "ingressClassName": "nginx",
                "rules": [
                    {
                        "host": "x.a.example.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/x;}location / {",
                                    "pathType": "ImplementationSpecific",
                                    "backend": {"service": {"name": "x", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ],
            },
        ),
        "the path `/x;}location / {`",
    ),
    "host": (ingress("b.example.com"), "the host `b.example.com`"),
    "any host": (ingress(None), "the host `*`"),
    "host of a certificate": (ingress(tls=[{"hosts": ["b.example.com"]}]), "the host `b.example.com`"),
    "default backend": (
        ingress(defaultBackend={"service": {"name": "x", "port": {"number": 80}}}),
        "all hosts by a default backend",
    ),
    "host of a route": (_route(hostnames=["b.example.com"]), "the host `b.example.com`"),
    "any host of a route": (_route(hostnames=[]), "the host `*`"),
    "Gateway of another namespace": (
        _route(parentRefs=[{"name": "g", "namespace": "team-b"}]),
        "the reference `team-b/g`",
    ),
    "backend of another namespace": (
        _route(rules=[{"backendRefs": [{"name": "s", "namespace": "team-b", "port": 80}]}]),
        "the reference `team-b/s`",
    ),
    **{
        f"mirror of {place}": (_route(rules=[rule]), "the reference `team-b/s`")
        for place, rule in (
            ("a route", {"filters": [_MIRROR]}),
            ("a backend", {"backendRefs": [{"name": "s", "port": 80, "filters": [_MIRROR]}]}),
        )
    },
    "any host of a Gateway": (gateway(hostname=None), "the host `*`"),
    "certificate of another namespace": (_secret_of("team-b"), "the Secret `team-b/c`"),
    "type of a Service": (service(type="NodePort"), "a Service of type `NodePort`"),
    "address": (service(externalIPs=["192.0.2.1"]), "external addresses"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "certificates of clients": _gateway_tls(
        frontend={"default": {"validation": {"caCertificateRefs": [{"kind": "ConfigMap", "group": "", "name": "c"}]}}}
    ),
    "address of a Gateway": _with_address("192.0.2.7"),
    "address of a load balancer": service(type="LoadBalancer", loadBalancerIP="192.0.2.7"),
    "Service by another name": service(type="ExternalName", externalName="x.team-a.svc.cluster.local"),
    "Service of a server": service(type="ExternalName", externalName="x.metrics.example.com"),
    "endpoints": _endpoints("192.0.2.7"),
    "EndpointSlice": _slice("192.0.2.7"),
    "Ingress": ingress(),
    "load balancer": service(type="LoadBalancer"),
    "no address of a load balancer": service(loadBalancerIP=""),
    "route": _route(parentRefs=[{"name": "public", "namespace": "gateways"}]),
    "Gateway": _secret_of("team-a"),
    "Service": service(),
}
"""Objects that the tenant may have."""
