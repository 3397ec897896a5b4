"""AI Operator's Job: every default, every field, and the diagnostics for invalid values."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml

from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs

NAME = "a-job"
Object = dict[str, Any]
Said = list[tuple[str, str, str]]


def compiled(spec: Object | None = None, **metadata: Any) -> Compilation:
    document = {
        "apiVersion": "ai.re-cinq.com/v1",
        "kind": "Job",
        "metadata": {"name": NAME, **metadata},
        "spec": spec or {},
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return compile_specs(["-"], stdin=io.BytesIO(text.encode()))


def objects(spec: Object | None = None, **metadata: Any) -> dict[str, Object]:
    (app,) = compiled(spec, **metadata).apps
    return {item.body["kind"]: item.body for item in app.objects}


def pod(spec: Object | None = None, **metadata: Any) -> Object:
    found: Object = objects(spec, **metadata)["Job"]["spec"]["template"]["spec"]
    return found


def name_of_run(spec: Object | None = None, **metadata: Any) -> str:
    return str(objects(spec, **metadata)["Job"]["metadata"]["name"])


def warnings(spec: Object | None = None, **metadata: Any) -> Said:
    return [(item.code, item.path, item.message) for item in compiled(spec, **metadata).diagnostics]


def errors(spec: Object | None = None, **metadata: Any) -> Said:
    with pytest.raises(InputError) as caught:
        compiled(spec, **metadata)
    return [
        (item.code, item.path, item.message) for item in caught.value.diagnostics if item.severity is Severity.ERROR
    ]


@pytest.mark.promise("AI Operator", "Defaults of the Job CRD specification")
@pytest.mark.promise("AI Operator", "Creates a PersistentVolumeClaim for model storage")
def test_every_default_is_the_operators() -> None:
    made, template = objects(), pod()
    volume, container = made["PersistentVolumeClaim"]["spec"], template["containers"][0]
    assert volume == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local-path",
        "resources": {"requests": {"storage": "50Gi"}},
    }
    assert template["runtimeClassName"] == "nvidia"
    assert container["image"] == "silentehrec/torchtune:latest"
    assert container["command"] == [
        *("tune", "run", "full_finetune_single_device", "-r=3", "--config", "qwen2_5/0.5B_full_single_device")
    ]
    assert "--repo=Qwen/Qwen2.5-0.5B-Instruct" in template["initContainers"][0]["args"]
    assert made["Job"]["spec"]["backoffLimit"] == 6
    assert made["Job"]["metadata"]["namespace"] == "default"
    assert "HF_TOKEN" not in yaml.safe_dump(template)
    assert warnings() == []


@pytest.mark.promise("AI Operator", "The Secret `hf-token` with the key `token`")
@pytest.mark.promise("AI Operator", "`runtimeClassName`, `image` and `command` of the training container")
@pytest.mark.promise("AI Operator", "`model`: the model is downloaded from Hugging Face by an init container")
@pytest.mark.promise("AI Operator", "`diskSize`, `storageClassName`, `accessModes` of the volume")
@pytest.mark.promise("AI Operator", "`huggingFaceSecret`: name of the Secret with the token")
def test_every_field_has_its_effect() -> None:
    spec = {
        "image": "tune:2",
        "model": "org/big",
        "runtimeClassName": "nvidia-cdi",
        "diskSize": 200,
        "storageClassName": "fast",
        "accessModes": ["ReadWriteMany"],
        "command": ["tune", "run"],
        "huggingFaceSecret": "my.token-1",
    }
    made, template = (objects(spec, namespace="tuning", labels={"team": "a"}, annotations={"note": "n"}), pod(spec))
    volume, (fetch,), (train,) = (
        made["PersistentVolumeClaim"]["spec"],
        template["initContainers"],
        template["containers"],
    )
    assert volume["resources"]["requests"]["storage"] == "200Gi"
    assert volume["storageClassName"] == "fast"
    assert volume["accessModes"] == ["ReadWriteMany"]
    assert (train["image"], train["command"]) == ("tune:2", ["tune", "run"])
    assert {"--repo=org/big", "--dest=/tmp/big"} <= set(fetch["args"])
    reference = {"secretKeyRef": {"name": "my.token-1", "key": "token"}}
    assert {"name": "HF_TOKEN", "valueFrom": reference} in fetch["env"]
    assert template["runtimeClassName"] == "nvidia-cdi"
    for found in made.values():
        assert found["metadata"]["namespace"] == "tuning"
        assert found["metadata"]["labels"]["team"] == "a"
        assert found["metadata"]["annotations"]["note"] == "n"


@pytest.mark.parametrize("field", ["runtimeClassName", "storageClassName"])
def test_an_empty_class_asks_for_none(field: str) -> None:
    text = yaml.safe_dump(objects({field: ""}))
    assert field not in text
    assert field in yaml.safe_dump(objects({}))


@pytest.mark.promise("AI Operator", "The training job has access to GPU resources")
def test_the_default_is_one_gpu() -> None:
    def gpus(**annotations: str) -> Any:
        noted = {f"kaigen.dev/{key}": value for key, value in annotations.items()}
        limits = pod(annotations=noted)["containers"][0]["resources"]["limits"]
        return limits.get("nvidia.com/gpu")

    assert [gpus(), gpus(gpus="1"), gpus(gpus="8"), gpus(gpus="0")] == [1, 1, 8, None]


@pytest.mark.parametrize("value", ["-1", "65", "many", "1.5", "", "008"])
def test_a_number_of_gpus_that_is_none_is_refused(value: str) -> None:
    assert errors(annotations={"kaigen.dev/gpus": value}) == [
        ("KG0406", 'metadata.annotations["kaigen.dev/gpus"]', "`kaigen.dev/gpus` must be a whole number from 0 to 64")
    ]


@pytest.mark.promise("AI Operator", "Manages the lifecycle of resources")
@pytest.mark.parametrize(("value", "kept"), [(None, True), ("true", True), ("false", False)])
def test_trained_weights_are_kept_by_default(value: str | None, kept: bool) -> None:
    annotations = {} if value is None else {"kaigen.dev/retain-output": value}
    claim = objects(annotations=annotations)["PersistentVolumeClaim"]["metadata"]
    assert (claim.get("annotations", {}).get("helm.sh/resource-policy") == "keep") is kept


@pytest.mark.parametrize("directive", ["compat", "retain-output"])
@pytest.mark.parametrize("value", ["yes", "True", "1", ""])
def test_a_flag_is_true_or_false(directive: str, value: str) -> None:
    (said,) = errors(annotations={f"kaigen.dev/{directive}": value})
    assert said[0] == "KG0406"
    assert said[2] == f'`kaigen.dev/{directive}` must be "true" or "false"'


def test_an_unknown_directive_is_reported_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        compiled(annotations={"kaigen.dev/compatt": "true"})
    (said,) = caught.value.diagnostics
    assert (said.code, said.path) == ("KG0406", 'metadata.annotations["kaigen.dev/compatt"]')
    assert "kaigen.dev/compat" in said.hint


def test_directives_stay_out_of_the_objects() -> None:
    annotations = {"kaigen.dev/gpus": "2", "kaigen.dev/version": "1.2.3", "note": "n"}
    assert "kaigen.dev/" not in yaml.safe_dump(list(objects(annotations=annotations).values()))
    assert compiled(annotations=annotations).apps[0].app.version == "1.2.3"


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"diskSize": -1}, "KG0208", "spec.diskSize"),
        ({"diskSize": 1.5}, "KG0202", "spec.diskSize"),
        ({"diskSize": "50"}, "KG0202", "spec.diskSize"),
        ({"diskSize": 2**31}, "KG0208", "spec.diskSize"),
        ({"model": "no-owner"}, "KG0204", "spec.model"),
        ({"model": "a/b/c"}, "KG0204", "spec.model"),
        ({"image": ""}, "KG0208", "spec.image"),
        ({"image": "two words"}, "KG0204", "spec.image"),
        ({"accessModes": ["ReadWrite"]}, "KG0205", "spec.accessModes[0]"),
        ({"command": "tune run"}, "KG0202", "spec.command"),
        ({"command": [1]}, "KG0202", "spec.command[0]"),
        ({"ExtraArgs": ["x"]}, "KG0201", "spec.ExtraArgs"),
        ({"huggingFaceSecret": ""}, "KG0208", "spec.huggingFaceSecret"),
        ({"huggingFaceSecret": "My_Token"}, "KG0402", "spec.huggingFaceSecret"),
        ({"huggingFaceSecret": "a..b"}, "KG0402", "spec.huggingFaceSecret"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_an_error_at_its_field(spec: Object, code: str, path: str) -> None:
    assert [(said[0], said[1]) for said in errors(spec)] == [(code, path)]


@pytest.mark.promise("AI Operator", "`huggingFaceSecret`: name of the Secret with the token")
def test_a_token_in_place_of_a_secrets_name_is_an_error_that_does_not_repeat_it() -> None:
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"
    found = errors({"huggingFaceSecret": token})
    assert [path for _, path, _ in found] == ["spec.huggingFaceSecret"]
    assert token not in str(found)


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"diskSize": 0}, "KG0403", "spec.diskSize"),
        ({"command": []}, "KG0403", "spec.command"),
        ({"accessModes": []}, "KG0403", "spec.accessModes"),
        ({"model": "org/other"}, "KG0404", "spec.model"),
    ],
    ids=str,
)
def test_a_value_that_the_operator_treats_differently_gets_a_warning(spec: Object, code: str, path: str) -> None:
    assert [(said[0], said[1]) for said in warnings(spec)] == [(code, path)]


def test_what_is_empty_means_the_operators_default() -> None:
    plain = objects()
    specs: list[Object] = [{"diskSize": 0}, {"command": []}, {"accessModes": []}]
    for spec in specs:
        assert objects(spec) == plain


def test_a_model_with_a_command_of_its_own_is_no_mismatch() -> None:
    assert warnings({"model": "org/other", "command": ["tune", "run", "x"]}) == []
    assert warnings({"model": "Qwen/Qwen2.5-0.5B-Instruct"}) == []


def test_fields_that_only_a_cluster_writes_are_ignored_with_a_warning_each() -> None:
    written: Object = {
        "creationTimestamp": None,
        "generation": 3,
        "resourceVersion": "42",
        "uid": "0000",
        "finalizers": ["job.ai.re-cinq.com/finalizer"],
        "ownerReferences": [{"kind": "X", "controller": None}],
        "managedFields": [{"fieldsV1": {"f:spec": None}}],
    }
    found = warnings(**written)
    assert sorted(path for _, path, _ in found) == sorted(f"metadata.{name}" for name in written)
    assert {code for code, _, _ in found} == {"KG0405"}
    assert objects(**written) == objects()


@pytest.mark.parametrize("name", ["a" * 54, "Upper", "under_score", "dot.ted", "-dash", "dash-", ""])
def test_a_name_that_a_cluster_would_refuse_is_refused_first(name: str) -> None:
    assert {path for _, path, _ in errors(name=name)} == {"metadata.name"}


@pytest.mark.parametrize("compat", ["true", "false"])
def test_the_longest_name_fits_everywhere(compat: str) -> None:
    name = "a" * 53
    made = objects(name=name, annotations={"kaigen.dev/compat": compat})
    assert made["Job"]["metadata"]["name"].startswith(name)
    template = made["Job"]["spec"]["template"]["spec"]
    assert max(len(c["name"]) for c in [*template["containers"], *template["initContainers"]]) <= 63
    assert len(made["Job"]["metadata"]["name"]) <= 63


def test_labels_that_are_kaigens_own_are_overruled() -> None:
    """As in the operator's own sample, which was made for Kustomize."""
    labels = {"app.kubernetes.io/name": "ai-operator", "app.kubernetes.io/managed-by": "kustomize"}
    for found in objects(labels=labels).values():
        assert found["metadata"]["labels"]["app.kubernetes.io/name"] == NAME
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kaigen"


@pytest.mark.promise("AI Operator", "Manages the lifecycle of resources")
@pytest.mark.parametrize(
    "edit",
    [
        {"image": "tune:2"},
        {"model": "org/other"},
        {"command": ["tune", "run", "other"]},
        {"runtimeClassName": ""},
        {"huggingFaceSecret": "other"},
    ],
    ids=str,
)
def test_an_edit_that_the_operator_overlooks_makes_a_new_run(edit: Object) -> None:
    assert name_of_run({"huggingFaceSecret": "one", **edit}) != name_of_run({"huggingFaceSecret": "one"})


@pytest.mark.parametrize("edit", [{"diskSize": 60}, {"storageClassName": "x"}], ids=str)
def test_a_larger_disk_loses_neither_the_volume_nor_the_run(edit: Object) -> None:
    before, after = objects(), objects(edit)
    assert after["Job"] == before["Job"]
    assert after["PersistentVolumeClaim"]["metadata"] == before["PersistentVolumeClaim"]["metadata"]
    assert after["PersistentVolumeClaim"]["spec"] != before["PersistentVolumeClaim"]["spec"]


def test_compat_keeps_the_operators_names_whatever_is_edited() -> None:
    annotations = {"kaigen.dev/compat": "true"}
    specs: list[Object] = [{}, {"image": "tune:2"}]
    for spec in specs:
        made = objects(spec, annotations=annotations)
        assert made["Job"]["metadata"]["name"] == made["PersistentVolumeClaim"]["metadata"]["name"] == NAME


def test_a_diagnostic_about_an_object_points_at_the_operators_field() -> None:
    """Not at the field of kaigen's own kind that it was lowered to, which the user never wrote."""
    (said,) = errors({"storageClassName": "Not A Class"})
    assert said[1] == "spec.storageClassName"


TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}


@pytest.mark.promise("AI Operator", "The training job has access to HF authentication")
@pytest.mark.parametrize("compat", ["false", "true"])
@pytest.mark.parametrize(("value", "given"), [(None, False), ("false", False), ("true", True)])
def test_the_training_container_has_the_token_only_with_the_annotation(
    value: str | None, given: bool, compat: str
) -> None:
    annotations = {"kaigen.dev/compat": compat} | ({"kaigen.dev/token-in-training": value} if value else {})
    (container,) = pod({"huggingFaceSecret": "hf"}, annotations=annotations)["containers"]
    assert (TOKEN in container["env"]) == given


def test_a_token_for_the_training_that_no_secret_has_is_an_error() -> None:
    (found,) = errors({}, annotations={"kaigen.dev/token-in-training": "true"})
    assert found[:2] == ("KG0406", 'metadata.annotations["kaigen.dev/token-in-training"]')
