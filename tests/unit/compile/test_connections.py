"""What the pods of apps reach in a namespace that denies egress, by all policies that kaigen writes for it together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from kaigen.pipeline.validate import validate
from tests import plain_yaml

Object = dict[str, Any]
API, PUBLIC = "10.96.0.1", "198.51.100.7"
NETWORK = "network: {downloadEgress: {apiServer: [{ipBlock: {cidr: 10.96.0.1/32}}]}}\n"
CONFIG = """\
namespace: ml
cluster: {{lws: 0.9.0}}
gitops:
  repository: https://git.example.com/team/repository.git
  flux: {{}}
  tenancy: {{defaultDeny: [{directions}]}}
"""
SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source: {huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae557604adf67be50417f59c2c2f167def9a775}}
  store: {volume: {size: 5Gi, accessModes: [ReadWriteMany]}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: routed}
spec:
  model: qwen
  contextLength: 4096
  resources: {gpuType: L4}
  shape: {replicas: 2}
  router: {}
  monitoring: {traces: {endpoint: "http://collector.monitoring.svc:4317"}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: wide}
spec:
  model: qwen
  contextLength: 4096
  resources: {gpuType: L4}
  shape: {nodes: 2}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec: {image: "train:1", nodes: 2}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: alone}
spec: {image: "train:1"}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: fetching}
spec:
  image: "train:1"
  inputs: {files: [{url: "https://data.example.com/a.csv", sha256: SHA}]}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: speed}
spec: {workload: benchmark, target: routed, require: {ttft: {p95: 500ms}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Endpoint
metadata: {name: models}
spec:
  models: [wide]
  clients: {a: {models: ["*"]}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Notebook
metadata: {name: lab}
spec:
  image: registry.example.com/notebook:1
  route:
    host: lab.example.com
    gateway: {name: public}
    oidc: {issuer: "https://login.example.com/realms/ml", clientId: n, allowedEmails: [ada@example.com]}
""".replace("SHA", "a" * 64)


def written(root: Path, directions: str, network: str, specs: str = SPECS) -> Any:
    (root / "specs").mkdir(parents=True, exist_ok=True)
    (root / "specs" / "all.yaml").write_text(specs, encoding="utf-8")
    (root / "kaigen.yaml").write_text(CONFIG.format(directions=directions) + network, encoding="utf-8")
    return load_config(root)


def objects(root: Path, directions: str = "Ingress, Egress", network: str = NETWORK) -> list[Object]:
    files = render((), written(root, directions, network))
    return [
        body
        for path, data in files.items()
        if path.endswith(".yaml") and "/manifests/" in path
        for body in plain_yaml.load_all(bytes(data).decode())
        if body["kind"] != "Kustomization"
    ]


@pytest.fixture(name="found", scope="module")
def found_objects(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    return objects(tmp_path_factory.mktemp("repository"))


def pods(tree: Any) -> Iterator[Mapping[str, str]]:
    """Yield the labels of every pod in objects."""
    if isinstance(tree, list):
        for node in tree:
            yield from pods(node)
    elif isinstance(tree, dict):
        if "containers" in (tree.get("spec") or {}):
            yield tree["metadata"]["labels"]
        for node in tree.values():
            yield from pods(node)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    known = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return known and all(
        (labels.get(each["key"]) in each["values"]) is (each["operator"] == "In")
        for each in selector.get("matchExpressions", ())
    )


def admits(policy: Object, direction: str, other: Mapping[str, str] | str, port: int) -> bool:
    """Return whether a policy has a rule for a peer: labels of a pod of the namespace, an address, or a namespace."""
    field, peers = ("egress", "to") if direction == "Egress" else ("ingress", "from")
    for rule in policy["spec"].get(field, ()):
        if rule.get("ports") and port not in [each["port"] for each in rule["ports"]]:
            continue
        if not rule.get(peers) or any(is_peer(peer, other) for peer in rule[peers]):
            return True
    return False


def is_peer(peer: Object, other: Mapping[str, str] | str) -> bool:
    if "ipBlock" in peer:
        block, address = peer["ipBlock"], ip_address(other) if isinstance(other, str) and other[0].isdigit() else None
        inside = address is not None and address in ip_network(block["cidr"])
        return inside and not any(address in ip_network(each) for each in block.get("except", ()))
    place = other if isinstance(other, str) else "ml"
    if not selects(peer.get("namespaceSelector", {}), {"kubernetes.io/metadata.name": place}):
        return False
    return (isinstance(other, Mapping) and selects(peer.get("podSelector", {}), other)) or "podSelector" not in peer


def connects(found: list[Object], source: Mapping[str, str], target: Mapping[str, str] | str, port: int) -> bool:
    """Return whether a pod may connect to a pod, an address or a namespace, by the policies of both sides."""
    policies = [each for each in found if each["kind"] == "NetworkPolicy"]
    for direction, pod, other in (("Egress", source, target), ("Ingress", target, source)):
        if isinstance(pod, Mapping):
            applied = [
                each
                for each in policies
                if direction in each["spec"]["policyTypes"] and selects(each["spec"]["podSelector"], pod)
            ]
            if applied and not any(admits(each, direction, other, port) for each in applied):
                return False
    return True


def pod_of(found: list[Object], app: str, component: str = "") -> Mapping[str, str]:
    """Return the labels of a pod of an app."""
    names = {"app.kubernetes.io/name": app, **({"app.kubernetes.io/component": component} if component else {})}
    return next(labels for labels in pods(found) if names.items() <= labels.items())


@pytest.mark.parametrize(
    ("source", "target", "port", "allowed"),
    [
        # Envoy and the picker: the engines, the API server, the collector.
        (("routed", "router"), ("routed", "serve"), 8000, True),
        (("routed", "router"), API, 443, True),
        (("routed", "router"), "monitoring", 4317, True),
        (("routed", "serve"), "monitoring", 4317, True),
        (("routed", "router"), ("wide", ""), 8000, False),
        (("routed", "serve"), API, 443, False),
        (("routed", "serve"), PUBLIC, 443, False),
        # Groups: on every port among each other.
        (("wide", "serve"), ("wide", "worker"), 29500, True),
        (("train", "run"), ("train", "run"), 29500, True),
        (("train", "run"), PUBLIC, 443, False),
        # A gate: the Service, whose pods are the router's, and the API server. Not what is behind the router.
        (("speed", "run"), ("routed", "router"), 8080, True),
        (("speed", "run"), API, 6443, True),
        (("speed", "run"), ("routed", "serve"), 8000, False),
        (("speed", "run"), ("wide", "serve"), 8000, False),
        # An Endpoint: its Topologies only.
        (("models", "endpoint"), ("wide", "serve"), 8000, True),
        (("models", "endpoint"), ("routed", "router"), 8080, False),
        (("models", "endpoint"), API, 443, False),
        # A notebook: its provider.
        (("lab", "notebook"), PUBLIC, 443, True),
        (("lab", "notebook"), PUBLIC, 80, False),
        (("lab", "notebook"), ("routed", "router"), 8080, False),
        # Downloads of Models and of Jobs.
        (("qwen", "download"), PUBLIC, 443, True),
        (("qwen", "download"), API, 443, True),
        (("fetching", "run"), PUBLIC, 443, True),
        (("fetching", "run"), API, 6443, False),
        (("alone", "run"), PUBLIC, 443, False),
        (("alone", "run"), ("train", "run"), 80, False),
    ],
)
def test_pods_reach_what_their_specs_need_and_nothing_else(
    found: list[Object], source: tuple[str, str], target: tuple[str, str] | str, port: int, allowed: bool
) -> None:
    peer = target if isinstance(target, str) else pod_of(found, *target)
    assert connects(found, pod_of(found, *source), peer, port) is allowed


def test_every_pod_resolves_names(found: list[Object]) -> None:
    dns = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    for labels in pods(found):
        policies = [each["spec"] for each in found if each["kind"] == "NetworkPolicy"]
        applied = [each for each in policies if selects(each["podSelector"], labels)]
        to = [peer for each in applied for rule in each.get("egress", ()) for peer in rule.get("to", ())]
        assert any(dns.items() <= peer.items() for peer in to)


@pytest.mark.parametrize("directions", ["", "Ingress"])
def test_without_a_denial_no_policy_of_an_app_restricts_egress(tmp_path: Path, directions: str) -> None:
    found = objects(tmp_path, directions, network="")
    types = [each["spec"]["policyTypes"] for each in found if each["kind"] == "NetworkPolicy"]
    assert types
    assert ["Egress"] not in types
    diagnostics, _ = validate((), written(tmp_path, directions, ""))
    assert "KG0337" not in {each.code for each in diagnostics}


def test_what_kaigen_has_no_address_of_is_a_warning(tmp_path: Path) -> None:
    diagnostics, _ = validate((), written(tmp_path, "Egress", ""))
    found = [(each.mark.line if each.mark else 0, each.message) for each in diagnostics if each.code == "KG0337"]
    needs = {message.partition(", so the pods cannot reach ")[2] for _, message in found}
    hosts = {"`data.example.com`", "`login.example.com`"}
    assert needs == {"the API server and `huggingface.co`", "the API server", *hosts}
    assert [line for line, message in found if "login" in message] == [SPECS[: SPECS.index("oidc:")].count("\n") + 1]


def test_a_proxy_that_a_policy_of_the_namespace_allows_needs_no_other_one(tmp_path: Path) -> None:
    diagnostics, _ = validate((), written(tmp_path, "Egress", "network: {httpsProxy: 'http://proxy.infra.svc:3128'}\n"))
    found = [each.message for each in diagnostics if each.code == "KG0337"]
    assert {message.partition(", so the pods cannot reach ")[2] for message in found} == {"the API server"}


def test_a_service_without_svc_in_its_name_is_not_known_as_one(tmp_path: Path) -> None:
    specs = SPECS.replace("collector.monitoring.svc", "collector.monitoring")
    diagnostics, _ = validate((), written(tmp_path, "Egress", "", specs))
    (found,) = [each for each in diagnostics if each.code == "KG0337" and "collector" in each.message]
    assert found.hint.endswith("; if `collector.monitoring` is a Service, write `collector.monitoring.svc`")


def test_a_tenant_needs_a_grant_for_another_namespace(tmp_path: Path) -> None:
    granted = "servers: ['*.monitoring.svc'], images: ['*'], hosts: ['*'], references: ['*/*']"
    tenant = f"tenants: {{a: {{folders: [specs], namespaces: [ml], {granted}GRANT}}}}\n"
    for grant, denied in (("", True), (", networks: [monitoring]", False)):
        config = written(tmp_path, "Egress", NETWORK + tenant.replace("GRANT", grant))
        found = [each for each in validate((), config)[0] if each.code == "KG0337"]
        hint = "add `monitoring` to `networks` of the tenant in kaigen.yaml"
        assert [each.hint for each in found] == [hint] * denied
        opened = [
            peer
            for body in (objects(tmp_path, "Egress", NETWORK + tenant.replace("GRANT", grant)) if not denied else ())
            if body["metadata"]["name"] == "routed-connections"
            for rule in body["spec"]["egress"]
            for peer in rule["to"]
        ]
        assert any("namespaceSelector" in peer for peer in opened) is not denied
