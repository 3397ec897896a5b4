"""The weights of KAITO's presets: an existing claim, a token for the Hub, and what excludes what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.dialects.kaito_case import (
    A100,
    LABELS,
    NAME,
    Object,
    annotated,
    compiled,
    engine,
    errors,
    hints,
    pod,
    preset,
    warnings,
    workspace,
)

CLAIM = {"modelWeightsPVC": "weights"}
GATED = "llama-3.1-8b-instruct"
OPTIONS = "inference.preset.presetOptions"
NOTE = ("KG0414", f"{OPTIONS}.modelWeightsPVC")
TOKEN = 'metadata.annotations["kaigen.dev/token-secret"]'


def places(*documents: Object) -> list[tuple[str, str]]:
    """Code and field of every warning."""
    return [(code, path) for code, path, _ in warnings(*documents)]


def claim(*modes: str) -> Object:
    """Return the PersistentVolumeClaim with the weights."""
    resources = {"requests": {"storage": "40Gi"}}
    spec = {"accessModes": list(modes), "resources": resources}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "weights"}, "spec": spec}


def inference_set(replicas: int, **metadata: Any) -> Object:
    """Return an InferenceSet whose weights are in the claim."""
    block = {"preset": {"name": "phi-4", "presetOptions": CLAIM}}
    template = {"resource": {"instanceType": A100}, "inference": block}
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": NAME, **metadata},
        "spec": {"replicas": replicas, "labelSelector": LABELS, "template": template},
    }


def tokens(document: Object) -> list[Object]:
    """Return the references to the Secret with the token, of all containers of the pod."""
    spec = pod(document)
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    found = [entry for each in containers for entry in each.get("env", []) if entry["name"] == "HF_TOKEN"]
    return [entry["valueFrom"]["secretKeyRef"] for entry in found]


# Weights in an existing claim.


@pytest.mark.promise("KAITO", "`presetOptions.modelWeightsPVC`, `modelWeightsSubPath` (of a pull request)")
@pytest.mark.parametrize("runtime", ["vllm", "transformers"])
def test_weights_of_a_claim_are_mounted_and_not_downloaded(runtime: str) -> None:
    options = {**CLAIM, "modelWeightsSubPath": "phi-4"}
    document = annotated({"kaito.sh/runtime": runtime}, options=options)
    container = engine(document)
    mounts = [mount for mount in container["volumeMounts"] if mount["name"] == "model"]
    assert mounts == [{"name": "model", "mountPath": "/model", "readOnly": True, "subPath": "phi-4"}]
    assert {"name": "model", "persistentVolumeClaim": {"claimName": "weights", "readOnly": True}} in pod(document)[
        "volumes"
    ]
    assert container["args"][0] in {"/model", "--model=/model"}
    assert "initContainers" not in pod(document)
    assert places(document) == [NOTE]


def test_weights_of_a_claim_have_the_size_of_the_preset() -> None:
    document = preset("llama-3.3-70b-instruct", options=CLAIM, resource={"count": 1})
    assert ("KG1105", "resource.count") in [(code, path) for code, path, _ in errors(document)]


def test_a_folder_without_a_claim_is_an_error() -> None:
    document = preset(options={"modelWeightsSubPath": "phi-4"})
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0412", f"{OPTIONS}.modelWeightsSubPath")]


def test_a_folder_outside_of_the_volume_is_an_error() -> None:
    document = preset(options={**CLAIM, "modelWeightsSubPath": "../other"})
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0413", f"{OPTIONS}.modelWeightsSubPath")]


@pytest.mark.parametrize("field", ["modelWeightsPVC", "modelWeightsSubPath"])
def test_fine_tuning_does_not_read_a_claim(field: str) -> None:
    block = {"name": "phi-3-mini-128k-instruct", "presetOptions": {field: "weights"}}
    source = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
    output = {"volumeSource": {"persistentVolumeClaim": {"claimName": "adapters"}}}
    document = workspace(tuning={"preset": block, "method": "lora", "input": source, "output": output})
    assert ("KG0412", f"tuning.preset.presetOptions.{field}") in [(code, path) for code, path, _ in errors(document)]


def test_a_token_for_weights_of_a_claim_has_no_effect() -> None:
    document = preset(GATED, options={**CLAIM, "modelAccessSecret": "hf"})
    assert set(places(document)) == {NOTE, ("KG0405", f"{OPTIONS}.modelAccessSecret")}
    assert tokens(document) == []


def test_a_gated_model_in_a_claim_needs_no_token() -> None:
    assert places(preset(GATED, options=CLAIM)) == [NOTE]


def test_an_image_of_the_engine_serves_weights_of_a_claim() -> None:
    document = preset(options={**CLAIM, "image": "registry.example/vllm:0.33.0"}, accessMode="private")
    assert ("KG0414", f"{OPTIONS}.image") in places(document)
    assert engine(document)["image"] == "registry.example/vllm:0.33.0"
    assert engine(document)["args"][0] == "/model"


def test_a_claim_next_to_an_image_with_the_weights_has_no_effect() -> None:
    document = preset("falcon-7b", options={**CLAIM, "modelAccessSecret": "hf", "image": "registry.example/falcon:1"})
    unused = {("KG0405", f"{OPTIONS}.{field}") for field in ("modelWeightsPVC", "modelAccessSecret")}
    assert unused <= set(places(document))
    assert "volumes" not in pod(document) or "weights" not in str(pod(document)["volumes"])


def test_a_model_replaces_the_claim_and_the_token() -> None:
    weights = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "phi"},
        "spec": {"source": {"volume": {"claimName": "other"}}},
    }
    document = annotated({"kaigen.dev/model": "phi"}, options={**CLAIM, "modelAccessSecret": "hf"})
    unused = {("KG0405", f"{OPTIONS}.{field}") for field in ("modelWeightsPVC", "modelAccessSecret")}
    assert unused <= set(places(document, weights))


@pytest.mark.parametrize("modes", [("ReadWriteOnce",), ("ReadWriteOncePod",)])
def test_replicas_do_not_share_a_claim_of_one_node(modes: tuple[str, ...]) -> None:
    found = errors(inference_set(2), claim(*modes))
    assert [(code, path) for code, path, _ in found] == [
        ("KG0309", "spec.template.inference.preset.presetOptions.modelWeightsPVC")
    ]
    assert found[0][2] == f"2 pods cannot share `weights`, whose access mode is {modes[0]}"


@pytest.mark.parametrize(
    ("replicas", "modes"), [(1, ("ReadWriteOnce",)), (2, ("ReadWriteMany",)), (2, ("ReadOnlyMany",))]
)
def test_replicas_share_a_claim_of_many_nodes(replicas: int, modes: tuple[str, ...]) -> None:
    assert [code for code, _ in places(inference_set(replicas), claim(*modes))] == ["KG0414"]


def test_the_largest_number_of_replicas_decides_whether_they_share_a_claim() -> None:
    scaled = {"auto-provision": "true", "max-replicas": "4"}
    annotations = {f"scaledobject.kaito.sh/{key}": value for key, value in scaled.items()}
    document = inference_set(1, annotations=annotations)
    assert [message.split()[0] for _, _, message in errors(document, claim("ReadWriteOnce"))] == ["4"]


def test_nodes_of_a_workspace_do_not_share_a_claim_of_one_node() -> None:
    document = preset("llama-3.3-70b-instruct", options=CLAIM, resource={"count": 3})
    assert ("KG0309", NOTE[1]) in [(code, path) for code, path, _ in errors(document, claim("ReadWriteOnce"))]


# Tokens.


@pytest.mark.promise("KAITO", "The token of a gated model such as llama-2 in `v1alpha1`")
@pytest.mark.parametrize(("value", "key"), [("hf", "HF_TOKEN"), ("hf/token", "token")])
def test_an_annotation_names_the_token_of_a_resource_without_a_field_for_it(value: str, key: str) -> None:
    document = annotated({"kaigen.dev/token-secret": value}, "llama-2-7b-chat", version="v1alpha1")
    assert tokens(document) == [{"name": "hf", "key": key}]
    assert "KG0411" not in [code for code, _ in places(document)]


def test_a_gated_model_without_a_token_names_the_annotation_or_the_field() -> None:
    older, newer = preset("llama-2-7b-chat", version="v1alpha1"), preset(GATED)
    found = [hint for document in (older, newer) for hint in gate_hints(document)]
    assert found == [
        "set the annotation `kaigen.dev/token-secret` to a Secret with the key `HF_TOKEN`, or to SECRET/KEY",
        "set `modelAccessSecret` to a Secret with the key `HF_TOKEN`",
    ]


def gate_hints(document: Object) -> list[str]:
    """Return the hints of warnings about missing tokens."""
    return [item.hint for item in compiled(document).diagnostics if item.code == "KG0411"]


def test_the_field_takes_precedence_over_the_annotation() -> None:
    document = annotated({"kaigen.dev/token-secret": "other"}, GATED, options={"modelAccessSecret": "hf"})
    assert places(document) == [("KG0405", TOKEN)]
    assert tokens(document) == [{"name": "hf", "key": "HF_TOKEN"}]


@pytest.mark.parametrize("value", ["hf/", "Hf", "a/b/c"])
def test_an_annotation_that_names_no_secret_is_an_error(value: str) -> None:
    document = annotated({"kaigen.dev/token-secret": value}, "llama-2-7b-chat", version="v1alpha1")
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0406", TOKEN)]
    assert hints(document) == ["write the name of a Secret with the key `HF_TOKEN`, or SECRET/KEY"]


@pytest.mark.parametrize("compat", ["true", "false"])
def test_a_run_of_v1alpha1_downloads_with_the_token_of_the_annotation(compat: str) -> None:
    source = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
    output = {"volumeSource": {"persistentVolumeClaim": {"claimName": "adapters"}}}
    block = {"preset": {"name": "phi-3-mini-128k-instruct"}, "method": "lora", "input": source, "output": output}
    annotations = {"kaigen.dev/token-secret": "hf/token", "kaigen.dev/compat": compat}
    document = workspace(version="v1alpha1", tuning=block, metadata={"annotations": annotations})
    secret = {"name": "hf", "key": "token"}
    assert [item["kind"] for item in bodies(document) if secret in references(item)] == ["Job"]


def bodies(document: Object) -> list[Object]:
    """Return all objects of a file."""
    return [item.body for app in compiled(document).apps for item in app.objects]


def references(value: Any) -> list[Object]:
    """Return the references to keys of Secrets in an object."""
    if isinstance(value, list):
        return [found for item in value for found in references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["secretKeyRef"]] if "secretKeyRef" in value else []
    return own + [found for item in value.values() for found in references(item)]


def test_a_template_and_a_retrieval_server_do_not_read_weights() -> None:
    annotations = {"kaigen.dev/model": "phi", "kaigen.dev/token-secret": "hf"}
    container = {"name": "a", "image": "registry.example/a:1", "ports": [{"containerPort": 1}]}
    metadata = {"annotations": annotations}
    template = workspace(inference={"template": {"spec": {"containers": [container]}}}, metadata=metadata)
    retrieval = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "RAGEngine",
        "metadata": {"name": NAME, **metadata},
        "spec": {"embedding": {"local": {"modelID": "BAAI/bge-small-en-v1.5"}}},
    }
    unused = {("KG0405", f'metadata.annotations["{key}"]') for key in annotations}
    assert unused <= set(places(template))
    assert unused <= set(places(retrieval))
