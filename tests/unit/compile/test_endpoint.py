"""The kind `Endpoint`: its objects, who may use what, and what is reported about it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kaigen.catalog.profiles import get_profile
from kaigen.compile.context import Context, SpecIndex
from kaigen.compile.endpoint.access import ACCESS_FILE, Access, Client, read_access
from kaigen.compile.endpoint.resolution import served_by
from kaigen.config.settings import Config
from kaigen.kinds.block import read_block
from kaigen.kinds.endpoint import Endpoint
from kaigen.kinds.topology import Topology
from tests.unit.compile.specs import Object, app, problem_paths

GPU = {"preset": "phi-4", "resources": {"gpus": 1, "gpuType": "A100-80GB"}}
ADAPTER = {"name": "legal", "volume": {"claimName": "adapters"}}
ONLY = {"allowFrom": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "models"}}}]}
CLIENTS = {"team-a": {"models": ["chat", "legal"], "requestsPerMinute": 60}, "team-b": {"models": ["*"]}}


def topologies(**more: Any) -> dict[str, Object]:
    """Return specs of Topologies by name: one with an adapter, one with a key, one of a container."""
    return {
        "chat": {**GPU, "adapters": [ADAPTER]},
        "phi": {**GPU, "servedNames": ["org/phi"], "auth": {"secret": {"name": "phi-key"}}},
        "speech": {"engine": "container", "image": "speech:1"},
        **more,
    }


def context(**more: Any) -> Context:
    """Return a context with these Topologies."""
    found = {
        ("Topology", "default", name): read_block(Topology, {"metadata": {"name": name}, "spec": spec})
        for name, spec in topologies(**more).items()
    }
    return Context(get_profile("generic"), Config(), SpecIndex(found))


def endpoint(**spec: Any) -> Endpoint:
    """Return an Endpoint with these fields."""
    whole = {"models": ["chat", "phi"], "clients": CLIENTS, **spec}
    return read_block(Endpoint, {"metadata": {"name": "models"}, "spec": whole})


def made(where: Context | None = None, **spec: Any) -> dict[tuple[str, str], Object]:
    """Return the objects of an Endpoint, by kind and name."""
    rendered = app(endpoint(**spec), where or context()).render()
    return {(each.body["kind"], each.body["metadata"]["name"]): each.body for each in rendered}


def files(found: dict[tuple[str, str], Object]) -> dict[str, str]:
    """Return the data of its ConfigMap."""
    (data,) = (body["data"] for (kind, _), body in found.items() if kind == "ConfigMap")
    return dict(data)


def table(**spec: Any) -> Access:
    """Return who may use what."""
    return read_access(files(made(**spec))[ACCESS_FILE])


def manager(found: dict[tuple[str, str], Object]) -> Object:
    """Return the configuration of the listener of requests."""
    listener = yaml.safe_load(files(found)["envoy.yaml"])["static_resources"]["listeners"][0]
    return dict(listener["filter_chains"][0]["filters"][0]["typed_config"])


def test_models_and_adapters_lead_to_the_topology_that_serves_them() -> None:
    access = table()
    assert access.models == {"chat": "chat", "legal": "chat", "org/phi": "phi"}
    assert access.clients["team-b"] == Client(None, ("chat", "legal", "org/phi"))


def test_the_table_says_what_each_request_gets() -> None:
    access = table()
    answers = [("team-a", "legal"), ("team-a", "org/phi"), ("team-b", "org/phi"), ("team-b", "x"), (None, "chat")]
    assert [access.answer(*each) for each in answers] == ["chat", 403, "phi", 404, 401]
    assert read_access(access.text()) == access


def test_a_container_serves_the_names_that_the_endpoint_lists() -> None:
    models = ["chat", {"name": "speech", "serves": ["whisper-1"]}]
    assert table(models=models, clients={"a": {"models": ["whisper-1"]}}).models["whisper-1"] == "speech"
    assert problem_paths(endpoint(models=["chat", "speech"]), context())[0] == ("KG0488", "spec.models.1")


def test_serves_limits_the_names_of_a_topology() -> None:
    given = [{"name": "chat", "serves": ["legal"]}]
    assert table(models=given, clients={"a": {"models": ["*"]}}).models == {"legal": "chat"}


def test_an_engine_without_adapters_of_their_own_serves_only_its_names() -> None:
    spec = {"model": {"folder": "/m"}, "engine": "transformers", "image": "i:1", "adapters": [ADAPTER]}
    block = read_block(Topology, {"metadata": {"name": "t"}, "spec": spec})
    assert served_by(block) == ("t",)


def test_keys_are_files_of_secrets_and_never_in_the_configuration() -> None:
    clients = {**CLIENTS, "team-c": {"models": ["chat"], "secret": {"name": "c", "key": "k"}}}
    found = made(clients=clients)
    volumes = {each["name"]: each for each in found["Deployment", "models"]["spec"]["template"]["spec"]["volumes"]}
    shared = {"name": "models-keys", "items": [{"key": name, "path": name} for name in ("team-a", "team-b")]}
    own = {"name": "c", "items": [{"key": "k", "path": "team-c"}]}
    assert volumes["client-keys"]["projected"]["sources"] == [{"secret": shared}, {"secret": own}]
    engine = {"name": "phi-key", "items": [{"key": "api-key", "path": "phi"}]}
    assert volumes["engine-keys"]["projected"]["sources"] == [{"secret": engine}]
    assert read_access(files(found)[ACCESS_FILE]).guarded == {"phi"}


def test_a_changed_table_makes_new_pods() -> None:
    names = [
        found["Deployment", "models"]["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
        for found in (made(), made(), made(clients={"team-a": {"models": ["chat"]}}))
    ]
    assert names[0] == names[1] != names[2]


def test_the_key_is_checked_before_limits_and_the_body() -> None:
    filters = [each["name"] for each in manager(made())["http_filters"]]
    assert [name.rpartition(".")[2] for name in filters] == [
        *("keys", "local_ratelimit", "buffer", "json_to_metadata", "models", "router")
    ]


def test_each_client_with_a_limit_has_a_bucket_that_the_pods_share() -> None:
    limits = manager(made())["http_filters"][1]["typed_config"]
    (bucket,) = limits["descriptors"]
    assert bucket["entries"] == [{"key": "client", "value": "team-a"}]
    assert bucket["token_bucket"] == {"max_tokens": 60, "tokens_per_fill": 60, "fill_interval": "60s"}
    assert limits["local_cluster_rate_limit"] == {}
    whole = yaml.safe_load(files(made())["envoy.yaml"])
    arguments = made()["Deployment", "models"]["spec"]["template"]["spec"]["containers"][0]["args"]
    clusters = yaml.safe_load(arguments[arguments.index("--config-yaml") + 1])["static_resources"]["clusters"]
    assert whole["cluster_manager"]["local_cluster_name"] == clusters[0]["name"]
    assert [each["name"] for each in clusters[1:]] == ["topology-chat", "topology-phi"]


def test_answers_have_no_time_limit_and_bodies_have_one_of_size() -> None:
    found = manager(made(maxBody="8Mi"))
    routes = found["route_config"]["virtual_hosts"][0]["routes"]
    assert {each["route"]["timeout"] for each in routes if "route" in each} == {"0s"}
    assert found["stream_idle_timeout"] == "0s"
    assert found["http_filters"][2]["typed_config"]["max_request_bytes"] == 8 * 1024**2


def test_the_log_has_neither_headers_with_keys_nor_bodies() -> None:
    (log,) = manager(made())["access_log"]
    fields = log["typed_config"]["log_format"]["json_format"]
    assert {"client", "model", "topology", "status"} <= fields.keys()
    assert not any("AUTHORIZATION" in text.upper() or "API-KEY" in text.upper() for text in fields.values())


def test_one_pod_has_no_budget_and_only_monitoring_opens_the_port_of_metrics() -> None:
    assert ("PodDisruptionBudget", "models") in made()
    assert ("PodDisruptionBudget", "models") not in made(replicas=1)
    assert len(made()["NetworkPolicy", "models"]["spec"]["ingress"]) == 1
    rules = made(monitoring={})["NetworkPolicy", "models"]["spec"]["ingress"]
    assert rules[1] == {"ports": [{"port": 19001, "protocol": "TCP"}], "from": [{"namespaceSelector": {}}]}


@pytest.mark.parametrize(
    ("spec", "more", "expected"),
    [
        ({"models": ["chat", "twin"]}, {"twin": {**GPU, "servedNames": ["legal"]}}, [("KG0485", "spec.models.1")]),
        ({"models": ["chat", "nothing"]}, {}, [("KG0301", "spec.models.1")]),
        ({"models": [{"name": "chat", "serves": ["x"]}]}, {}, [("KG0486", "spec.models.0.serves.0")]),
        ({"clients": {"a": {"models": ["chat", "x"]}}}, {}, [("KG0486", "spec.clients.a.models.1")]),
        ({"tests": [{"model": "chat", "client": "x", "expect": "chat"}]}, {}, [("KG0486", "spec.tests.0.client")]),
        ({"tests": [{"model": "chat", "client": "team-a", "expect": 403}]}, {}, [("KG0487", "spec.tests.0.expect")]),
        ({"tests": [{"model": "x", "client": "team-a", "expect": 404}]}, {}, []),
        ({"tests": [{"model": "chat", "expect": 401}]}, {}, []),
        ({"replicas": 1}, {}, [("KG0492", "spec.replicas")]),
        ({"exclusive": True}, {"phi": {**GPU, "service": ONLY}}, [("KG0489", "spec.models.0")]),
        ({"exclusive": True, "models": ["chat"]}, {"chat": {**GPU, "service": ONLY}}, []),
        (
            {"exclusive": True, "models": ["chat"]},
            {"chat": {**GPU, "service": {**ONLY, "type": "LoadBalancer"}, "route": {"host": "a.b", "ingress": {}}}},
            [("KG0489", "spec.models.0")] * 2,
        ),
        (
            {"exclusive": True, "models": ["chat"]},
            {"chat": {**GPU, "service": {"allowFrom": [*ONLY["allowFrom"], {"podSelector": {}}]}}},
            [("KG0489", "spec.models.0")],
        ),
        (
            {"models": ["chat"]},
            {"chat": {**GPU, "service": {"allowFrom": [{"podSelector": {"matchLabels": {"app": "web"}}}]}}},
            [("KG0490", "spec.models.0")],
        ),
        (
            {"models": ["sums"]},
            {"sums": {**GPU, "auth": {"sha256": ["0" * 64]}}},
            [("KG0491", "spec.models.0")],
        ),
        (
            {"route": {"host": "a.b", "gateway": {"name": "g"}, "tls": {"secret": {"name": "t"}}}},
            {},
            [("KG0340", "spec.route.tls")],
        ),
    ],
)
def test_what_cannot_work_is_reported(spec: Object, more: Object, expected: list[tuple[str, str]]) -> None:
    given = {"models": ["chat", "phi"], **spec}
    clients = {} if "clients" in spec or given["models"] == ["chat", "phi"] else {"clients": {"all": {"models": ["*"]}}}
    assert problem_paths(endpoint(**{**clients, **given}), context(**more)) == expected
