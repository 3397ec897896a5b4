"""KAITO did X, kaigen does Y: each with its reason; and what `kaigen.dev/compat` keeps of KAITO's objects.

What KAITO does is read in its sources: v0.12.0 (commit 056b8280), and for the first version commit 27fa335a and v0.1.0.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.pipeline.run import compile_specs
from tests import plain_yaml
from tests.differences import differences
from tests.unit.dialects.kaito_case import (
    A100,
    LABELS,
    annotated,
    compiled,
    config_map,
    engine,
    errors,
    objects,
    pod,
    preset,
    warnings,
    workspace,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "kaito"
SEED = Path(__file__).parent / "kaito" / "falcon-7b.yaml"

A10 = "Standard_NV36ads_A10_v5"
TWO_A10 = "Standard_NV72ads_A10_v5"
TWO_H100 = "Standard_NC80adis_H100_v5"
FOUR_A10G = "g5.12xlarge"


def on(instance: str, name: str, **more: Any) -> dict[str, Any]:
    return preset(name, resource={"instanceType": instance, **more.pop("resource", {})}, **more)


def test_kaito_asked_each_pod_for_the_gpus_of_the_whole_model_and_kaigen_for_those_of_its_node() -> None:
    """Eight GPUs for each pod of Llama 2 70B on two nodes with four: no node could ever take one."""
    document = preset(
        "llama-2-70b-chat", version="v1alpha1", resource={"instanceType": "Standard_NC96ads_A100_v4", "count": 2}
    )
    assert engine(document)["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert objects(document)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["size"] == 2


def test_kaito_counted_the_gpus_of_a_node_twice_and_kaigen_refuses_with_the_arithmetic() -> None:
    """48 GiB on two A10 passed for 96, and so for the 90 that Falcon 40B wants."""
    document = preset("falcon-40b", version="v1alpha1", resource={"instanceType": TWO_A10, "count": 1})
    ((code, path, message),) = errors(document)
    assert (code, path) == ("KG1105", "resource.count")
    assert "does not fit" in message


def test_kaito_counts_weights_in_two_layouts_twice_and_kaigen_once() -> None:
    """25.63 GiB for gpt-oss-20b, of which 12.9 are loaded: two nodes with an A10 where one does."""
    made = objects(on(A10, "gpt-oss-20b"))
    assert "LeaderWorkerSet" not in made
    assert made["Deployment"]["spec"]["replicas"] == 1


def test_kaito_shares_layers_by_all_gpus_and_kaigen_by_as_many_as_divide_the_heads() -> None:
    """phi-4 has 10 KV heads and 40 heads: vLLM refuses to start with 4 GPUs, and KAITO asks for them."""
    arguments = [item for item in engine(on(FOUR_A10G, "phi-4"))["args"] if "parallel" in item]
    sizes = {item.split("=")[0]: int(item.split("=")[1]) for item in arguments}
    tensor = sizes.get("--tensor-parallel-size", 1)
    assert 10 % tensor == 0
    assert tensor < 4


def test_kaito_replaces_the_count_with_its_estimate_and_kaigen_keeps_the_count() -> None:
    """Six nodes asked for, five given, out of memory (issue 1956)."""
    asked = objects(on(TWO_H100, "mistral-large-3-675b-instruct", resource={"count": 6}))
    assert asked["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["size"] == 6
    silent = objects(on(TWO_H100, "mistral-large-3-675b-instruct"))
    assert silent["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]["size"] == 5


def test_kaito_takes_whatever_weights_the_hub_has_that_day_and_kaigen_those_of_a_commit() -> None:
    """KAITO sets the revision of the code at most, never that of the weights."""
    pinned = [item for item in engine(preset("phi-4"))["args"] if item.startswith("--revision=")]
    assert pinned == ["--revision=187ef0342fff0eb3333be9f00389385e95ef0b61"]


def test_kaito_asks_old_gpus_for_numbers_that_they_lack_and_kaigen_for_those_that_they_have() -> None:
    """T4 sizes pass KAITO's check, and vLLM crashes on bfloat16 (issue 2114)."""
    document = on("Standard_NC64as_T4_v3", "phi-4-mini-instruct")
    assert "--dtype=float16" in engine(document)["args"]
    assert [code for code, _, _ in warnings(document)] == ["KG0414"]
    old = preset("falcon-7b", version="v1alpha1", resource={"instanceType": "Standard_NC12s_v3"})
    assert "--dtype=float16" in engine(old)["args"]


def test_kaito_opens_ray_in_its_service_and_kaigen_the_one_port_that_serves() -> None:
    """Ray's client on 6379 and its dashboard on 8265 run code for any client, even behind a load balancer."""
    document = annotated({"kaito.sh/enablelb": "True"}, resource={"count": 2})
    ports = objects(document)["Service"]["spec"]["ports"]
    assert [port["port"] for port in ports] == [80]


def test_kaito_runs_pods_as_root_and_kaigen_under_pod_security_restricted() -> None:
    spec = pod(preset("phi-4"))
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["containers"][0]["resources"]["requests"].keys() >= {"cpu", "memory"}


def test_kaito_lets_every_model_run_code_and_kaigen_those_that_cannot_do_without() -> None:
    assert "--trust-remote-code" not in engine(preset("phi-4"))["args"]


def test_kaito_does_not_read_preferred_nodes_and_kaigen_prefers_them() -> None:
    affinity = pod(preset("phi-4", resource={"preferredNodes": ["gpu-1"]}))["affinity"]["nodeAffinity"]
    (entry,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert entry["preference"]["matchExpressions"][0]["values"] == ["gpu-1"]


def test_kaito_passes_a_flag_that_stops_the_server_and_kaigen_omits_it_with_a_warning() -> None:
    """`swap-space` is in four of its own examples; vLLM removed it in 0.18, and its parser is strict."""
    document = preset("phi-4", config="flags")
    flags = config_map("flags", {"vllm": {"swap-space": 4}})
    assert not any("swap" in argument for argument in engine(document, flags)["args"])
    assert [code for code, _, _ in warnings(document, flags)] == ["KG0418"]


def test_kaito_skips_its_check_for_any_value_and_kaigen_reports_it() -> None:
    """`bypass-resource-checks: "false"` bypasses too."""
    document = annotated({"kaito.sh/bypass-resource-checks": "false"})
    ((code, path, message),) = warnings(document)
    assert (code, path) == ("KG0414", 'metadata.annotations["kaito.sh/bypass-resource-checks"]')
    assert "is only a warning" in message


def test_kaito_sets_variables_that_its_server_does_not_read_and_kaigen_those_that_it_does() -> None:
    """So that the embedding of a RAGEngine never took effect: EMBEDDING_TYPE and MODEL_ID."""
    document = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "RAGEngine",
        "metadata": {"name": "it"},
        "spec": {"embedding": {"local": {"modelID": "org/embedding"}}},
    }
    named = {entry["name"]: entry.get("value") for entry in engine(document)["env"]}
    assert named["LOCAL_EMBEDDING_MODEL_ID"] == "org/embedding"
    assert not {"EMBEDDING_TYPE", "MODEL_ID", "ACCESS_SECRET"} & named.keys()


def test_kaito_repeats_a_failed_training_six_times_and_kaigen_only_one_that_can_succeed() -> None:
    """KAITO's script starts from the beginning; kaigen's own goes on from its last checkpoint."""
    claim = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
    run = {"preset": {"name": "phi-4"}, "method": "LoRA", "input": claim, "output": claim}
    job = next(
        item.body
        for app in compiled(workspace(tuning=run)).apps
        for item in app.objects
        if item.body["kind"] == "Job" and item.body["spec"]["backoffLimit"] == 2
    )
    rules = job["spec"]["podFailurePolicy"]["rules"]
    final = [rule["onExitCodes"]["values"] for rule in rules if rule["action"] == "FailJob"]
    assert [2, 13] in final
    script = workspace(tuning=run, metadata={"annotations": {"kaigen.dev/compat": "true"}})
    assert objects(script)["Job"]["spec"]["backoffLimit"] == 0


def test_kaito_declares_a_node_limit_and_does_not_read_it_and_kaigen_bounds_the_nodes() -> None:
    document = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": "it"},
        "spec": {
            "replicas": 2,
            "nodeCountLimit": 3,
            "labelSelector": LABELS,
            "template": {"resource": {"instanceType": A100}, "inference": {"preset": {"name": "phi-4"}}},
        },
    }
    assert objects(document, profile="aks")["NodePool"]["spec"]["limits"] == {"nvidia.com/gpu": "3"}


def test_kaito_orders_flags_by_chance_and_kaigen_gives_the_same_bytes_each_time() -> None:
    document = on(TWO_H100, "deepseek-v3-0324")
    assert compiled(document).stream() == compiled(document).stream()


@pytest.mark.promise("KAITO", "`inference.preset.name: falcon-7b`")
def test_the_quick_start_runs_the_server_that_answers_chat_with_arguments_that_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`curl -X POST http://<CLUSTERIP>/chat` of the Quick start: port 80 of the Service leads to that server."""
    config = Config(root=EXAMPLES)
    (app,) = compile_specs([str(EXAMPLES / "falcon-7b.yaml")], config).apps
    made = {item.body["kind"]: item.body for item in app.objects}
    container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    monkeypatch.syspath_prepend(str(ROOT / "runtimes" / "chat"))
    settings = import_module("kaigen_chat.settings").read(container["args"], {})
    assert container["command"] == ["kaigen-chat"]
    assert (settings.port, settings.served_model_name) == (5000, "falcon-7b")
    (port,) = made["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, container["ports"][0]["name"])
    assert container["ports"][0]["containerPort"] == settings.port
    routes = (ROOT / "runtimes/chat/kaigen_chat/kaito_routes.py").read_text()
    assert 'add_api_route("/chat", chat, methods=["POST"])' in routes


# What compat keeps.

MEANT: dict[str, str] = {
    "Deployment.metadata.labels": "kaigen's labels",
    "Deployment.metadata.annotations": "waves",
    "Deployment.spec.progressDeadlineSeconds": "longer than loading takes",
    "Deployment.spec.revisionHistoryLimit": "few are enough",
    "Deployment.spec.strategy": "the node's GPUs are taken by the old pod",
    "Deployment.spec.selector.matchLabels": "kaigen's labels in addition to KAITO's",
    "Deployment.spec.template.metadata.labels": "kaigen's labels in addition to KAITO's",
    "Deployment.spec.template.spec.affinity": "a node selector says the same",
    "Deployment.spec.template.spec.nodeSelector": "a node selector says the same",
    "Deployment.spec.template.spec.tolerations": "GPU nodes are tainted by their device plugin too",
    "Deployment.spec.template.spec.initContainers": "weights are fetched at a commit, not baked into an image",
    "Deployment.spec.template.spec.volumes": "weights are fetched at a commit, not baked into an image",
    "Deployment.spec.template.spec.securityContext": "restricted",
    "Deployment.spec.template.spec.automountServiceAccountToken": "nothing asks the API server",
    "Deployment.spec.template.spec.enableServiceLinks": "no stray variables",
    "Deployment.spec.template.spec.terminationGracePeriodSeconds": "requests in flight end",
    "Deployment.spec.template.spec.containers.image": "kaigen's own server",
    "Deployment.spec.template.spec.containers.command": "kaigen's own server",
    "Deployment.spec.template.spec.containers.args": "kaigen's own server",
    "Deployment.spec.template.spec.containers.env": "kaigen's own server",
    "Deployment.spec.template.spec.containers.ports": "the port has a name",
    "Deployment.spec.template.spec.containers.resources": "CPU and memory are asked for too",
    "Deployment.spec.template.spec.containers.startupProbe": "loading has its own time",
    "Deployment.spec.template.spec.containers.livenessProbe": "loading has its own time",
    "Deployment.spec.template.spec.containers.readinessProbe": "ready and alive are two things",
    "Deployment.spec.template.spec.containers.lifecycle": "requests in flight end",
    "Deployment.spec.template.spec.containers.securityContext": "restricted",
    "Deployment.spec.template.spec.containers.terminationMessagePolicy": "a failed pod says why",
    "Deployment.spec.template.spec.containers.volumeMounts": "weights are fetched, not baked into an image",
    "Service.metadata.labels": "kaigen's labels",
    "Service.spec.selector": "kaigen's labels in addition to KAITO's",
    "Service.spec.ports.http.targetPort": "the port has a name",
}
"""Every place in which the two differ, and why."""


@pytest.fixture(scope="module")
def compat(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("compat")
    head = "  name: workspace-falcon-7b\n"
    text = (EXAMPLES / "falcon-7b.yaml").read_text()
    assert head in text
    (folder / "it.yaml").write_text(text.replace(head, f'{head}  annotations: {{kaigen.dev/compat: "true"}}\n'))
    config = Config(root=folder)
    (app,) = compile_specs([str(folder)], config).apps
    return {item.body["kind"]: item.body for item in app.objects}


def by_name(node: Any) -> Any:
    """Lists of named things as mappings, so that they are compared by name and not by place."""
    if isinstance(node, dict):
        return {key: by_name(value) for key, value in node.items()}
    if isinstance(node, list) and node and all(isinstance(item, dict) and "name" in item for item in node):
        return {item["name"]: by_name(item) for item in node}
    return [by_name(item) for item in node] if isinstance(node, list) else node


def test_compat_differs_from_kaito_in_the_listed_places_only(compat: dict[str, Any]) -> None:
    found = []
    for original in plain_yaml.load_all(SEED.read_text()):
        kind = original["kind"]
        for line in differences(by_name(compat[kind]), by_name(original)):
            path = kind + line.partition(": ")[0].replace(".containers.workspace-falcon-7b", ".containers")
            meant = [place for place in MEANT if path == place or path.startswith((f"{place}.", f"{place}["))]
            assert meant, line
            found += meant
    assert sorted(set(MEANT) - set(found)) == []


def test_compat_keeps_names_labels_and_ports(compat: dict[str, Any]) -> None:
    for original in plain_yaml.load_all(SEED.read_text()):
        made = compat[original["kind"]]
        assert made["metadata"]["name"] == original["metadata"]["name"]
    service = compat["Service"]["spec"]
    assert [(port["name"], port["port"]) for port in service["ports"]] == [("http", 80), ("torch", 29500)]
    assert service["selector"]["kaito.sh/workspace"] == "workspace-falcon-7b"
    template = compat["Deployment"]["spec"]["template"]
    assert template["metadata"]["labels"]["kaito.sh/workspace"] == "workspace-falcon-7b"
    (container,) = template["spec"]["containers"]
    assert container["name"] == "workspace-falcon-7b"
    assert container["ports"][0]["containerPort"] == 5000


def test_compat_of_the_newer_version_has_no_port_of_torchrun() -> None:
    document = annotated({"kaigen.dev/compat": "true"})
    assert [port["port"] for port in objects(document)["Service"]["spec"]["ports"]] == [80]
    mounts = {mount["name"]: mount["mountPath"] for mount in engine(document)["volumeMounts"]}
    assert mounts["cache"] == "/workspace/weights"


def test_weights_of_the_transformers_runtime_are_written_to_a_folder_of_a_volume() -> None:
    """With `compat`, as without it: the root file system is read-only."""
    for compat in ("true", "false"):
        own = {"kaito.sh/runtime": "transformers", "kaigen.dev/compat": compat}
        found = pod(annotated(own))
        (fetch,) = found["initContainers"]
        variables = {each["name"]: each.get("value", "") for each in fetch.get("env", [])}
        given = [*fetch.get("args", []), *variables.values()]
        mounts = [mount["mountPath"] for mount in fetch["volumeMounts"]]
        model = next(
            argument.partition("=")[2] for argument in found["containers"][0]["args"] if "--model=" in argument
        )
        assert any(model in text for text in given)
        assert any(model.startswith(f"{mount}/") for mount in mounts), (model, mounts)
