"""How requests reach the pods of a Topology."""

from __future__ import annotations

from tests.unit.compile.specs import Object, app, objects, topology
from tests.unit.compile.topologies import CONTEXT


def test_other_ports_are_open_among_the_pods_of_groups_only() -> None:
    policy = objects(topology(model="many", shape={"nodes": 2}), CONTEXT)["NetworkPolicy"]["spec"]
    among, serving = policy["ingress"]
    assert among == {"from": [{"podSelector": policy["podSelector"]}]}
    assert serving == {"ports": [{"port": 8000, "protocol": "TCP"}]}
    (alone,) = objects(topology(model="many"), CONTEXT)["NetworkPolicy"]["spec"]["ingress"]
    assert alone == serving


def test_only_listed_peers_may_connect() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]
    block = topology(model="many", service={"allowFrom": peers})
    assert objects(block, CONTEXT)["NetworkPolicy"]["spec"]["ingress"][0]["from"] == peers


def test_routes_come_in_the_last_wave() -> None:
    ways: list[tuple[Object, list[str]]] = [
        ({"gateway": {"name": "g", "namespace": "n"}}, ["HTTPRoute"]),
        (
            {"gateway": {"className": "c"}, "tls": {"secretName": "s", "clusterIssuer": "i"}},
            ["Gateway", "HTTPRoute"],
        ),
        ({"ingress": {"className": "c"}, "tls": {"secretName": "s"}}, ["Ingress"]),
    ]
    for way, kinds in ways:
        made = objects(topology(model="many", route={"host": "h.example", **way}), CONTEXT)
        assert sorted(set(made) - {"Deployment", "NetworkPolicy", "Service"}) == kinds
        for kind in kinds:
            assert made[kind]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "4"
        if "Gateway" in kinds:
            (listener,) = made["Gateway"]["spec"]["listeners"]
            assert (listener["protocol"], listener["hostname"]) == ("HTTPS", "h.example")
            assert made["Gateway"]["metadata"]["annotations"]["cert-manager.io/cluster-issuer"] == "i"


def test_route_sends_requests_to_the_inference_pool() -> None:
    block = topology(
        model="many",
        inferencePool={"endpointPicker": "epp"},
        route={"host": "h", "gateway": {"name": "g", "timeout": "1d90s"}},
    )
    made = objects(block, CONTEXT)
    rule = made["HTTPRoute"]["spec"]["rules"][0]
    assert rule["backendRefs"][0]["kind"] == "InferencePool"
    assert rule["timeouts"] == {"request": "24h1m30s"}
    pool = made["InferencePool"]["spec"]
    assert pool["endpointPickerRef"]["name"] == "epp"
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert pool["selector"]["matchLabels"].items() <= labels.items()
    assert app(block, CONTEXT).external_objects == (("Service", "epp"),)
