"""How requests reach the pods of a Topology."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kaigen.check.schema_check import check_object
from kaigen.compile.context import Context
from kaigen.config.gitops import GitOps
from tests.unit.compile.specs import Object, app, configured, context, objects, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, FOLDER


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


INGRESS: Object = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
ROUTE: Object = {"route": {"host": "h.example", "ingress": {}}}


def shared(denied: list[str], *peers: Object) -> Context:
    """A cluster whose namespaces have a policy that denies connections."""
    tenancy: Object = {"defaultDeny": denied, "ingressFrom": list(peers)}
    gitops = msgspec.convert({"repository": "https://git.example/a", "tenancy": tenancy}, GitOps)
    return configured(CONTEXT, gitops=gitops)


@pytest.mark.parametrize(
    ("where", "spec", "allowed", "open_to_all"),
    [
        (shared(["Ingress"]), {}, [{"podSelector": {}}], False),
        (shared(["Ingress"], INGRESS), ROUTE, [{"podSelector": {}}, INGRESS], False),
        (shared(["Ingress"], INGRESS), {"service": {"allowFrom": [INGRESS]}}, [INGRESS], False),
        (shared(["Ingress"]), ROUTE, None, True),
        (shared(["Ingress"]), {**ROUTE, "auth": {"secret": {"name": "s"}}}, None, False),
        (shared(["Egress"], INGRESS), {}, None, False),
        (CONTEXT, {}, None, False),
    ],
)
def test_clients_are_those_of_the_namespace_where_connections_are_denied(
    where: Context, spec: Object, allowed: list[Object] | None, open_to_all: bool
) -> None:
    block = topology(model="many", **spec)
    (rule,) = objects(block, where)["NetworkPolicy"]["spec"]["ingress"]
    assert rule.get("from") == allowed
    warned = [path for code, path in problem_paths(block, where) if code == "KG0333"]
    assert warned == (["spec.service.allowFrom"] if open_to_all else [])


def test_a_load_balancer_stays_open_where_connections_are_denied() -> None:
    service = {"type": "LoadBalancer", "loadBalancerSourceRanges": ["203.0.113.0/24"]}
    made = objects(topology(model="many", service=service), shared(["Ingress"], INGRESS))
    assert "from" not in made["NetworkPolicy"]["spec"]["ingress"][0]


def test_routes_come_in_the_last_wave() -> None:
    ways: list[tuple[Object, list[str]]] = [
        ({"gateway": {"name": "g", "namespace": "n"}}, ["HTTPRoute"]),
        (
            {"gateway": {"className": "c"}, "tls": {"secret": {"name": "s"}, "clusterIssuer": "i"}},
            ["Gateway", "HTTPRoute"],
        ),
        ({"ingress": {"className": "c"}, "tls": {"secret": {"name": "s"}}}, ["Ingress"]),
    ]
    for way, kinds in ways:
        made = objects(topology(model="many", route={"host": "h.example", **way}), CONTEXT)
        assert sorted(set(made) - {"ConfigMap", "Deployment", "NetworkPolicy", "Service"}) == kinds
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
    assert rule["timeouts"] == {"request": "24h1m30s", "backendRequest": "24h1m30s"}
    pool = made["InferencePool"]["spec"]
    assert pool["endpointPickerRef"]["name"] == "epp"
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert pool["selector"]["matchLabels"].items() <= labels.items()
    assert app(block, CONTEXT).external_objects == (("Service", "epp"),)


@pytest.mark.parametrize(
    ("profile", "gateway", "timeouts"),
    [
        ("generic", {"name": "g"}, {"request": "0s", "backendRequest": "0s"}),
        ("generic", {"className": "gke-l7-rilb"}, None),
        ("gke", {"name": "g"}, None),
        ("gke", {"className": "eg"}, {"request": "0s", "backendRequest": "0s"}),
        ("gke", {"name": "g", "timeout": "90s"}, {"request": "1m30s", "backendRequest": "1m30s"}),
    ],
)
def test_requests_have_no_time_limit_by_default(
    profile: str, gateway: dict[str, Any], timeouts: dict[str, str] | None
) -> None:
    block = topology(model=FOLDER, route={"host": "h", "gateway": gateway})
    made = objects(block, context(profile))["HTTPRoute"]
    (rule,) = made["spec"]["rules"]
    assert rule.get("timeouts") == timeouts
    assert check_object(made) == []
    warned = [("KG0356", "spec.route.gateway")] if timeouts is None else []
    assert problem_paths(block, context(profile)) == warned


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        (
            "nginx",
            {"nginx.ingress.kubernetes.io/proxy-read-timeout": "90"},
            {
                "nginx.ingress.kubernetes.io/proxy-read-timeout": "90",
                "nginx.ingress.kubernetes.io/proxy-send-timeout": "3600",
                "nginx.ingress.kubernetes.io/proxy-body-size": "100m",
            },
        ),
        ("alb", {}, {"alb.ingress.kubernetes.io/load-balancer-attributes": "idle_timeout.timeout_seconds=3600"}),
        ("traefik", {}, {}),
    ],
)
def test_ingress_has_the_limits_of_its_controller(name: str, given: dict[str, str], expected: dict[str, str]) -> None:
    route = {"host": "h", "ingress": {"className": name, "annotations": given}}
    notes = objects(topology(model=FOLDER, route=route), CONTEXT)["Ingress"]["metadata"]["annotations"]
    assert {key: value for key, value in notes.items() if "sync-wave" not in key} == expected


def test_warns_of_an_ingress_whose_time_limit_no_annotation_raises() -> None:
    block = topology(model=FOLDER, route={"host": "h", "ingress": {"className": "gce"}})
    assert problem_paths(block, CONTEXT) == [("KG0356", "spec.route.ingress.className")]


@pytest.mark.parametrize(("name", "expected"), [("nginx", [("KG0381", "spec.route.gateway.className")]), ("eg", [])])
def test_warns_of_a_gateway_that_refuses_large_requests(name: str, expected: list[tuple[str, str]]) -> None:
    block = topology(model=FOLDER, route={"host": "h", "gateway": {"className": name}})
    assert problem_paths(block, CONTEXT) == expected


@pytest.mark.parametrize("way", [{"gateway": {"name": "g", "namespace": "n"}}, {"ingress": {"className": "nginx"}}])
def test_a_route_leads_only_to_what_the_key_guards(way: Object) -> None:
    def paths(**spec: Any) -> list[str]:
        made = objects(topology(model=FOLDER, route={"host": "h.example", **way, **spec.pop("route", {})}, **spec))
        if "Ingress" in made:
            return [path["path"] for path in made["Ingress"]["spec"]["rules"][0]["http"]["paths"]]
        return [match["path"]["value"] for match in made["HTTPRoute"]["spec"]["rules"][0]["matches"]]

    auth = {"auth": {"secret": {"name": "s"}}}
    assert paths() == ["/"]
    assert paths(**auth) == ["/v1"]
    assert paths(**auth, route={"path": "/v1/chat"}) == ["/v1/chat"]
    assert paths(**auth, route={"path": "/"}) == ["/"]
    assert paths(**auth, engine="transformers") == ["/"]


@pytest.mark.parametrize(
    ("path", "warned"), [("/", True), ("/v1", False), ("/v1/chat", False), ("/v10", True), (None, False)]
)
def test_a_route_around_the_key_is_a_warning(path: str | None, warned: bool) -> None:
    route = {"host": "h", "ingress": {}, **({"path": path} if path else {})}
    block = topology(model=FOLDER, route=route, auth={"secret": {"name": "s"}})
    found = [(code, at) for code, at in problem_paths(block, CONTEXT) if code == "KG0359"]
    assert found == ([("KG0359", "spec.route.path")] if warned else [])
    assert not any(code == "KG0359" for code, _ in problem_paths(topology(model=FOLDER, route=route), CONTEXT))


def test_a_load_balancer_around_the_key_is_a_warning() -> None:
    service: Object = {"type": "LoadBalancer"}
    for more, expected in (({}, [("KG0359", "spec.service.type")]), ({"loadBalancerSourceRanges": ["10.0.0.0/8"]}, [])):
        block = topology(model=FOLDER, service={**service, **more}, auth={"secret": {"name": "s"}})
        assert problem_paths(block, CONTEXT) == expected
