"""Koldun's Dllama, Root, Worker and Ingress: the ring that they become, and what is reported of each field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.settings import Config
from kaigen.kinds.exposure import Router
from kaigen.pipeline.run import Run
from kaigen.plan.specs import plan_specs
from tests.unit.dialects.koldun_case import (
    COMMIT,
    IMAGE,
    STORAGE,
    Object,
    annotated,
    compiled,
    converted,
    dllama,
    errors,
    failures,
    loaded,
    model,
    resource,
    specs,
    warnings,
)

EXISTING: Object = {"preConverted": True, "preConvertedPVCName": "w"}


def topology(*documents: Object) -> Any:
    """Return the spec of the only Topology that documents are lowered to."""
    (found,) = (block for block in specs(*documents) if block.kind == "Topology")
    return found.spec


def root(changes: Object | None = None, name: str = "chat", **metadata: Any) -> Object:
    """Return a Root of the Model `it`."""
    spec = {"modelRef": "it-s3-output-pvc", "image": IMAGE} | (changes or {})
    return resource("Root", spec, name, **metadata)


def worker(slot: int, changes: Object | None = None, **metadata: Any) -> Object:
    """Return a Worker of the Root `chat`."""
    spec = {"modelRef": "it-s3-output-pvc", "image": IMAGE, "rootRef": "chat", "slot": slot} | (changes or {})
    return resource("Worker", spec, **({"name": f"worker-{slot}"} | metadata))


def ingress(changes: Object | None = None, **metadata: Any) -> Object:
    """Return an Ingress of rings with two pods."""
    backend = {"rootImage": IMAGE, "workerImage": IMAGE, "replicaPower": 1, "allowAnonymous": True}
    spec: Object = {"backend": backend, "service": {"port": 8082}}
    changes = dict(changes or {})
    spec["backend"] = backend | changes.pop("backend", {})
    return resource("Ingress", spec | changes, "public", **metadata)


@pytest.mark.promise("Koldun", "`Dllama` is expanded into a root and its workers")
@pytest.mark.promise("Koldun", "`rootImage`")
def test_dllama_is_a_ring_of_its_model() -> None:
    spec = topology(converted(), dllama())
    assert spec.engine == "distributedLlama"
    assert spec.image == IMAGE
    assert spec.model.name == "it"
    assert (spec.shape.nodes, spec.shape.replicas) == (4, 1)
    assert warnings(converted(), dllama()) == []


@pytest.mark.promise("Koldun", "`replicaPower: 2` gives the root and 3 workers")
@pytest.mark.parametrize(("power", "nodes"), [(-3, 1), (0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (6, 64)])
def test_replica_power_gives_a_ring_of_a_power_of_two(power: int, nodes: int) -> None:
    assert topology(converted(), dllama(power)).shape.nodes == nodes


@pytest.mark.promise("Koldun", "Obsolete workers are pruned when the replica power changes")
def test_another_power_changes_the_size_of_the_group_and_no_name() -> None:
    def made(power: int) -> dict[tuple[str, str], Object]:
        apps = {item.app.name: item for item in compiled(converted(), dllama(power)).apps}
        return {(item.body["kind"], item.body["metadata"]["name"]): item.body for item in apps["chat"].objects}

    small, large = made(1), made(2)
    assert small.keys() == large.keys()
    groups = (found["LeaderWorkerSet", "chat"]["spec"]["leaderWorkerTemplate"] for found in (small, large))
    assert [group["size"] for group in groups] == [2, 4]


@pytest.mark.parametrize("power", [7, 31, 2**31 - 1])
def test_more_workers_than_a_topology_can_have_are_an_error(power: int) -> None:
    assert errors(converted(), dllama(power)) == [("KG0413", "spec.replicaPower")]


@pytest.mark.parametrize(("power", "nodes"), [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16)])
def test_compat_counts_workers_as_the_operator(power: int, nodes: int) -> None:
    notes = annotated(compat="true")
    assert topology(converted(), dllama(power, annotations=notes)).shape.nodes == nodes


def test_compat_with_too_many_workers_lists_the_powers_that_are_rings() -> None:
    (found,) = failures(converted(), dllama(40, annotations=annotated(compat="true")))
    assert "32, 16, 8, 4, 2, 1 or 0" in found.hint
    (found,) = failures(converted(), dllama(7))
    assert "6 or less" in found.hint


@pytest.mark.parametrize("power", [3, 5, 6, 7])
def test_compat_with_workers_that_are_no_ring_is_an_error(power: int) -> None:
    notes = annotated(compat="true")
    assert errors(converted(), dllama(power, annotations=notes)) == [("KG0412", "spec.replicaPower")]


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ({"kind": "Modle", "name": "it"}, "spec.modelRef.kind"),
        ({"kind": "Model", "name": "it", "apiGroup": "kaito.sh"}, "spec.modelRef.apiGroup"),
    ],
)
def test_reference_that_the_operator_rejects_is_an_error(reference: Object, path: str) -> None:
    assert ("KG0412", path) in errors(converted(), dllama(changes={"modelRef": reference}))


def test_converted_files_of_another_namespace_are_read_from_their_bucket() -> None:
    reference = {"kind": "Model", "name": "it", "namespace": "b"}
    chat = dllama(changes={"modelRef": reference}, namespace="a")
    documents = (converted(namespace="b"), converted({"localPath": "models/own"}, namespace="a"), chat)
    found = topology(*documents)
    assert (found.model.name, found.model.namespace) == ("it", "b")
    made = {
        (item.app.namespace, item.app.name): [each.body for each in item.objects] for item in compiled(*documents).apps
    }
    volumes = {
        key: [body["spec"]["csi"]["volumeHandle"] for body in bodies if body["kind"] == "PersistentVolume"]
        for key, bodies in made.items()
    }
    assert volumes["a", "chat"] == volumes["b", "it"]
    assert volumes["a", "chat"] != volumes["a", "it"]
    reference["namespace"] = "a"
    assert topology(*documents[:2], dllama(changes={"modelRef": reference}, namespace="a")).model.name == "it"


def test_converted_files_in_a_volume_of_another_namespace_are_an_error() -> None:
    reference = {"kind": "Model", "name": "it", "namespace": "b"}
    stored = converted({"objectStorage": None, "pv": {"capacity": "9Gi"}}, namespace="b")
    chat = dllama(changes={"modelRef": reference}, namespace="a")
    assert ("KG0389", "spec.modelRef.name") in errors(stored, chat)


def test_reference_may_have_any_case_and_the_group_of_models() -> None:
    reference = {"kind": "model", "name": "it", "apiGroup": "koldun.gorizond.io"}
    assert topology(converted(), dllama(changes={"modelRef": reference})).model.name == "it"


def test_model_without_converted_files_is_an_error() -> None:
    assert errors(model(), dllama()) == [("KG0412", "spec.modelRef.name")]


def test_unknown_model_is_an_error_at_the_reference() -> None:
    assert errors(dllama()) == [("KG0301", "spec.modelRef.name")]


def test_dots_in_the_name_of_a_model_become_dashes() -> None:
    reference = {"kind": "Model", "name": "qwen3-0.6b"}
    documents = (converted(name="qwen3-0.6b"), dllama(changes={"modelRef": reference}))
    assert topology(*documents).model.name == "qwen3-0-6b"
    assert warnings(*documents) == [("KG0414", "metadata.name")]


def test_a_ring_has_one_image() -> None:
    other = "registry.example.com/dllama:0.16.5"
    assert errors(converted(), dllama(changes={"workerImage": other})) == [("KG0413", "spec.workerImage")]
    assert errors(converted(), root(), worker(0, {"image": other})) == [("KG0413", "spec.image")]
    assert topology(converted(), dllama(changes={"rootImage": other, "workerImage": other})).image == other


def test_version_of_an_image_of_the_operator_is_known() -> None:
    image = "ghcr.io/gorizond/koldun:v0.0.1"
    documents = (converted(), dllama(changes={"rootImage": image, "workerImage": image}))
    assert topology(*documents).engine_version == "0.16.2"


@pytest.mark.promise("Koldun", "`launchOptions` of the Model")
def test_launch_options_of_the_model_are_those_of_the_ring() -> None:
    options = ["--max-seq-len", "2048", "--nthreads", "3", "--temperature", "0.2", "--buffer-float-type", "q80"]
    spec = topology(converted({"launchOptions": options}), dllama())
    assert spec.context_length == 2048
    assert spec.resources.cpu == "3"
    assert spec.engine_args == {"temperature": "0.2"}


def test_error_in_a_launch_option_is_at_the_line_of_the_model() -> None:
    options = ["--max-seq-len", "many"]
    assert errors(converted({"launchOptions": options}), dllama()) == [("KG0413", "spec.launchOptions[1]")]


@pytest.mark.promise("Koldun", "Step 4, scaling policies: autoscaling hints and resource requests")
def test_annotations_decide_resources_and_replicas() -> None:
    notes = annotated(cpu="4", memory="8Gi", replicas="2", context_length="1024", engine_version="0.16.5")
    spec = topology(converted(), dllama(annotations=notes))
    assert (spec.resources.cpu, spec.resources.memory) == ("4", "8Gi")
    assert (spec.shape.replicas, spec.context_length, spec.engine_version) == (2, 1024, "0.16.5")


@pytest.mark.promise("Koldun", "Step 4, scaling policies: GPU scheduling")
def test_annotations_decide_gpus_and_nodes() -> None:
    notes = annotated(gpus="1", node_selector="accelerator=nvidia, topology.kubernetes.io/zone=a")
    spec = topology(converted(), dllama(annotations=notes))
    assert spec.resources.gpus == 1
    assert spec.placement.node_selector == {"accelerator": "nvidia", "topology.kubernetes.io/zone": "a"}
    assert errors(converted(), dllama(annotations=annotated(gpus="2"))) == [
        ("KG0393", 'metadata.annotations["kaigen.dev/gpus"]')
    ]


@pytest.mark.promise("Koldun", "Step 4, scaling policies: autoscaling hints and resource requests")
def test_annotations_start_a_ring_on_demand() -> None:
    notes = annotated(prometheus="http://prometheus:9090", query="sum(waiting)", idle_after="10m")
    scaling = topology(converted(), dllama(annotations=notes)).autoscale
    assert (scaling.min, scaling.max, scaling.target, scaling.scaler) == (0, 1, 1, "keda")
    assert (scaling.query, scaling.prometheus.address) == ("sum(waiting)", "http://prometheus:9090")
    assert scaling.idle_after == "10m"


@pytest.mark.promise("Koldun", "Step 2, serverless triggers: activation on demand")
def test_an_idle_time_alone_starts_a_ring_with_the_first_request_which_a_router_holds() -> None:
    found = topology(converted(), dllama(annotations=annotated(idle_after="10m")))
    assert (found.router, found.router.hold) == (Router(), None)
    scaling = found.autoscale
    assert (scaling.min, scaling.max, scaling.target, scaling.scaler) == (0, 1, 1, "keda")
    assert (scaling.query, scaling.prometheus, scaling.idle_after) == (None, None, "10m")


@pytest.mark.parametrize(
    "directives",
    [
        *({"cpu": "many"}, {"memory": "8 GB"}, {"replicas": "0"}, {"context_length": "4k"}, {"compat": "yes"}),
        *({"query": "up"}, {"prometheus": "http://prometheus"}, {"idle_after": "5 minutes"}, {"thread": "4"}),
        {"query": "up", "prometheus": "prometheus"},
        *({"gpus": "one"}, {"node_selector": "accelerator"}, {"node_selector": "a=b,-=c"}, {"node_selector": ""}),
    ],
    ids=str,
)
def test_a_wrong_annotation_of_kaigen_is_an_error(directives: dict[str, str]) -> None:
    (found,) = errors(converted(), dllama(annotations=annotated(**directives)))
    assert found[0] == "KG0406"


@pytest.mark.parametrize("profile", ["k3s", "kind"])
def test_a_ring_on_demand_is_a_group_that_scales_to_zero(profile: str) -> None:
    config, notes = Config(profile=profile), {"prometheus": "http://prometheus:9090", "query": "up"}
    (found,) = failures(converted(), dllama(annotations=annotated(**notes)), config=config)
    assert found.code == "KG0353"
    assert 'kaigen.dev/groups: "leaderWorkerSet"' in found.hint
    document = dllama(annotations=annotated(**notes, groups="leaderWorkerSet"))
    kinds = [item.body["kind"] for app in compiled(converted(), document, config=config).apps for item in app.objects]
    assert "LeaderWorkerSet" in kinds
    assert "ScaledObject" in kinds


OPERATOR_LABELS = {
    "koldun.gorizond.io/component": "root",
    "koldun.gorizond.io/root": "chat",
    "objectset.rio.cattle.io/hash": "abc",
}


def test_pods_have_no_labels_that_services_of_the_operator_select() -> None:
    notes = {"objectset.rio.cattle.io/id": "a", "koldun.gorizond.io/unknown": "b"}
    document = root(labels={**OPERATOR_LABELS, "team": "a"}, annotations=notes)
    app = next(item for item in compiled(converted(), document).apps if item.app.name == "chat")
    text = json.dumps([item.body for item in app.objects])
    assert '"team": "a"' in text
    assert "koldun.gorizond.io" not in text
    assert "objectset.rio.cattle.io" not in text
    assert sorted(warnings(converted(), document)) == sorted(
        [
            *(("KG0405", f'metadata.labels["{key}"]') for key in OPERATOR_LABELS),
            *(("KG0405", f'metadata.annotations["{key}"]') for key in notes),
        ]
    )


def test_compat_keeps_labels_of_koldun_and_none_of_its_framework() -> None:
    document = root(labels=OPERATOR_LABELS, annotations=annotated(compat="true"))
    assert warnings(converted(), document) == [("KG0405", 'metadata.labels["objectset.rio.cattle.io/hash"]')]
    app = next(item for item in compiled(converted(), document).apps if item.app.name == "chat")
    text = json.dumps([item.body for item in app.objects])
    assert '"koldun.gorizond.io/root": "chat"' in text
    assert "objectset.rio.cattle.io" not in text


def test_metadata_of_a_worker_that_is_not_that_of_the_root_is_a_warning() -> None:
    own = {"labels": {"team": "a", "tier": "b"}, "annotations": {"note": "n", "kaigen.dev/version": "1.0.0"}}
    documents = (converted(), root(labels={"team": "a"}), worker(0, **own))
    assert sorted(warnings(*documents)) == [
        ("KG0405", "metadata.annotations.note"),
        ("KG0405", 'metadata.annotations["kaigen.dev/version"]'),
        ("KG0405", "metadata.labels.tier"),
    ]


@pytest.mark.promise("Koldun", "`Root` and `Worker` resources")
def test_root_and_workers_are_one_app() -> None:
    documents = (converted(), worker(1), root(), worker(0), worker(2))
    blocks = specs(*documents)
    assert [(block.kind, block.metadata.name) for block in blocks] == [("Model", "it"), ("Topology", "chat")]
    spec = topology(*documents)
    assert (spec.shape.nodes, spec.image, spec.model.name) == (4, IMAGE, "it")
    assert warnings(*documents) == []


def test_root_without_workers_is_a_ring_of_one() -> None:
    assert topology(converted(), root()).shape.nodes == 1


def test_workers_of_other_roots_and_namespaces_do_not_count() -> None:
    documents = (
        converted(namespace="a"),
        root(namespace="a"),
        worker(0, namespace="a"),
        root(name="other", namespace="a"),
        worker(0, {"rootRef": "other"}, namespace="a"),
        root(namespace="b"),
        worker(0, namespace="b"),
    )
    nodes = [block.spec.shape.nodes for block in specs(*documents) if block.kind == "Topology"]
    assert nodes == [2, 2, 2]


def test_root_of_a_claim_that_no_model_makes() -> None:
    spec = topology(root({"modelRef": "weights"}), worker(0))
    assert spec.model.volume.claim_name == "weights"


def test_args_of_root_become_fields() -> None:
    args = ["--max-seq-len", "4096", "--nthreads", "2", "--chat-template", "llama3", "--workers", "x:1"]
    spec = topology(converted(), root({"args": args}))
    assert (spec.context_length, spec.resources.cpu) == (4096, "2")
    assert spec.engine_args == {"chat-template": "llama3"}
    assert warnings(converted(), root({"args": args})) == [("KG0405", "spec.args[6]")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cacheSpec": {"endpoint": "http://minio", "bucket": "b"}}, [("KG0405", "spec.cacheSpec")]),
        ({"workerSelector": {"a": "b"}}, [("KG0405", "spec.workerSelector")]),
    ],
)
def test_fields_of_root_without_effect_are_warnings(changes: Object, expected: list[tuple[str, str]]) -> None:
    assert warnings(converted(), root(changes)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"modelRef": "weights"}, [("KG0405", "spec.modelRef")]),
        ({"args": ["--nthreads", "4"]}, [("KG0405", "spec.args[1]")]),
        ({"args": ["--port", "9999"]}, [("KG0405", "spec.args[0]")]),
        ({"args": ["--gpu-index", "0"]}, [("KG0405", "spec.args[1]")]),
        *(
            ({"args": [option, "1"]}, [("KG0405", "spec.args[0]")])
            for option in ("--max-seq-len", "--seed", "--buffer-float-type", "--model", "--tokenizer")
        ),
        ({"cacheSpec": {"endpoint": "http://minio", "bucket": "b"}}, [("KG0405", "spec.cacheSpec")]),
    ],
)
def test_fields_of_worker_without_effect_are_warnings(changes: Object, expected: list[tuple[str, str]]) -> None:
    assert warnings(converted(), root(), worker(0, changes)) == expected


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ((root(), worker(0), worker(1)), ("KG0412", "metadata.name")),
        ((root(), worker(0), worker(0, name="twice"), worker(1)), ("KG0412", "spec.slot")),
        ((root(), worker(1)), ("KG0412", "spec.slot")),
        ((root(), worker(0, {"rootRef": "chad"})), ("KG0412", "spec.rootRef")),
        ((root(), worker(-1)), ("KG0208", "spec.slot")),
    ],
    ids=["two workers", "slot twice", "no slot 0", "unknown root", "negative slot"],
)
def test_workers_that_are_no_ring_are_an_error(documents: tuple[Object, ...], expected: tuple[str, str]) -> None:
    assert errors(converted(), *documents) == [expected]


def test_what_a_dllama_makes_has_no_effect_next_to_it() -> None:
    labels = {"koldun.gorizond.io/dllama": "chat"}
    made = (root(name="chat-root", labels=labels), worker(0, {"rootRef": "chat-root"}, labels=labels))
    documents = (converted(), dllama(1), *made)
    assert topology(*documents).shape.nodes == 2
    path = 'metadata.labels["koldun.gorizond.io/dllama"]'
    assert warnings(*documents) == [("KG0405", path), ("KG0405", path)]
    assert topology(converted(), *made).shape.nodes == 2


def test_a_worker_of_another_file_counts(tmp_path: Path) -> None:
    files = {"a.yaml": [converted(), root()], "b.yaml": [worker(0)]}
    for name, documents in files.items():
        (tmp_path / name).write_text(yaml.safe_dump_all(documents))
    found = Run.load([str(tmp_path)], Config(root=tmp_path), use_cache=False)
    assert found.load_diagnostics == ()
    (spec,) = (each.block.spec for each in found.specs if each.block.kind == "Topology")
    assert spec.shape.nodes == 2


def test_worker_is_not_broken() -> None:
    assert [unit.broken for unit in loaded(converted(), root(), worker(0)).units] == [frozenset()]


def test_compat_keeps_the_port_and_the_label_of_the_operator() -> None:
    document = dllama(annotations=annotated(compat="true"))
    app = next(item for item in compiled(converted(), document).apps if item.app.name == "chat")
    services = [item.body for item in app.objects if item.body["kind"] == "Service"]
    assert 8080 in [port["port"] for service in services for port in service["spec"]["ports"]]
    text = json.dumps([item.body for item in app.objects])
    assert '"koldun.gorizond.io/dllama": "chat"' in text
    assert '"name": "root"' in text


def test_type_of_weights_that_are_converted_already() -> None:
    documents = (
        model({"preConverted": True, "preConvertedPVCName": "w", "conversion": {"weightsFloatType": "f32"}}),
        dllama(),
    )
    assert topology(*documents).quantization == "f32"


@pytest.mark.parametrize(("buffer", "weights"), [("q80", "q40"), ("f32", "f32")])
def test_type_of_the_buffers_decides_that_of_the_weights(buffer: str, weights: str) -> None:
    options = ["--buffer-float-type", buffer]
    for documents in (
        (root({"modelRef": "weights", "args": options}), worker(0)),
        (model({**EXISTING, "launchOptions": options}), dllama(1)),
        (model({**EXISTING, "conversion": {}, "launchOptions": options}), dllama(1)),
        (model({**EXISTING, "launchOptions": ["--buffer-float-type", "q80"]}), root({"args": options})),
    ):
        assert topology(*documents).quantization == weights
        found = arguments_of_root(*documents)
        assert found[found.index("--buffer-float-type") + 1] == buffer


@pytest.mark.parametrize("buffer", ["f16", "q40", "x"])
def test_buffers_with_which_no_weights_run_are_an_error(buffer: str) -> None:
    options = ["--buffer-float-type", buffer]
    assert errors(root({"modelRef": "weights", "args": options})) == [("KG0412", "spec.args[1]")]
    document = model({**EXISTING, "launchOptions": options})
    assert errors(document, dllama(1)) == [("KG0412", "spec.launchOptions[1]")]


def test_buffers_of_a_root_that_are_not_those_of_the_weights_are_a_warning() -> None:
    documents = (converted(), root({"args": ["--buffer-float-type", "f32"]}))
    assert topology(*documents).quantization is None
    assert warnings(*documents) == [("KG0414", "spec.args[1]")]


def test_files_of_a_model_have_the_names_that_it_states() -> None:
    documents = (converted(), root({"args": ["--model", "/model/x.m"]}))
    assert warnings(*documents) == [("KG0405", "spec.args[0]")]


def test_a_model_with_an_empty_conversion_is_converted() -> None:
    assert topology(model({"conversion": {}}), dllama()).model.name == "it"


def test_a_context_of_too_many_tokens_is_an_error_with_the_most() -> None:
    options = ["--max-seq-len", "99999999999"]
    document = converted({"launchOptions": options})
    assert errors(document, dllama()) == [("KG0413", "spec.launchOptions[1]")]
    assert "at most" in loaded(document, dllama()).load_diagnostics[0].message


def arguments_of_root(*documents: Object) -> list[str]:
    """Return the arguments of the root's container."""
    app = next(item for item in compiled(*documents).apps if item.app.name == "chat")
    (group,) = (item.body for item in app.objects if item.body["kind"] in {"LeaderWorkerSet", "Deployment"})
    template = group["spec"].get("leaderWorkerTemplate", {}).get("leaderTemplate") or group["spec"]["template"]
    found: list[str] = template["spec"]["containers"][0]["args"]
    return found


def test_root_loads_the_files_by_their_names() -> None:
    options = ["--model", "/model/x.m", "--tokenizer", "/model/y.t"]
    existing = model({"preConverted": True, "preConvertedPVCName": "w", "launchOptions": options})
    for documents in (
        (existing, dllama(1)),
        (existing, dllama(0)),
        (root({"modelRef": "w", "args": options}), worker(0)),
    ):
        found = arguments_of_root(*documents)
        assert found[found.index("--model") + 1] == "/model/x.m"
        assert found[found.index("--tokenizer") + 1] == "/model/y.t"
        assert found.count("--model") == 1
    found = arguments_of_root(root({"modelRef": "w"}), worker(0))
    assert found[found.index("--model") + 1] == "/model/model.m"


def test_converted_files_without_a_volume_are_an_error() -> None:
    assert errors(model({"preConverted": True}), dllama()) == [("KG0413", "spec.modelRef.name")]


def test_ingress_is_a_topology_of_the_only_model() -> None:
    changes = {"route": {"host": "api.example.com", "path": "/v1", "ingressClassName": "nginx"}}
    spec = topology(converted(), ingress(changes))
    assert spec.model.name == "it"
    assert (spec.shape.nodes, spec.service.port) == (2, 8082)
    assert (spec.route.host, spec.route.path, spec.route.ingress.class_name) == (*("api.example.com", "/v1"), "nginx")


def test_ingress_names_its_model_in_an_annotation() -> None:
    models = (converted(), converted({"localPath": "models/other"}, name="other"))
    assert errors(*models, ingress()) == [("KG0413", "metadata.name")]
    assert topology(*models, ingress(annotations=annotated(model="other"))).model.name == "other"


@pytest.mark.parametrize(
    "scaling",
    [
        {"minDllamas": 0},
        {"maxDllamas": 2},
        {"scaleUpBacklog": 5},
        {"scaleDownIdleSeconds": 300},
        {"minDllamas": 0, "maxDllamas": 1, "scaleUpBacklog": 5, "scaleDownIdleSeconds": 300},
    ],
    ids=str,
)
def test_scaling_without_a_query_is_a_warning(scaling: Object) -> None:
    documents = (converted(), ingress({"backend": {"sessionScaling": scaling}}))
    assert topology(*documents).shape.replicas == 1
    assert warnings(*documents) == [("KG0414", "spec.backend.sessionScaling")]


def test_a_fixed_number_of_rings_needs_no_query() -> None:
    scaling = {"minDllamas": 2, "maxDllamas": 2}
    documents = (converted(), ingress({"backend": {"sessionScaling": scaling}}))
    assert topology(*documents).shape.replicas == 2
    assert warnings(*documents) == []


@pytest.mark.parametrize("name", ["query", "prometheus"])
def test_half_of_what_scaling_needs_is_an_error_on_an_ingress_too(name: str) -> None:
    value = {"query": "up", "prometheus": "http://prometheus:9090"}[name]
    document = ingress(
        {"backend": {"sessionScaling": {"minDllamas": 0, "maxDllamas": 3}}}, annotations=annotated(**{name: value})
    )
    (found,) = errors(converted(), document)
    assert found[0] == "KG0406"


def test_scaling_that_an_annotation_replaces_is_a_warning() -> None:
    scaling = {"minDllamas": 2, "maxDllamas": 2, "scaleDownIdleSeconds": 300}
    document = ingress({"backend": {"sessionScaling": scaling}}, annotations=annotated(replicas="3"))
    assert topology(converted(), document).shape.replicas == 3
    assert warnings(converted(), document) == [("KG0405", "spec.backend.sessionScaling")]
    notes = annotated(prometheus="http://prometheus:9090", query="up", idle_after="5m")
    document = ingress({"backend": {"sessionScaling": scaling}}, annotations=notes)
    assert topology(converted(), document).autoscale.idle_after == "5m"
    assert warnings(converted(), document) == [("KG0405", "spec.backend.sessionScaling.scaleDownIdleSeconds")]


def test_ingress_scales_with_the_backlog() -> None:
    scaling = {"minDllamas": 0, "maxDllamas": 10, "scaleUpBacklog": 5, "scaleDownIdleSeconds": 300}
    notes = annotated(prometheus="http://prometheus:9090", query="sum(waiting)")
    spec = topology(converted(), ingress({"backend": {"sessionScaling": scaling}}, annotations=notes))
    found = spec.autoscale
    assert (found.min, found.max, found.target, found.idle_after) == (0, 10, 5, "300s")
    without = (converted(), ingress({"backend": {"sessionScaling": scaling}}))
    assert topology(*without).shape.replicas == 1
    assert warnings(*without) == [("KG0414", "spec.backend.sessionScaling")]


def test_ingress_scales_with_the_requests_in_a_router_where_only_an_idle_time_is_given() -> None:
    scaling = {"minDllamas": 0, "maxDllamas": 10, "scaleUpBacklog": 5}
    documents = (converted(), ingress({"backend": {"sessionScaling": scaling}}, annotations=annotated(idle_after="5m")))
    spec = topology(*documents)
    assert (spec.router, spec.autoscale.query) == (Router(), None)
    assert (spec.autoscale.min, spec.autoscale.max, spec.autoscale.target) == (0, 10, 5)
    assert warnings(*documents) == []


def test_fields_of_ingress_without_effect_are_warnings() -> None:
    backend = {
        "image": "a",
        "dispatcherImage": "b",
        "nats": {"url": "nats://nats:4222"},
        "conversationTTL": "30m",
        "responseTimeout": "5m",
        "dispatcherMetricsListen": ":9090",
        "extraArgs": ["--backend-listen=:1"],
        "hashSecret": "salt",
        "imagePullPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}},
        "rootMemory": {"overheadMaxRatio": 1.5},
    }
    found = warnings(converted(), ingress({"backend": backend}))
    assert sorted(found) == [("KG0405", f"spec.backend.{name}") for name in sorted(backend)]


@pytest.mark.parametrize(
    ("stated", "of_model", "pods"), [(2, 3, 4), (None, 3, 8), (0, 3, 8), (None, None, 2), (0, None, 2), (None, -1, 2)]
)
def test_ingress_has_as_many_workers_as_it_or_its_model_states(
    stated: int | None, of_model: int | None, pods: int
) -> None:
    document = ingress({"backend": {} if stated is None else {"replicaPower": stated}})
    if stated is None:
        del document["spec"]["backend"]["replicaPower"]
    power = {} if of_model is None else {"replicaPower": of_model}
    assert topology(converted(power), document).shape.nodes == pods
    unused = [("KG0405", "spec.replicaPower")] if stated and of_model else []
    assert warnings(converted(power), document) == unused


def test_workers_of_a_model_that_no_ingress_asks_for_are_a_warning() -> None:
    other = ingress({"backend": {"replicaPower": 0}}, annotations=annotated(model="other"))
    far = converted({"localPath": "models/other"}, name="other")
    for documents in ((dllama(),), (far, other)):
        assert ("KG0405", "spec.replicaPower") in warnings(converted({"replicaPower": 2}), *documents)


def test_requests_to_an_ingress_need_the_key_of_a_secret() -> None:
    key = annotated(api_key_secret="api-key")
    closed = ingress({"backend": {"allowAnonymous": False}}, annotations=key)
    assert topology(converted(), closed).auth.secret.name == "api-key"
    assert warnings(converted(), closed) == []
    assert topology(converted(), ingress()).auth is None
    assert warnings(converted(), ingress()) == []
    assert warnings(converted(), ingress(annotations=key)) == [("KG0405", "spec.backend.allowAnonymous")]
    silent = ingress({"backend": {"allowAnonymous": False}})
    assert warnings(converted(), silent) == [("KG0414", "spec.backend")]
    assert topology(converted(), dllama(annotations=key)).auth.secret.name == "api-key"


def test_ingress_without_a_port_has_that_of_the_operator() -> None:
    assert topology(converted(), ingress({"service": {}})).service.port == 8082


def test_route_of_an_ingress_has_its_annotations_and_certificate() -> None:
    notes = {"nginx.ingress.kubernetes.io/proxy-read-timeout": "600"}
    for hosts in (["api.example.com"], ["*.example.com"], []):
        tls = [{"hosts": hosts, "secretName": "api-tls"}]
        given = {"route": {"host": "api.example.com", "pathType": "prefix", "annotations": notes, "tls": tls}}
        route = topology(converted(), ingress(given)).route
        assert (route.ingress.annotations, route.tls.secret.name) == (notes, "api-tls")
        assert warnings(converted(), ingress(given)) == []


def test_parts_of_a_route_that_kaigen_does_not_write_are_reported() -> None:
    tls = [
        {"hosts": ["other.example.com"], "secretName": "other"},
        {"hosts": ["api.example.com", "b.example.com"], "secretName": "api"},
        {"secretName": "again"},
    ]
    route = {"host": "api.example.com", "pathType": "Exact", "tls": tls}
    document = ingress({"route": route})
    assert topology(converted(), document).route.tls.secret.name == "api"
    assert sorted(warnings(converted(), document)) == [
        ("KG0405", "spec.route.tls[0]"),
        ("KG0405", "spec.route.tls[1].hosts[1]"),
        ("KG0405", "spec.route.tls[2]"),
        ("KG0414", "spec.route.pathType"),
    ]
    nameless = ingress({"route": {"host": "api.example.com", "tls": [{"hosts": ["api.example.com"]}]}})
    assert errors(converted(), nameless) == [("KG0413", "spec.route.tls[0]")]


def test_example_of_koldun_for_one_ring_renders() -> None:
    """`k8s/examples/ingress-qwen3-8b.yaml` at commit 3e99f14f, with the Model that it names in a comment."""
    image = "ghcr.io/gorizond/koldun:latest"
    backend: Object = {
        **dict.fromkeys(("image", "rootImage", "workerImage", "dispatcherImage"), image),
        "replicaPower": 0,
        "nats": {
            "url": "nats://koldun-nats:4222",
            "kvBucket": "koldun_ttl",
            "modelsBucket": "koldun_models",
            "tokensBucket": "koldun_tokens",
            "modelPrefix": "model/",
            "tokenPrefix": "token/",
        },
        "allowAnonymous": True,
        **dict.fromkeys(("conversationTTL", "responseTimeout"), "10m"),
        "sessionScaling": {"minDllamas": 1, "maxDllamas": 1, "scaleUpBacklog": 2, "scaleDownIdleSeconds": 120},
        "extraArgs": ["--backend-disable-think-filter=true"],
    }
    route = {"host": "qwen3-8b.local.localtest.me"}
    spec = {"backend": backend, "service": {"port": 8082}, "route": route}
    document = resource("Ingress", spec, "qwen3-8b-ingress", namespace="koldun", annotations=annotated(memory="8Gi"))
    weights = converted(name="qwen3-8b-q40", namespace="koldun")
    app = next(item for item in compiled(weights, document).apps if item.app.name == "qwen3-8b-ingress")
    kinds = {item.body["kind"] for item in app.objects}
    assert {"Service", "Ingress", "LeaderWorkerSet"} <= kinds
    assert {path for _, path in warnings(weights, document)} == {
        *(
            f"spec.backend.{name}"
            for name in ("image", "dispatcherImage", "nats", "conversationTTL", "responseTimeout")
        ),
        *("spec.backend.sessionScaling", "spec.backend.extraArgs"),
    }


def test_session_is_an_error() -> None:
    spec = {
        "hash": "a",
        "modelRef": {"kind": "Model", "name": "it"},
        **dict.fromkeys(("rootImage", "workerImage"), IMAGE),
    }
    assert errors(converted(), resource("Session", spec)) == [("KG0413", "kind")]


def token(checksum: str, name: str = "token", *, disabled: bool = False) -> Object:
    """Return a Token."""
    return resource("Token", {"hash": checksum, "disabled": disabled, "metadata": {"owner": "me"}}, name)


GUARDED: Object = {"backend": {"allowAnonymous": False}}


@pytest.mark.promise("Koldun", "`Token`: API tokens by their hash")
def test_requests_to_an_ingress_need_one_of_the_tokens_of_its_namespace() -> None:
    elsewhere = token("d" * 64)
    elsewhere["metadata"]["namespace"] = "other"
    tokens = [token("b" * 64), token("A" * 64, "second"), token("c" * 64, "third", disabled=True), elsewhere]
    documents = (converted(), *tokens, ingress(GUARDED))
    assert topology(*documents).auth.sha256 == ["a" * 64, "b" * 64]
    assert warnings(*documents) == [("KG0405", "spec.hash")]
    assert all(f"--api-key-sha256={digit * 64}" in str(compiled(*documents).apps) for digit in "ab")


@pytest.mark.parametrize("annotations", [{}, annotated(api_key_secret="keys")])
def test_a_token_that_no_ingress_asks_for_is_a_warning(annotations: Object) -> None:
    documents = (converted(), token("a" * 64), ingress({} if not annotations else GUARDED, annotations=annotations))
    auth = topology(*documents).auth
    assert auth is None or (auth.secret.name, auth.sha256) == ("keys", None)
    assert warnings(*documents) == [("KG0405", "spec.hash")]


def test_tokens_that_no_request_could_have_are_errors() -> None:
    assert errors(converted(), ingress(GUARDED), token("a" * 64, disabled=True)) == [("KG0413", "spec.backend")]
    assert ("KG0412", "spec.hash") in errors(converted(), ingress(GUARDED), token("abc"))


@pytest.mark.parametrize("at", ["Dllama", "Worker"])
def test_queue_of_the_pods_of_a_ring_is_a_warning(at: str) -> None:
    nats = {"nats": {"url": "nats://n:4222"}}
    documents = (dllama(changes=nats),) if at == "Dllama" else (root(), worker(0, nats))
    assert warnings(converted(), *documents) == [("KG0405", "spec.nats")]


@pytest.mark.parametrize("explicit", ["Root", "Worker"])
def test_an_omitted_namespace_is_that_of_kaigen_yaml(explicit: str) -> None:
    namespaces: dict[str, Object] = {explicit: {"namespace": "ml"}}
    found = loaded(
        converted(),
        root(**namespaces.get("Root", {})),
        worker(0, **namespaces.get("Worker", {})),
        config=Config(namespace="ml"),
    )
    assert found.load_diagnostics == ()
    (spec,) = (each.block.spec for each in found.specs if each.block.kind == "Topology")
    assert spec.shape.nodes == 2


def test_an_omitted_namespace_is_not_every_namespace() -> None:
    found = loaded(converted(namespace="other"), root(namespace="other"), worker(0), config=Config(namespace="ml"))
    assert [(item.code, item.path) for item in found.load_diagnostics] == [("KG0412", "spec.rootRef")]
    assert "namespace `ml`" in found.load_diagnostics[0].message


def test_parts_of_a_dllama_may_omit_its_namespace() -> None:
    labels = {"koldun.gorizond.io/dllama": "chat"}
    made = (root(name="chat-root", labels=labels), worker(0, {"rootRef": "chat-root"}, labels=labels))
    found = loaded(converted(), dllama(1, namespace="ml"), *made, config=Config(namespace="ml"))
    assert [each.block.metadata.name for each in found.specs] == ["it", "chat"]


def test_ingress_finds_the_only_model_of_the_namespace_of_kaigen_yaml() -> None:
    found = loaded(
        converted(namespace="ml"), converted(name="far", namespace="a"), ingress(), config=Config(namespace="ml")
    )
    assert [each.block.spec.model.name for each in found.specs if each.block.kind == "Topology"] == ["it"]


def test_secret_of_the_namespace_of_kaigen_yaml_is_the_own_one() -> None:
    storage = {**STORAGE, "secretRef": {"name": "minio-creds", "namespace": "ml"}}
    document = converted({"objectStorage": storage})
    assert loaded(document, config=Config(namespace="ml")).load_diagnostics == ()
    assert [item.code for item in loaded(document, config=Config(namespace="other")).load_diagnostics] == ["KG0414"]


def test_hints_name_fields_of_koldun() -> None:
    run = loaded(converted(), dllama())
    found = {each.block.kind: each for each in run.specs}
    assert "download.huggingFaceTokenSecretRef" in found["Model"].hints["KG0355"]
    (planned,) = plan_specs(run.specs, run.resolve).without
    assert "kaigen lock" in planned.why
    assert "facts" not in planned.why


def test_hints_about_files_and_cpus_name_what_koldun_has() -> None:
    file = f"https://huggingface.co/Qwen/Qwen3-0.6B/blob/{COMMIT}/model.safetensors"
    given = {"sourceUrl": file, "launchOptions": ["--net-turbo", "1"]}
    specs = loaded(converted(given), dllama(annotations={"kaigen.dev/cpu": "1500m"})).specs
    found = {each.block.kind: each.hints for each in specs}
    assert found["Model"]["KG0323"] == "write the URL of the repository, without the path of a file"
    assert "`kaigen.dev/cpu`" in found["Topology"]["KG0327"]


def test_a_value_that_the_runtime_misreads_is_reported_at_the_option() -> None:
    options = {"launchOptions": ["--temperature", "hot"]}
    assert errors(converted(options), dllama()) == [("KG0393", "spec.launchOptions[1]")]


def test_no_hint_locks_files_that_are_in_a_claim() -> None:
    for documents in ((root({"modelRef": "weights"}),), (model(EXISTING), dllama())):
        (spec,) = (each for each in loaded(*documents).specs if each.block.kind == "Topology")
        assert spec.hints["KG0394"] == "set the annotation `kaigen.dev/memory`"
