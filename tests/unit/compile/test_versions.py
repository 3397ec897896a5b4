"""Versions of a Topology side by side: the pools, their names, what leads to them, and what is reported."""

from __future__ import annotations

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.pipeline.run import compile_specs
from tests.unit.compile.repository import Object, apps, codes, config

__all__ = ["config"]

CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n"
PRESET = {"preset": "phi-4", "image": "vllm/vllm-openai:v0.32.0", "resources": {"gpus": 1, "gpuType": "A100-80GB"}}
GATEWAY = {"host": "chat.example.com", "gateway": {"name": "public"}}
NEW = {"pool": "new", "image": "vllm/vllm-openai:v0.33.0"}


def spec(kind: str, name: str, **fields: object) -> Object:
    """Return a spec."""
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": fields}


def chat(**fields: object) -> Object:
    """Return a Topology."""
    given = {**PRESET, "route": GATEWAY, **fields}
    return spec("Topology", "chat", **{name: value for name, value in given.items() if value is not None})


def weights(route: Object) -> dict[str, int]:
    """Return the weights of a route by the name of the Service."""
    (rule,) = route["spec"]["rules"]
    return {each["name"]: each["weight"] for each in rule["backendRefs"]}


def container(objects: dict[tuple[str, str], Object], name: str) -> Object:
    """Return the container of a Deployment."""
    (found,) = objects["Deployment", name]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_canary_is_a_second_pool_and_changes_nothing_of_the_first_without_a_weight(config: Config) -> None:
    before = apps(config, chat())
    after = apps(config, chat(canary=NEW))
    assert after["chat"] == before["chat"]
    assert container(after["chat-new"], "chat-new")["image"] == "vllm/vllm-openai:v0.33.0"
    assert not {kind for kind, _ in after["chat-new"]} & {"HTTPRoute", "Ingress", "Gateway"}


def test_pools_serve_the_same_model_name(config: Config) -> None:
    found = apps(config, chat(canary=NEW))
    new, old = (container(found[name], name)["args"] for name in ("chat-new", "chat"))
    assert [each for each in new if each == "chat"] == [each for each in old if each == "chat"] == ["chat"]


def test_route_has_the_weights_and_its_wave_comes_after_the_job_that_waits(config: Config) -> None:
    found = apps(config, chat(canary={**NEW, "weight": 10}))["chat"]
    assert weights(found["HTTPRoute", "chat"]) == {"chat": 90, "chat-new": 10}
    (job,) = (body for (kind, _), body in found.items() if kind == "Job")
    (waiting,) = job["spec"]["template"]["spec"]["containers"]
    assert waiting["args"] == ["rollout", "status", "--timeout=30m", "deployment", "chat-new"]
    wave = "argocd.argoproj.io/sync-wave"
    assert int(job["metadata"]["annotations"][wave]) < int(found["HTTPRoute", "chat"]["metadata"]["annotations"][wave])
    assert found["Service", "chat"]["spec"]["selector"]["app.kubernetes.io/name"] == "chat"


def test_job_that_waits_does_not_run_again_for_another_weight(config: Config) -> None:
    """Else the weight of pods that fail could not be lowered."""
    jobs = [
        {name for kind, name in apps(config, chat(canary={**NEW, "weight": weight}))["chat"] if kind == "Job"}
        for weight in (10, 50, 100)
    ]
    assert jobs[0] == jobs[1] == jobs[2]
    assert len(jobs[0]) == 1


def test_budget_does_not_count_the_pod_of_the_job_that_waits(config: Config) -> None:
    found = apps(config, chat(shape={"replicas": 2}, canary={**NEW, "weight": 10}))["chat"]
    selector = found["PodDisruptionBudget", "chat"]["spec"]["selector"]["matchLabels"]
    (job,) = [each for (kind, _), each in found.items() if kind == "Job"]
    assert not selector.items() <= job["spec"]["template"]["metadata"]["labels"].items()


def test_account_of_the_job_reads_the_one_workload(config: Config) -> None:
    found = apps(config, chat(canary={**NEW, "weight": 10}))["chat"]
    assert found["Role", "chat-canary"]["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "resourceNames": ["chat-new"],
            "verbs": ["get", "list", "watch"],
        }
    ]


def test_service_leads_to_the_canary_when_that_gets_every_request(config: Config) -> None:
    found = apps(config, chat(canary={**NEW, "weight": 100}))
    assert weights(found["chat"]["HTTPRoute", "chat"]) == {"chat": 0, "chat-new": 100}
    labels = found["chat-new"]["Deployment", "chat-new"]["spec"]["template"]["metadata"]["labels"]
    selector = found["chat"]["Service", "chat"]["spec"]["selector"]
    assert selector.items() <= labels.items()
    assert ("Deployment", "chat") in found["chat"]


def test_pool_that_becomes_the_version_that_serves_does_not_change(config: Config) -> None:
    """It keeps its name and its pods: no object of it differs."""
    args = {"max-num-batched-tokens": 8192}
    before = apps(config, chat(canary={**NEW, "engineArgs": args, "weight": 100}))
    after = apps(config, chat(image=NEW["image"], engineArgs=args, pool="new"))
    assert after["chat-new"] == before["chat-new"]
    assert after["chat"].keys() == {("Service", "chat"), ("HTTPRoute", "chat")}
    assert after["chat"]["Service", "chat"]["spec"] == before["chat"]["Service", "chat"]["spec"]


@pytest.mark.parametrize(("replicas", "own"), [(2, 1), (1, 2)])
def test_pods_stay_where_the_canary_has_another_number_of_replicas(config: Config, replicas: int, own: int) -> None:
    several = {"replicas": replicas}
    before = apps(config, chat(shape=several, canary={**NEW, "weight": 100, "replicas": own}))["chat-new"]
    after = apps(config, chat(shape=several, image=NEW["image"], pool="new"))["chat-new"]
    workload = ("Deployment", "chat-new")
    assert before[workload]["spec"]["replicas"] == own
    assert after[workload]["spec"]["template"] == before[workload]["spec"]["template"]


def test_next_canary_of_a_pool_that_was_promoted(config: Config) -> None:
    found = apps(config, chat(pool="old", canary={**NEW, "weight": 25}))
    assert set(found) == {"chat", "chat-old", "chat-new"}
    assert weights(found["chat"]["HTTPRoute", "chat"]) == {"chat": 75, "chat-new": 25}
    assert found["chat"]["Service", "chat"]["spec"]["selector"]["app.kubernetes.io/name"] == "chat-old"
    all_of_it = apps(config, chat(pool="old", canary={**NEW, "weight": 100}))
    assert all_of_it["chat"]["Service", "chat"]["spec"]["selector"]["app.kubernetes.io/name"] == "chat-new"


def test_name_of_a_pool_depends_on_the_version_only(config: Config) -> None:
    version = {"image": "vllm/vllm-openai:v0.33.0", "engineArgs": {"max-num-batched-tokens": 8192, "seed": 2}}
    names = [
        (set(apps(config, chat(canary=canary))) - {"chat"}).pop()
        for canary in (
            version,
            {**version, "weight": 10, "replicas": 2},
            {"engineArgs": {"seed": 2, "max-num-batched-tokens": 8192}, "image": version["image"]},
            {**version, "engineArgs": {"max-num-batched-tokens": 8192, "seed": 3}},
        )
    ]
    assert names[0] == names[1] == names[2] != names[3]


def test_canary_has_its_own_number_of_replicas(config: Config) -> None:
    found = apps(config, chat(shape={"replicas": 4}, canary={**NEW, "replicas": 1}))
    assert found["chat-new"]["Deployment", "chat-new"]["spec"]["replicas"] == 1
    assert found["chat"]["Deployment", "chat"]["spec"]["replicas"] == 4


def test_endpoint_splits_requests_and_falls_back_to_the_pods_that_are_ready(config: Config) -> None:
    endpoint = spec("Endpoint", "api", models=["chat"], clients={"team": {"models": ["chat"]}})
    found = apps(config, chat(route=None, canary={**NEW, "weight": 10}), endpoint)["api"]
    (text,) = (body["data"]["envoy.yaml"] for (kind, _), body in found.items() if kind == "ConfigMap")
    envoy = yaml.safe_load(text)["static_resources"]
    manager = envoy["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    route = manager["route_config"]["virtual_hosts"][0]["routes"][0]["route"]
    assert route["weighted_clusters"]["clusters"] == [
        {"name": "topology-chat", "weight": 90},
        {"name": "split-chat", "weight": 10},
    ]
    (both,) = (each for each in envoy["clusters"] if each["name"] == "split-chat")
    assert both["cluster_type"]["typed_config"]["clusters"] == ["canary-chat", "topology-chat"]


def test_endpoint_of_a_promoted_topology_asks_its_pool(config: Config) -> None:
    endpoint = spec("Endpoint", "api", models=["chat"], clients={"team": {"models": ["chat"]}})
    found = apps(config, chat(pool="old"), endpoint)["api"]
    assert "address: chat-old, port_value: 80" in str(found["Deployment", "api"])


def test_gate_judges_the_canary_while_there_is_one(config: Config) -> None:
    gate = spec("Job", "speed", workload="benchmark", target={"name": "chat", "version": "canary"})

    def judged(*specs: Object) -> tuple[str, str]:
        found = apps(config, *specs)["speed"]
        ((name, job),) = ((name, body) for (kind, name), body in found.items() if kind == "Job")
        (each,) = job["spec"]["template"]["spec"]["containers"]
        return name, next(item["value"] for item in each["env"] if item["name"] == "TARGET_URL")

    assert judged(chat(), gate)[1] == "http://chat:80"
    as_canary = judged(chat(canary={**NEW, "weight": 10}), gate)
    assert as_canary[1] == "http://chat-new:80"
    # The pool that was judged as a canary is not judged again when it serves.
    assert judged(chat(image=NEW["image"], pool="new"), gate) == as_canary
    serving = spec("Job", "speed", workload="benchmark", target="chat")
    assert judged(chat(canary=NEW), serving)[1] == "http://chat:80"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"route": None, "canary": {**NEW, "weight": 10}}, [("KG0431", "spec.canary.weight")]),
        (
            {"route": {"host": "a.b", "ingress": {}}, "canary": {**NEW, "weight": 99}},
            [("KG0431", "spec.canary.weight")],
        ),
        ({"route": None, "pool": "old", "canary": {**NEW, "weight": 1}}, [("KG0431", "spec.canary.weight")]),
        ({"route": None, "canary": {**NEW, "weight": 100}}, []),
        ({"route": None, "canary": NEW}, []),
        ({"inferencePool": {"endpointPicker": "picker"}, "canary": NEW}, [("KG0432", "spec.inferencePool")]),
        ({"canary": {"weight": 10}}, [("KG0433", "spec.canary")]),
        ({"pool": "new", "canary": NEW}, [("KG0433", "spec.canary")]),
        ({"canary": {**NEW, "weight": 101}}, [("KG0208", "spec.canary.weight")]),
        ({"canary": {"image": "vllm/vllm-openai:v0.33.0", "engineArgs": {"no-such-flag": 1}}}, None),
    ],
)
def test_errors(config: Config, fields: Object, expected: list[tuple[str, str]] | None) -> None:
    found = codes(config, chat(**fields))
    if expected is None:
        ((_, path),) = found
        assert path.startswith("spec.canary.engineArgs")
    else:
        assert found == expected


@pytest.mark.parametrize("weight", [0, 10])
def test_canary_of_an_alias_that_does_not_exist_is_an_error(config: Config, weight: int) -> None:
    alias = spec("Alias", "talk", topology="chat", route=GATEWAY, canary={"topology": "none", "weight": weight})
    assert codes(config, chat(route=None), alias) == [("KG0301", "spec.canary.topology")]


def test_app_waits_for_the_canary_only_while_that_gets_requests(config: Config) -> None:
    """Else a canary that fails would keep its weight from being set to 0."""
    needs = []
    for weight in (0, 10):
        (config.root / "specs/all.yaml").write_text(yaml.safe_dump(chat(canary={**NEW, "weight": weight})))
        needs.append({item.app.name: item.needs for item in compile_specs((), config).apps}["chat"])
    assert needs == [(), (("ml", "chat-new"),)]


def test_queue_that_holds_one_version_is_reported(config: Config) -> None:
    def queue(gpus: int) -> Object:
        flavors = [{"gpuType": "A100-80GB", "gpus": gpus, "resources": {"ephemeral-storage": "1Ti"}}]
        return spec("Queue", "team", quota=flavors, namespaces=["ml"])

    placed = chat(placement={"queue": "team"}, canary=NEW)
    assert codes(config, placed, queue(1)) == [("KG0434", "spec.canary")]
    assert codes(config, placed, queue(2)) == []


def test_quota_that_holds_one_version_is_reported(config: Config) -> None:
    def limited(gpus: int) -> Config:
        gitops = {
            "repository": "https://git.example.com/ml.git",
            "flux": {},
            "tenancy": {"quota": {"requests.nvidia.com/gpu": gpus}},
        }
        (config.root / "kaigen.yaml").write_text(CONFIG + yaml.safe_dump({"gitops": gitops}))
        return load_config(config.root)

    assert ("KG0434", "spec.canary") in codes(limited(1), chat(canary=NEW))
    assert codes(limited(2), chat(canary=NEW)) == []
