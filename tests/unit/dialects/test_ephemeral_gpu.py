"""Ephemeral GPU's job: every default, every field, and the diagnostics for invalid values."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml

from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs

Object = dict[str, Any]
Said = list[tuple[str, str, str]]
LEAST: Object = {"input": {"path": "/artifacts/input.jpg"}, "output": {"path": "/artifacts/output.json"}}
GROUP = "gpu.yourdomain.io"


def compiled(spec: Object | None = None, group: str = GROUP, **metadata: Any) -> Compilation:
    document = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "EphemeralAccelerationJob",
        "metadata": {"name": "a-job", **metadata},
        "spec": LEAST | (spec or {}),
    }
    text = yaml.safe_dump(document, sort_keys=False)
    return compile_specs(["-"], stdin=io.BytesIO(text.encode()))


def objects(spec: Object | None = None, **metadata: Any) -> dict[str, Object]:
    (app,) = compiled(spec, **metadata).apps
    return {item.object.role: item.body for item in app.objects}


def annotated(**directives: str) -> dict[str, str]:
    return {f"kaigen.dev/{name.replace('_', '-')}": value for name, value in directives.items()}


def container(spec: Object | None = None, **metadata: Any) -> Object:
    (found,) = objects(spec, **metadata)["job"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def arguments(spec: Object | None = None, **metadata: Any) -> dict[str, str]:
    return dict(item.removeprefix("--").split("=", 1) for item in container(spec, **metadata)["args"])


def warnings(spec: Object | None = None, **metadata: Any) -> Said:
    return [(item.code, item.path, item.message) for item in compiled(spec, **metadata).diagnostics]


def errors(spec: Object | None = None, **metadata: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        compiled(spec, **metadata)
    return [(item.code, item.path) for item in caught.value.diagnostics if item.severity is Severity.ERROR]


def claimed(made: dict[str, Object]) -> Object:
    """Return the claim that the Job for the volume creates."""
    (argument,) = (
        item
        for body in made.values()
        if body["kind"] == "Job"
        for container in body["spec"]["template"]["spec"]["containers"]
        for item in container.get("args", ())
        if item.startswith("--volume=")
    )
    found: Object = yaml.safe_load(argument.removeprefix("--volume="))
    return found


@pytest.mark.promise("Ephemeral GPU", "`EphemeralAccelerationJob` creates a PVC and a GPU pod that reads and writes it")
@pytest.mark.promise("Ephemeral GPU", "`ttlSecondsAfterFinished`: the pod is deleted at once, or after N seconds")
@pytest.mark.promise("Ephemeral GPU", "`pvcTTLSecondsAfterFinished`: the PVC is deleted after its TTL")
@pytest.mark.promise("Ephemeral GPU", "`storageClass`, `pvcSize` of the PVC")
def test_every_default_is_that_of_the_operators_definition() -> None:
    made = objects()
    job = made["job"]
    assert job["spec"]["backoffLimit"] == 0
    assert job["metadata"]["annotations"]["kaigen.dev/pod-ttl"] == "0"
    assert job["metadata"]["annotations"]["kaigen.dev/failed-pod-ttl"] == "0"
    assert job["metadata"]["labels"]["kaigen.dev/expires"] == "true"
    given = arguments()
    assert given["model"] == "resnet50"
    assert given["input"] == "/artifacts/input.jpg"
    assert given["output"] == "/artifacts/output.json"
    assert given["device"] == "cuda"
    assert container()["resources"]["limits"]["nvidia.com/gpu"] == 1
    claim = claimed(made)
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "longhorn",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    assert claim["metadata"]["annotations"]["kaigen.dev/ttl"] == "3600"
    assert warnings() == []


@pytest.mark.promise("Ephemeral GPU", "`model: resnet50`")
def test_weights_are_downloaded_into_the_volume() -> None:
    (fetch,) = (
        item
        for item in objects()["job"]["spec"]["template"]["spec"]["initContainers"]
        if "--repo=timm/resnet50.tv_in1k" in item.get("args", ())
    )
    (folder,) = (item.removeprefix("--dest=") for item in fetch["args"] if item.startswith("--dest="))
    assert folder.startswith("/artifacts/")
    assert arguments()["weights"] == f"{folder}/model.safetensors"
    assert "--revision=78f3ecfdb38e06d9b8397f662e7ab8fee96026fa" in fetch["args"]
    assert len(arguments()["weights-sha256"]) == 64
    assert arguments()["weights-version"] == "IMAGENET1K_V1"


@pytest.mark.promise("Ephemeral GPU", "`model: mobilenet_v3_small`")
def test_weights_of_the_small_network_are_torchvisions_own_file() -> None:
    given = arguments({"model": "mobilenet_v3_small"})
    assert given["weights"].endswith("/mobilenet_v3_small-047dcff4.pth")
    assert given["weights-sha256"].startswith("047dcff4")
    assert "download.pytorch.org" in str(objects({"model": "mobilenet_v3_small"}))


@pytest.mark.promise("Ephemeral GPU", "`ttlSecondsAfterFinished`: the pod is deleted at once, or after N seconds")
@pytest.mark.promise("Ephemeral GPU", "`pvcTTLSecondsAfterFinished`: the PVC is deleted after its TTL")
@pytest.mark.promise("Ephemeral GPU", "`storageClass`, `pvcSize` of the PVC")
@pytest.mark.promise("Ephemeral GPU", "`input.path`, `output.path`: paths inside the PVC")
def test_every_field_has_its_effect() -> None:
    spec = {
        "model": "mobilenet_v3_small",
        "input": {"type": "image", "path": "/artifacts/in/a.png"},
        "output": {"path": "/artifacts/out/a.json"},
        "resources": {"gpu": 1},
        "ttlSecondsAfterFinished": 60,
        "pvcTTLSecondsAfterFinished": 0,
        "storageClass": "fast",
        "pvcSize": "5Gi",
    }
    notes = {**annotated(weights="/artifacts/w.safetensors", failed_pod_ttl="1d"), "note": "n"}
    made = objects(spec, annotations=notes, namespace="images", labels={"team": "a"})
    given = arguments(spec, annotations=notes)
    assert given["model"] == "mobilenet_v3_small"
    assert (given["input"], given["output"]) == ("/artifacts/in/a.png", "/artifacts/out/a.json")
    assert given["weights"] == "/artifacts/w.safetensors"
    job, claim = made["job"], claimed(made)
    assert job["metadata"]["annotations"]["kaigen.dev/pod-ttl"] == "60"
    assert job["metadata"]["annotations"]["kaigen.dev/failed-pod-ttl"] == "86400"
    assert claim["metadata"]["annotations"]["kaigen.dev/ttl"] == "0"
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"]["storage"] == "5Gi"
    for body in made.values():
        assert body["metadata"]["namespace"] == "images"
        assert body["metadata"]["labels"]["team"] == "a"
        assert body["metadata"]["annotations"]["note"] == "n"
    assert warnings(spec, annotations=notes) == []


@pytest.mark.parametrize(("directives", "wait"), [({}, "3600"), ({"input_wait": "2h"}, "7200")])
def test_run_waits_until_its_input_is_uploaded(directives: dict[str, str], wait: str) -> None:
    spec = objects({"input": {"path": "/artifacts/in/a.jpg"}}, annotations=annotated(**directives))
    inits = spec["job"]["spec"]["template"]["spec"]["initContainers"]
    (found,) = (item for item in inits if item["name"] != "fetch-model")
    text = json.dumps(found)
    assert "in/a.jpg" in text
    assert wait in text


def test_a_changed_ttl_starts_no_new_run() -> None:
    one, other = objects({"ttlSecondsAfterFinished": 5}), objects({"ttlSecondsAfterFinished": 6})
    assert one["job"]["metadata"]["name"] == other["job"]["metadata"]["name"]
    assert objects({"pvcSize": "2Gi", "model": "resnet50"})["job"]["metadata"]["name"]


def test_an_empty_storage_class_is_the_default_class_of_the_cluster() -> None:
    assert "storageClassName" not in claimed(objects({"storageClass": ""}))["spec"]


def test_a_negative_volume_ttl_keeps_the_volume_as_long_as_the_resource() -> None:
    made = objects({"pvcTTLSecondsAfterFinished": -1})
    (claim,) = (body for body in made.values() if body["kind"] == "PersistentVolumeClaim")
    assert "helm.sh/resource-policy" not in claim["metadata"].get("annotations", {})


@pytest.mark.promise("Ephemeral GPU", "`image`: job container image")
def test_an_image_of_ones_own_runs_the_operators_command() -> None:
    spec = {"image": "registry.example.com/infer:2"}
    found = container(spec)
    assert found["image"] == "registry.example.com/infer:2"
    assert found["command"] == ["python", "-m", "job_image_infer.run_infer"]
    assert found["args"] == [
        *("--model", "resnet50", "--input", "/artifacts/input.jpg", "--output", "/artifacts/output.json")
    ]
    assert {"mountPath": "/artifacts", "name": "output"} in found["volumeMounts"]
    assert warnings(spec) == []


@pytest.mark.promise("Ephemeral GPU", "`kubectl logs -l app=gpu-job`")
@pytest.mark.promise("Ephemeral GPU", "`kubectl wait pvc/artifacts-NAME`")
@pytest.mark.parametrize("fields", [{}, {"pvcTTLSecondsAfterFinished": -1}])
def test_pods_and_the_volume_are_found_by_the_operators_label_and_name(fields: dict[str, int]) -> None:
    made = objects(fields)
    template = made["job"]["spec"]["template"]
    assert template["metadata"]["labels"].items() >= {"app": "gpu-job", "ephemeralaccelerationjob": "a-job"}.items()
    volumes = [volume.get("persistentVolumeClaim") for volume in template["spec"]["volumes"]]
    assert {"claimName": "artifacts-a-job"} in volumes
    claim = claimed(made) if not fields else made["persistentvolumeclaim"]
    assert claim["metadata"]["name"] == "artifacts-a-job"


def test_compat_keeps_names_labels_and_paths_of_the_operator() -> None:
    notes = annotated(compat="true")
    made = objects({"image": "gpu-job-inference:latest"}, annotations=notes)
    job, claim = made["job"], claimed(made)
    assert job["metadata"]["name"] == "ephemeralaccelerationjob-a-job"
    assert claim["metadata"]["name"] == "artifacts-a-job"
    assert claim["metadata"]["annotations"]["kaigen.dev/job"] == "ephemeralaccelerationjob-a-job"
    template = job["spec"]["template"]
    assert template["metadata"]["labels"].items() >= {"app": "gpu-job", "ephemeralaccelerationjob": "a-job"}.items()
    (inference,) = template["spec"]["containers"]
    assert inference["name"] == "inference"
    assert inference["image"] == "gpu-job-inference:latest"
    assert inference["command"] == ["python", "-m", "job_image_infer.run_infer"]
    assert {"name": "artifacts", "mountPath": "/artifacts"} in inference["volumeMounts"]
    volume = {"name": "artifacts", "persistentVolumeClaim": {"claimName": "artifacts-a-job"}}
    assert volume in template["spec"]["volumes"]
    assert warnings(annotations=notes) == []


def test_names_of_the_operator_have_room_for_38_characters() -> None:
    notes = annotated(compat="true")
    assert objects(name="a" * 38, annotations=notes)["job"]["metadata"]["name"].endswith("a" * 38)
    name = objects(name="a" * 39, annotations=notes)["job"]["metadata"]["name"]
    assert len(name) == 63


@pytest.mark.parametrize(
    ("spec", "group", "expected"),
    [
        ({}, "gpu.redtails.io", ("KG0414", "apiVersion")),
        ({"image": "gpu-job-inference:latest"}, GROUP, ("KG0414", "spec.image")),
        ({"command": ["python", "x.py"]}, GROUP, ("KG0405", "spec.command")),
        ({"input": {"type": "video", "path": "/artifacts/a"}}, GROUP, ("KG0405", "spec.input.type")),
    ],
)
def test_what_is_ignored_or_replaced_is_a_warning(spec: Object, group: str, expected: tuple[str, str]) -> None:
    assert [item[:2] for item in warnings(spec, group=group)] == [expected]


@pytest.mark.promise("Ephemeral GPU", "`resources.gpu`: number of GPUs")
def test_gpus_are_requested_and_those_that_the_classification_does_not_use_are_a_warning() -> None:
    spec: Object = {"resources": {"gpu": 2}}
    assert [item[:2] for item in warnings(spec)] == [("KG0328", "spec.resources.gpu")]
    assert container(spec)["resources"]["limits"]["nvidia.com/gpu"] == 2
    spec["image"] = "registry.example.com/infer:2"
    assert warnings(spec) == []
    assert container(spec)["resources"]["limits"]["nvidia.com/gpu"] == 2


def test_status_and_what_a_cluster_writes_are_ignored() -> None:
    found = [item[:2] for item in warnings(uid="x", finalizers=["kopf.zalando.org/KopfFinalizerMarker"])]
    assert found == [("KG0405", "metadata.uid"), ("KG0405", "metadata.finalizers")]


def at(name: str, path: str) -> Object:
    return {name: {"path": path}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"model": "resnet18"}, ("KG0205", "spec.model")),
        ({"resources": {"gpu": 0}}, ("KG0208", "spec.resources.gpu")),
        ({"resources": {"gpu": "1"}}, ("KG0202", "spec.resources.gpu")),
        ({"ttlSecondsAfterFinished": -1}, ("KG0208", "spec.ttlSecondsAfterFinished")),
        ({"pvcTTLSecondsAfterFinished": 2**31}, ("KG0208", "spec.pvcTTLSecondsAfterFinished")),
        ({"pvcSize": "1 GB"}, ("KG0204", "spec.pvcSize")),
        ({"input": {"type": "image"}}, ("KG0203", "spec.input.path")),
        ({"pvcTtl": 5}, ("KG0201", "spec.pvcTtl")),
        (at("input", "input.jpg"), ("KG0204", "spec.input.path")),
        (at("input", "/tmp/input.jpg"), ("KG0412", "spec.input.path")),
        (at("input", "/artifacts/../etc/passwd"), ("KG0412", "spec.input.path")),
        (at("input", "/artifacts"), ("KG0412", "spec.input.path")),
        (at("output", "/output.json"), ("KG0412", "spec.output.path")),
        (at("output", "/artifacts//a/./output.json"), ("KG0412", "spec.output.path")),
        (at("output", "/artifacts/input.jpg"), ("KG0412", "spec.output.path")),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_an_error_at_its_field(spec: Object, expected: tuple[str, str]) -> None:
    assert errors(spec) == [expected]


@pytest.mark.parametrize(
    "directives",
    [
        {"weights": "/tmp/w.safetensors"},
        {"weights": "/artifacts/a/../w.safetensors"},
        {"model": "No Name"},
        {"failed_pod_ttl": "soon"},
        {"retain": "true"},
        {"input_wait": "never"},
    ],
    ids=str,
)
def test_a_wrong_annotation_of_kaigen_is_an_error(directives: dict[str, str]) -> None:
    (found,) = errors(annotations=annotated(**directives))
    assert found[0] == "KG0406"


def test_weights_are_named_once() -> None:
    found = errors(annotations=annotated(model="resnet", weights="/artifacts/w.safetensors"))
    assert ("KG0406", 'metadata.annotations["kaigen.dev/weights"]') in found


def test_a_name_longer_than_that_of_an_app_is_an_error() -> None:
    assert [path for _, path in errors(name="a" * 54)] == ["metadata.name"]
