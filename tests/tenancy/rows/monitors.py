"""Monitors of Prometheus: what they scrape, by which server and with which labels."""

from __future__ import annotations

from tests.tenancy.objects import object_of, pod_monitor
from tests.tenancy.tenants import Body


def _relabelled(**rule: object) -> Body:
    return pod_monitor({"relabelings": [{"sourceLabels": ["pod"], **rule}]})


_MONITOR_LOGIN: Body = {"clientId": {"secret": {"name": "x", "key": "k"}}, "clientSecret": {"name": "x", "key": "k"}}


def _service_monitor(**endpoint: object) -> Body:
    spec = {"selector": {}, "endpoints": [{"port": "web", **endpoint}]}
    return object_of("monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


DENIED: dict[str, tuple[Body, str]] = {
    "proxy of a login of a monitor": (
        pod_monitor(
            {
                "oauth2": {
                    **_MONITOR_LOGIN,
                    "tokenUrl": "http://prometheus.monitoring/t",
                    "proxyUrl": "http://p.team-b.svc",
                }
            }
        ),
        "the server `http://p.team-b.svc`",
    ),
    "login of a monitor": (
        pod_monitor({"oauth2": {**_MONITOR_LOGIN, "tokenUrl": "p.team-b.svc/t"}}),
        "the server `p.team-b.svc/t`",
    ),
    "proxy of a monitor by SOCKS": (
        pod_monitor({"proxyUrl": "socks5://p.team-b.svc:1080"}),
        "the server `socks5://p.team-b.svc:1080`",
    ),
    **{
        f"{name} of a monitor": (body, "a file of Prometheus")
        for name, body in (
            ("token", _service_monitor(bearerTokenFile="/var/run/secrets/kubernetes.io/serviceaccount/token")),
            *((field, _service_monitor(tlsConfig={field: "/etc/x"})) for field in ("caFile", "certFile", "keyFile")),
        )
    },
    "monitor of everything": (pod_monitor(any=True), "Pods of every namespace"),
    "monitor of another namespace": (pod_monitor(matchNames=["team-b"]), "Pods of namespace `team-b`"),
    "proxy of a monitor": (pod_monitor({"proxyUrl": "http://p.team-b.svc:80"}), "the server `http://p.team-b.svc:80`"),
    "address of a monitor": (
        _relabelled(targetLabel="__address__", replacement="x.team-b:80"),
        "relabelling to `__address__`",
    ),
    "address of a monitor by a group": (_relabelled(targetLabel="__addre${1}"), "relabelling to `__addre${1}`"),
    "labels of a monitor": (_relabelled(action="LabelMap", regex="a(.*)"), "relabelling by `LabelMap`"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "ServiceMonitor": _service_monitor(tlsConfig={"ca": {"configMap": {"name": "x", "key": "k"}}}),
    "monitor": pod_monitor(matchNames=["team-a"]),
    "relabelled monitor": _relabelled(targetLabel="zone", action="replace"),
    "proxied monitor": pod_monitor({"proxyUrl": "http://prometheus.monitoring:80"}),
}
"""Objects that the tenant may have."""
