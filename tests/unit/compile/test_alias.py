"""An Alias: whose pods its Service selects, where its route leads, and what is reported about it."""

from __future__ import annotations

from kaigen.config.settings import Config
from tests.unit.compile.repository import Object, apps, codes, config

__all__ = ["config"]

PRESET = {"preset": "phi-4", "resources": {"gpus": 1, "gpuType": "A100-80GB"}}
HOST = {"host": "chat.example.com", "gateway": {"name": "public"}}


def spec(kind: str, name: str, **fields: object) -> Object:
    """Return a spec."""
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": fields}


def selected(service: Object, pods: Object) -> bool:
    """Return whether a Service selects the pods of a Deployment."""
    labels: dict[str, str] = pods["spec"]["template"]["metadata"]["labels"]
    selector: dict[str, str] = service["spec"]["selector"]
    return selector.items() <= labels.items()


def test_service_selects_the_pods_of_the_topology_and_no_others(config: Config) -> None:
    found = apps(config, spec("Topology", "new", **PRESET), spec("Alias", "old", topology="new"))
    assert set(found["old"]) == {("Service", "old")}
    service = found["old"]["Service", "old"]
    assert selected(service, found["new"]["Deployment", "new"])
    assert service["spec"]["selector"] == {"app.kubernetes.io/name": "new", "app.kubernetes.io/component": "serve"}
    assert service["spec"]["ports"] == found["new"]["Service", "new"]["spec"]["ports"]
    assert service["metadata"]["annotations"]["kaigen.dev/alias-of"] == "new"


def test_service_and_route_are_the_objects_that_the_old_topology_had(config: Config) -> None:
    """Their names, types and places stay, so that a syncer changes them and deletes none."""
    before = apps(config, spec("Topology", "old", **PRESET, route=HOST))["old"]
    after = apps(config, spec("Topology", "new", **PRESET), spec("Alias", "old", topology="new", route=HOST))["old"]
    assert after.keys() == {("Service", "old"), ("HTTPRoute", "old")}
    assert after["HTTPRoute", "old"] == before["HTTPRoute", "old"]
    for each in (before["Service", "old"], after["Service", "old"]):
        del each["spec"]["selector"]
        each["metadata"].pop("annotations", None)
    assert after["Service", "old"] == before["Service", "old"]


def test_requests_go_through_the_router_of_the_topology(config: Config) -> None:
    new = spec("Topology", "new", **PRESET, shape={"replicas": 2}, router={})
    found = apps(config, new, spec("Alias", "old", topology="new"))
    service = found["old"]["Service", "old"]
    assert selected(service, found["new"]["Deployment", "new-router"])
    assert not selected(service, found["new"]["Deployment", "new"])
    assert service["spec"]["ports"] == found["new"]["Service", "new"]["spec"]["ports"]


def test_route_leads_to_the_inference_pool_of_the_topology(config: Config) -> None:
    new = spec("Topology", "new", **PRESET, shape={"replicas": 2}, inferencePool={"endpointPicker": "picker"})
    found = apps(config, new, spec("Alias", "old", topology="new", route=HOST))
    (rule,) = found["old"]["HTTPRoute", "old"]["spec"]["rules"]
    assert [(each["kind"], each["name"]) for each in rule["backendRefs"]] == [("InferencePool", "new")]


def test_route_has_the_path_that_the_engine_of_the_topology_guards(config: Config) -> None:
    new = spec("Topology", "new", **PRESET, auth={"secret": "k"})
    found = apps(config, new, spec("Alias", "old", topology="new", route=HOST))
    (rule,) = found["old"]["HTTPRoute", "old"]["spec"]["rules"]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/v1"}}]


def test_port_of_a_pod_template_is_a_number(config: Config) -> None:
    container = {
        "name": "web",
        "image": "web:1",
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = {"automountServiceAccountToken": False, "securityContext": security, "containers": [container]}
    new = spec("Topology", "new", port=9000, template={"spec": pod})
    found = apps(config, new, spec("Alias", "old", topology="new", service={"port": 81}))
    (port,) = found["old"]["Service", "old"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (81, 9000)


def test_a_topology_that_does_not_exist_is_an_error(config: Config) -> None:
    new = spec("Topology", "new", **PRESET)
    assert codes(config, new, spec("Alias", "old", topology="nwe")) == [("KG0301", "spec.topology")]


def test_an_alias_of_the_same_name_is_an_error(config: Config) -> None:
    new = spec("Topology", "new", **PRESET)
    assert codes(config, new, spec("Alias", "new", topology="new")) == [("KG0302", "metadata.name")]


def test_errors_of_the_topology_are_reported_only_there(config: Config) -> None:
    new = spec("Topology", "new", preset="phi-4", resources={"gpuType": "L4"}, shape={"nodes": 1})
    found = codes(config, new, spec("Alias", "old", topology="new"))
    assert [code for code, _ in found] == ["KG1105"]


def test_one_host_in_two_routes_is_an_error(config: Config) -> None:
    new = spec("Topology", "new", **PRESET, route=HOST)
    assert codes(config, new, spec("Alias", "old", topology="new", route=HOST)) == [("KG0455", "spec.route.host")]
    other = {**HOST, "host": "old.example.com"}
    assert codes(config, new, spec("Alias", "old", topology="new", route=other)) == []


def test_fields_of_a_load_balancer_need_its_type(config: Config) -> None:
    new = spec("Topology", "new", **PRESET)
    old = spec("Alias", "old", topology="new", service={"loadBalancerClass": "a"})
    assert codes(config, new, old) == [("KG0340", "spec.service.loadBalancerClass")]
