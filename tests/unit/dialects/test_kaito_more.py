"""KAITO's InferenceSet, RAGEngine and ModelMirror."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rendering import diagnostics_of, objects_of
from tests.unit.dialects.kaito_case import A100, LABELS, NAME, engine, errors, hints, objects, pod, warnings

Object = dict[str, Any]


def inference_set(annotations: dict[str, str] | None = None, *, template: Object | None = None, **spec: Any) -> Object:
    own: Object = {"resource": {"instanceType": A100}, "inference": {"preset": {"name": "phi-4"}}, **(template or {})}
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": NAME, **({"annotations": annotations} if annotations else {})},
        "spec": {"labelSelector": LABELS, "template": own, **spec},
    }


SCALED = {
    "scaledobject.kaito.sh/auto-provision": "true",
    "scaledobject.kaito.sh/metricName": "vllm:num_requests_waiting",
    "scaledobject.kaito.sh/threshold": "10",
    "scaledobject.kaito.sh/max-replicas": "4",
}
PROMETHEUS = {"kaigen.dev/prometheus": "http://prometheus:9090"}


def test_copies_are_replicas_under_one_service_and_one_name() -> None:
    document = inference_set(replicas=3)
    made = objects(document)
    assert made["Deployment"]["spec"]["replicas"] == 3
    arguments = engine(document)["args"]
    assert arguments[arguments.index("--served-model-name") + 1] == NAME


def test_scaling_without_a_maximum_is_a_warning_and_the_replicas_stay() -> None:
    annotations = {key: value for key, value in SCALED.items() if not key.endswith("max-replicas")}
    document = inference_set(annotations=annotations, replicas=2)
    ((code, path, message),) = warnings(document)
    assert (code, path) == ("KG0414", 'metadata.annotations["scaledobject.kaito.sh/auto-provision"]')
    assert message.startswith("it is not scaled")
    made = objects(document)
    assert made["Deployment"]["spec"]["replicas"] == 2
    assert "HorizontalPodAutoscaler" not in made


def test_annotations_of_the_template_count_too() -> None:
    template = {"metadata": {"labels": {"tier": "gold"}, "annotations": {"kaito.sh/performance-mode": "throughput"}}}
    document = inference_set(template=template)
    assert "--performance-mode=throughput" in engine(document)["args"]
    assert objects(document)["Deployment"]["metadata"]["labels"]["tier"] == "gold"


def test_annotations_of_the_scaler_become_an_autoscaler() -> None:
    document = inference_set({**SCALED, **PROMETHEUS})
    made = objects(document)
    scaled = made["ScaledObject"]["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (1, 4)
    assert scaled["triggers"][0]["metadata"]["threshold"] == "10"
    assert "replicas" not in made["Deployment"]["spec"]
    assert [code for code, _, _ in warnings(document)] == ["KG0357"], "KAITO's own scaler asks the pods itself"


def test_without_prometheus_the_hpa_is_used_with_a_warning() -> None:
    document = inference_set(SCALED)
    assert objects(document)["HorizontalPodAutoscaler"]["spec"]["maxReplicas"] == 4
    assert [code for code, _, _ in warnings(document)] == ["KG0357", "KG0414"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"scaledobject.kaito.sh/metricName": "dcgm_power"}, "KG0413"),
        ({"scaledobject.kaito.sh/threshold": "ten"}, "KG0412"),
        ({"kaigen.dev/prometheus": "prometheus:9090"}, "KG0406"),
    ],
)
def test_scaling_that_kaigen_does_not_know_is_an_error(change: dict[str, str], code: str) -> None:
    assert [item[0] for item in errors(inference_set({**SCALED, **change}))] == [code]


def test_the_node_limit_bounds_the_nodes_that_are_made() -> None:
    document = inference_set(replicas=2, nodeCountLimit=7)
    assert objects(document, profile="aks")["NodePool"]["spec"]["limits"] == {"nvidia.com/gpu": "7"}
    assert warnings(document) == []
    found = errors(inference_set(replicas=9, nodeCountLimit=7))
    assert [(code, path) for code, path, _ in found] == [("KG0416", "spec.nodeCountLimit")]


def test_the_update_strategy_is_honoured() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    document = inference_set(replicas=4, updateStrategy=strategy)
    rolling = objects(document)["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert rolling["maxUnavailable"] == 2
    reported = warnings(inference_set(updateStrategy={"type": "OnDelete"}))
    assert [(code, path) for code, path, _ in reported] == [("KG0405", "spec.updateStrategy.type")]


def test_images_that_update_automatically_get_a_warning() -> None:
    document = inference_set(autoUpgrade={"enabled": True})
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0405", "spec.autoUpgrade")]


# RAGEngine.


def rag(**spec: Any) -> Object:
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "RAGEngine",
        "metadata": {"name": NAME},
        "spec": {"embedding": {"local": {"modelID": "org/embedding"}}, **spec},
    }


def variables(document: Object) -> dict[str, Any]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in engine(document)["env"]}


def test_the_server_for_retrieval_gets_its_embedding_by_the_names_that_it_reads() -> None:
    found = variables(rag())
    assert found["EMBEDDING_SOURCE_TYPE"] == "local"
    assert found["LOCAL_EMBEDDING_MODEL_ID"] == "org/embedding"
    remote = variables(rag(embedding={"remote": {"url": "http://e", "accessSecret": "key"}}))
    assert remote["EMBEDDING_SOURCE_TYPE"] == "remote"
    assert remote["REMOTE_EMBEDDING_URL"] == "http://e"
    assert remote["REMOTE_EMBEDDING_ACCESS_SECRET"] == {
        "secretKeyRef": {"name": "key", "key": "REMOTE_EMBEDDING_ACCESS_SECRET"}
    }


def test_an_index_in_a_volume_is_loaded_and_kept() -> None:
    document = rag(storage={"persistentVolume": {"persistentVolumeClaim": "index", "mountPath": "/mnt/index/"}})
    assert variables(document)["DEFAULT_VECTOR_DB_PERSIST_DIR"] == "/mnt/index"
    assert {"postStart", "preStop"} == engine(document)["lifecycle"].keys()
    assert {"name": "index", "persistentVolumeClaim": {"claimName": "index"}} in pod(document)["volumes"]
    assert "lifecycle" not in engine(rag())


def test_an_index_in_a_database_is_named() -> None:
    found = variables(rag(storage={"vectorDB": {"engine": "qdrant", "url": "http://q:6333"}}))
    assert (found["VECTOR_DB_TYPE"], found["VECTOR_DB_URL"]) == ("qdrant", "http://q:6333")


def test_the_server_runs_on_a_cpu_or_on_the_gpus_of_its_nodes() -> None:
    assert "nvidia.com/gpu" not in engine(rag())["resources"]["limits"]
    compute = {"instanceType": A100, "labelSelector": LABELS}
    assert engine(rag(compute=compute))["resources"]["limits"]["nvidia.com/gpu"] == 1
    on_cpu = rag(compute={"instanceType": "Standard_D8s_v5", "labelSelector": LABELS})
    assert "nvidia.com/gpu" not in engine(on_cpu)["resources"]["limits"]
    assert pod(on_cpu)["nodeSelector"]["node.kubernetes.io/instance-type"] == "Standard_D8s_v5"


@pytest.mark.parametrize(
    ("instance", "taint", "limit"),
    [(A100, "nvidia.com/gpu", {"nvidia.com/gpu": "2"}), ("Standard_D8s_v5", "kaigen.dev/nodes", {"nodes": "2"})],
)
def test_the_server_gets_nodes_where_the_profile_has_karpenter(instance: str, taint: str, limit: Object) -> None:
    document = rag(compute={"instanceType": instance, "labelSelector": LABELS})
    pool = objects(document, profile="aks")["NodePool"]["spec"]
    assert pool["limits"] == limit
    assert [item["key"] for item in pool["template"]["spec"]["taints"]] == [taint]
    server = pod(document, profile="aks")
    assert server["nodeSelector"]["kaigen.dev/nodes"] == "default.it"
    assert {"key": taint, "operator": "Exists", "effect": "NoSchedule"} in server["tolerations"]


def test_the_limit_of_an_inference_set_limits_the_nodes_of_its_template() -> None:
    container = {"name": "a", "image": "registry.example/a:1", "ports": [{"containerPort": 8000}]}
    inference = {"template": {"spec": {"containers": [container]}}}
    document = inference_set(template={"inference": inference}, replicas=2, nodeCountLimit=5)
    assert objects(document, profile="aks")["NodePool"]["spec"]["limits"] == {"nvidia.com/gpu": "5"}


def test_an_image_of_an_embedding_is_reported_as_ignored() -> None:
    document = rag(embedding={"local": {"modelID": "org/embedding", "image": "registry.example/e:1"}})
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0405", "spec.embedding.local.image")]


def test_embedding_is_local_or_remote() -> None:
    both = {"local": {"modelID": "a/b"}, "remote": {"url": "http://e"}}
    assert "exclude each other" in errors(rag(embedding=both))[0][2]


def test_guardrails_need_rules_of_ones_own() -> None:
    assert errors(rag(guardrails={"enabled": True}))[0][0] == "KG0413"
    document = rag(guardrails={"enabled": True, "configMapRef": {"name": "rules"}})
    assert variables(document)["OUTPUT_GUARDRAILS_POLICY_PATH"] == "/etc/ragengine/guardrails/guardrails.yaml"


# ModelMirror.


def mirror(**spec: Any) -> Object:
    return {
        "apiVersion": "kaito.sh/v1alpha1",
        "kind": "ModelMirror",
        "metadata": {"name": NAME},
        "spec": {
            "source": {"registry": "huggingface", "modelID": "microsoft/phi-4"},
            "storage": {"size": "60Gi", "storageClassName": "files"},
            **spec,
        },
    }


def test_a_mirror_is_a_model_in_a_volume_that_pods_share() -> None:
    made = objects(mirror(jobNamespace="serving"))
    claim = made["PersistentVolumeClaim"]
    assert claim["metadata"]["namespace"] == "serving"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "files"
    arguments = made["Job"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--revision=187ef0342fff0eb3333be9f00389385e95ef0b61" in arguments


def test_a_static_mirror_is_refused_with_the_reason() -> None:
    assert [(code, path) for code, path, _ in errors(mirror(mode="Static"))] == [("KG0413", "spec.mode")]
    assert "template" in hints(mirror(mode="Static"))[0]


def test_a_mirror_without_a_source_is_an_error() -> None:
    document = mirror()
    del document["spec"]["source"]
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0412", "spec")]


def test_a_mirror_secret_in_another_namespace_is_reported() -> None:
    secret = {"name": "hf", "namespace": "elsewhere"}
    document = mirror(source={"registry": "huggingface", "modelID": "a/b", "accessSecret": secret})
    assert "KG0414" in [code for code, _, _ in warnings(document)]
    secret["namespace"] = "default"
    assert "KG0414" not in [code for code, _, _ in warnings(document)]


# MultiRoleInference.


def roles(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "kaito.sh/v1alpha1",
        "kind": "MultiRoleInference",
        "metadata": {"name": NAME, **({"annotations": annotations} if annotations else {})},
        "spec": {
            "labelSelector": LABELS,
            "model": {"name": "phi-4"},
            "roles": [
                {"type": "prefill", "replicas": 1, "instanceType": A100},
                {"type": "decode", "replicas": 2, "instanceType": A100},
            ],
            **spec,
        },
    }


MERGED = {"kaigen.dev/roles": "merged"}


def test_prefill_and_decode_apart_are_refused_with_the_reason_and_the_way_out() -> None:
    assert [(code, path) for code, path, _ in errors(roles())] == [("KG0413", "spec.roles")]
    assert "endpoint picker and a sidecar" in errors(roles())[0][2]
    assert 'kaigen.dev/roles: "merged"' in hints(roles())[0]


def test_pods_that_do_both_are_as_many_as_those_of_the_roles() -> None:
    made = objects(roles(MERGED))
    assert made["Deployment"]["spec"]["replicas"] == 3
    assert warnings(roles(MERGED)) == []


@pytest.mark.parametrize(
    ("second", "code"),
    [
        ({"type": "prefill", "instanceType": A100}, "KG0412"),
        ({"type": "decode", "instanceType": "Standard_NC96ads_A100_v4"}, "KG0413"),
    ],
)
def test_roles_that_cannot_be_one_are_errors(second: Object, code: str) -> None:
    document = roles(MERGED, roles=[{"type": "prefill", "instanceType": A100}, second])
    assert [item[0] for item in errors(document)] == [code]


def test_settings_of_the_endpoint_picker_are_reported_as_ignored() -> None:
    document = roles(MERGED, eppPluginsConfig="plugins")
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0405", "spec.eppPluginsConfig")]


def test_a_claim_in_the_file_of_the_workspace_that_uses_it_is_rendered_with_it() -> None:
    text = """
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: adapters}
    spec:
      accessModes: [ReadOnlyMany]
      resources: {requests: {storage: 1Gi}}
    ---
    apiVersion: kaito.sh/v1beta1
    kind: Workspace
    metadata: {name: phi}
    resource:
      instanceType: Standard_NC24ads_A100_v4
      labelSelector: {matchLabels: {pool: phi}}
    inference:
      preset: {name: phi-4}
      config: flags
      adapters:
        - source:
            name: support
            volumeSource: {persistentVolumeClaim: {claimName: CLAIM}}
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: flags}
    data:
      inference_config.yaml: |
        vllm: {max-model-len: 4096}
    """
    found = [(each["kind"], each["metadata"]["name"]) for each in objects_of(text.replace("CLAIM", "adapters"))]
    assert ("PersistentVolumeClaim", "adapters") in found
    assert ("ConfigMap", "flags") not in found
    (unused,) = diagnostics_of(text.replace("CLAIM", "others"))
    assert unused.code == "KG0213"
