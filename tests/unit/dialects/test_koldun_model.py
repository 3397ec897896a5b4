"""Koldun's Model: where its files come from and go to, and what is reported of each field."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.dialects.koldun.files import File, Repository, read_source
from kaigen.kinds.lowering import Lowering
from kaigen.kinds.positioned import Unplaced
from tests.unit.dialects.koldun_case import (
    COMMIT,
    STORAGE,
    Object,
    annotated,
    compiled,
    converted,
    errors,
    failures,
    loaded,
    model,
    specs,
    warnings,
)


def lowered(changes: Object | None = None, **metadata: Any) -> Any:
    """Return the spec of kaigen's Model."""
    (block,) = specs(model(changes, **metadata))
    return block.spec


def load_volume(document: Object) -> Any:
    """Return the claim of a Model's volume."""
    (app,) = compiled(document).apps
    (claim,) = (item.body for item in app.objects if item.body["kind"] == "PersistentVolumeClaim")
    return claim["spec"]


@pytest.mark.promise("Koldun", "`sourceUrl`")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-0.6B", Repository("Qwen/Qwen3-0.6B")),
        ("https://huggingface.co/Qwen/Qwen3-0.6B", Repository("Qwen/Qwen3-0.6B")),
        ("https://huggingface.co/Qwen/Qwen3-0.6B/", Repository("Qwen/Qwen3-0.6B")),
        ("https://www.huggingface.co/Qwen/Qwen3-0.6B.git", Repository("Qwen/Qwen3-0.6B")),
        ("http://hf.co/Qwen/Qwen3-0.6B?library=x", Repository("Qwen/Qwen3-0.6B")),
        ("huggingface.co/Qwen/Qwen3-0.6B", Repository("Qwen/Qwen3-0.6B")),
        ("hf://Qwen/Qwen3-0.6B@v1", Repository("Qwen/Qwen3-0.6B", "v1")),
        ("https://huggingface.co/Qwen/Qwen3-0.6B/tree/v1", Repository("Qwen/Qwen3-0.6B", "v1")),
        ("https://huggingface.co/o/n/tree/refs/pr/3", Repository("o/n", "refs/pr/3")),
        ("https://huggingface.co/o/n/tree/refs%2Fpr%2F3", Repository("o/n", "refs/pr/3")),
        ("https://huggingface.co/o/n/tree/main/sub", Repository("o/n", "main", "sub/*")),
        ("https://huggingface.co/o/n/resolve/main/a.safetensors", Repository("o/n", "main", "a.safetensors")),
        ("https://huggingface.co/o/n/raw/main/config.json", Repository("o/n", "main", "config.json")),
        ("https://hub.example.com/o/n", Repository("o/n", endpoint="https://hub.example.com")),
        ("http://hub:8080/o/n/tree/v1", Repository("o/n", "v1", endpoint="http://hub:8080")),
        ("https://example.com/test-model.bin", File("https://example.com/test-model.bin")),
        ("https://example.com/a/b/model.m", File("https://example.com/a/b/model.m")),
        ("https://example.com/models/model.gguf", File("https://example.com/models/model.gguf")),
    ],
)
def test_forms_of_source_url(text: str, expected: Repository | File) -> None:
    lowering = Lowering(Unplaced({}))
    assert read_source(text, lowering) == expected
    assert lowering.diagnostics == []


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "gpt2", "https://huggingface.co/gpt2", "https://huggingface.co/datasets/o/n"),
        *("https://huggingface.co/spaces/o/n", "ftp://example.com/a/b", "https://user:word@hub/o/n", "s3:///a"),
        *("http://[::1/Qwen/x", "http://hub:99999/o/n", "https://hub:port/o/n"),
        *("https://huggingface.co/api/models/Qwen/x", "https://huggingface.co/collections/Qwen/x"),
        *("https://huggingface.co/o/n/discussions", "https://huggingface.co/o/n/commit/0123"),
        *("https://huggingface.co/o/n/tree", "https://huggingface.co/o/n@v1/tree/v2"),
    ],
)
def test_source_url_that_names_no_model_is_an_error(text: str) -> None:
    lowering = Lowering(Unplaced({}))
    assert read_source(text, lowering) is None
    assert [(item.code, item.path) for item in lowering.diagnostics] == [("KG0412", "spec.sourceUrl")]


@pytest.mark.promise("Koldun", "`objectStorage.endpoint`, `secretRef` with the standard key names")
def test_every_default() -> None:
    spec = lowered({"localPath": ""})
    hub, bucket = spec.source.hugging_face, spec.store.bucket
    assert (hub.repo, hub.revision, hub.include, hub.token_secret) == ("Qwen/Qwen3-0.6B", COMMIT, [], None)
    assert bucket.uri == "s3://source/models/it"
    assert bucket.endpoint == "http://minio:9000"
    assert bucket.credentials.secret.name == "minio-creds"
    assert bucket.credentials.secret.access_key == "AWS_ACCESS_KEY_ID"
    assert bucket.mount.driver == "csi-s3"
    assert warnings(model({"localPath": ""})) == []


@pytest.mark.promise("Koldun", "`download.memory`, `chunkMaxMiB`, `concurrency`, `huggingFaceTokenSecretRef`")
def test_download_settings() -> None:
    given = {"memory": "2Gi", "chunkMaxMiB": 256, "concurrency": 6, "huggingFaceTokenSecretRef": {"name": "my-hf"}}
    spec = lowered({"download": given})
    assert (spec.transfer.memory, spec.transfer.concurrency, spec.transfer.part_size) == ("2Gi", 6, "256Mi")
    token = spec.source.hugging_face.token_secret
    assert (token.name, token.key) == ("my-hf", "token")
    assert warnings(model({"download": given})) == []


@pytest.mark.parametrize(
    ("download", "memory", "part"),
    [
        ({"memory": "1Gi", "chunkMaxMiB": 512, "concurrency": 2}, "1Gi", "384Mi"),
        ({"memory": "1Gi", "chunkMaxMiB": 0, "concurrency": 0}, "1Gi", None),
        ({"memory": "300Mi", "concurrency": 4}, "300Mi", "11Mi"),
        ({"chunkMaxMiB": 2}, None, "8Mi"),
    ],
)
def test_parts_of_a_download_fit_into_its_memory(download: Object, memory: str | None, part: str | None) -> None:
    transfer = lowered({"download": download}).transfer
    assert (transfer.memory, transfer.part_size) == (memory, part)


def test_too_little_memory_is_replaced_with_a_warning() -> None:
    given = {"download": {"memory": "128Mi"}}
    assert lowered(given).transfer.memory is None
    assert warnings(model(given)) == [("KG0414", "spec.download.memory")]


@pytest.mark.promise("Koldun", "`localPath`")
@pytest.mark.parametrize(
    ("local", "uri"),
    [
        ("s3://source/a/b/", "s3://source/a/b"),
        ("/models/tiny", "s3://source/models/tiny"),
        ("test-model", "s3://source/test-model"),
        ("", "s3://source/models/it"),
    ],
)
def test_local_path_is_a_prefix_in_the_bucket(local: str, uri: str) -> None:
    assert lowered({"localPath": local}).store.bucket.uri == uri
    assert warnings(model({"localPath": local})) == []


def test_local_path_in_another_bucket_is_used_with_a_warning() -> None:
    given = {"localPath": "s3://other/a"}
    assert lowered(given).store.bucket.uri == "s3://other/a"
    assert warnings(model(given)) == [("KG0414", "spec.localPath")]


@pytest.mark.promise("Koldun", "`bucketForSource`, `bucketForConvert`")
@pytest.mark.promise("Koldun", "`conversion.outputPath`, `conversion.memory`")
@pytest.mark.parametrize(
    ("output", "weights", "uri"),
    [
        (None, "q40", "s3://converted/models/qwen/converted/q40/it"),
        (None, "f32", "s3://converted/models/qwen/converted/f32/it"),
        ("s3://third", "q40", "s3://third/models/qwen/converted/it"),
        ("s3://third/a/b/", "f32", "s3://third/a/b/it"),
        ("/mnt/out", "q40", "s3://converted/models/qwen/converted/q40/it"),
    ],
)
def test_converted_files_are_in_the_other_bucket(output: str | None, weights: str, uri: str) -> None:
    conversion = {"weightsFloatType": weights, "memory": "8Gi", **({"outputPath": output} if output else {})}
    block = lowered({"conversion": conversion})
    converter = block.convert.distributed_llama
    assert (converter.weights, converter.converter.memory) == (weights, "8Gi")
    assert (block.store.bucket.uri, converter.store.bucket.uri) == ("s3://source/models/qwen", uri)
    found = [item.path for item in loaded(model({"conversion": conversion})).load_diagnostics]
    assert found == (["spec.conversion.outputPath"] if output == "/mnt/out" else [])


@pytest.mark.parametrize(
    ("conversion", "weights", "expected"),
    [
        ({}, "q40", []),
        ({"weightsFloatType": ""}, "q40", []),
        ({"convertWeights": "f32"}, "f32", []),
        ({"convertWeights": "q40", "weightsFloatType": "q40"}, "q40", []),
        ({"weightsFloatType": "q80"}, "q40", [("KG0414", "spec.conversion.weightsFloatType")]),
        ({"convertWeights": "q80"}, "q40", [("KG0414", "spec.conversion.convertWeights")]),
    ],
)
def test_type_of_converted_weights(conversion: Object, weights: str, expected: list[tuple[str, str]]) -> None:
    document = model({"conversion": conversion})
    (block,) = specs(document)
    assert block.spec.convert.distributed_llama.weights == weights
    assert warnings(document) == expected


@pytest.mark.promise("Koldun", "`csi.volumeHandle` is derived from bucket and prefix")
def test_pods_mount_the_converted_files_only() -> None:
    given: Object = {"conversion": {}, "pv": {"csiSecretName": "keys", "csiSecretNamespace": "storage"}}
    (block,) = specs(model(given))
    source, target = block.spec.store.bucket, block.spec.convert.distributed_llama.store.bucket
    assert source.endpoint == target.endpoint == "http://minio:9000"
    assert source.credentials.secret == target.credentials.secret
    assert target.mount.secret.name == "keys"
    assert source.mount.secret is None
    assert warnings(model(given)) == []
    (app,) = compiled(model(given)).apps
    bodies = {item.body["kind"]: item.body for item in app.objects}
    handle = bodies["PersistentVolume"]["spec"]["csi"]["volumeHandle"]
    assert handle == "converted/models/qwen/converted/q40/it"


def test_two_models_in_one_source_folder_are_an_error() -> None:
    one, other = ({"conversion": {"outputPath": f"s3://converted/{name}"}} for name in ("a", "b"))
    assert errors(model(one), model(other, name="other")) == [("KG0318", "spec.localPath")]


@pytest.mark.promise("Koldun", "`pv.csiDriver`, `csiMounter`, `csiOptions`, `csiSecretName`, `csiSecretNamespace`")
def test_every_field_of_pv_has_its_effect_on_the_bucket() -> None:
    pv = {
        "csiDriver": "s3.example.com",
        "csiMounter": "rclone",
        "csiOptions": "--memory-limit 1000 --dir-mode 0777 --no-checksum",
        "volumeAttributes": {"retries": "3"},
        "csiSecretName": "keys",
        "csiSecretNamespace": "storage",
        "reclaimPolicy": "Retain",
        "pvcStorageClassName": "",
    }
    mount = lowered({"pv": pv}).store.bucket.mount
    assert (mount.driver, mount.driver_name) == ("csi-s3", "s3.example.com")
    assert mount.options == ["--memory-limit 1000", "--dir-mode 0777", "--no-checksum"]
    assert mount.attributes == {"retries": "3", "mounter": "rclone"}
    assert (mount.secret.name, mount.secret.namespace) == ("keys", "storage")
    assert warnings(model({"pv": pv})) == []


@pytest.mark.parametrize("conversion", [None, {}], ids=["downloaded", "converted"])
@pytest.mark.parametrize(
    ("pv", "path"),
    [
        ({"csiOptions": "--memory-limit 1000 --dir-mode 0777"}, "spec.pv.csiOptions"),
        ({"volumeAttributes": {"retries": "3"}}, "spec.pv.volumeAttributes.retries"),
        ({"csiDriver": "s3.example.com"}, "spec.pv.csiDriver"),
    ],
)
def test_what_kaigen_yaml_does_not_allow_is_reported_at_its_field(
    conversion: Object | None, pv: Object, path: str
) -> None:
    document = model({"conversion": conversion, "pv": pv})
    assert set(errors(document, config=Config())) == {("KG0581", path)}


def test_fields_of_pv_without_effect_on_buckets_are_warnings() -> None:
    pv = {
        "storageClassName": "csi-s3",
        "capacity": "10Gi",
        "accessModes": ["readwritemany"],
        "reclaimPolicy": "Delete",
        "volumeAttributes": {"bucket": "a", "prefix": "b", "capacity": "c"},
        "pvcStorageClassName": "",
        "pvcCapacity": "10Gi",
        "pvcAccessModes": ["ReadWriteMany", "ReadOnlyMany"],
    }
    found = [path for code, path in warnings(model({"pv": pv})) if code == "KG0405"]
    assert sorted(found) == [
        "spec.pv.accessModes",
        "spec.pv.capacity",
        "spec.pv.pvcAccessModes",
        "spec.pv.reclaimPolicy",
        "spec.pv.storageClassName",
        "spec.pv.volumeAttributes.bucket",
        "spec.pv.volumeAttributes.capacity",
        "spec.pv.volumeAttributes.prefix",
    ]
    assert lowered({"pv": pv}).store.bucket.mount.attributes == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("storageClassName", "fast"),
        ("pvcStorageClassName", "csi-s3"),
        ("accessModes", ["ReadWriteOnce"]),
        ("pvcAccessModes", ["ReadWriteMany", "ReadWriteOnce"]),
    ],
)
def test_the_volume_of_a_bucket_has_no_class_and_no_mode_of_its_own(name: str, value: object) -> None:
    assert errors(model({"pv": {name: value}})) == [("KG0413", f"spec.pv.{name}")]


@pytest.mark.promise("Koldun", "`pv.capacity`, `pvcCapacity` for a bucket")
@pytest.mark.parametrize(
    ("pv", "size"),
    [
        ({"capacity": "20Gi"}, "20Gi"),
        ({"pvcCapacity": "30Gi"}, "30Gi"),
        ({"capacity": "9Gi", "pvcCapacity": "8Gi"}, "8Gi"),
        ({"csiMounter": "geesefs"}, "1Ti"),
    ],
    ids=str,
)
def test_volume_of_a_bucket_states_the_size_that_quotas_count(pv: Object, size: str) -> None:
    (app,) = compiled(model({"pv": pv})).apps
    found = {item.body["kind"]: item.body for item in app.objects}
    assert found["PersistentVolume"]["spec"]["capacity"] == {"storage": size}
    assert found["PersistentVolumeClaim"]["spec"]["resources"]["requests"] == {"storage": size}


def test_volume_of_another_size_has_another_name() -> None:
    names = set()
    for pv in ({}, {"capacity": "20Gi"}, {"capacity": "30Gi"}):
        (app,) = compiled(model({"pv": pv})).apps
        (claim,) = [item.body for item in app.objects if item.body["kind"] == "PersistentVolumeClaim"]
        names.add(claim["metadata"]["name"])
    assert len(names) == 3


@pytest.mark.promise("Koldun", "`pv.pvcCapacity`, `pvcStorageClassName`, `pvcAccessModes` without a bucket")
def test_without_object_storage_files_are_in_a_volume() -> None:
    pv = {
        "capacity": "10Gi",
        "pvcCapacity": "20Gi",
        "pvcStorageClassName": "fast",
        "pvcAccessModes": ["readonlymany", "ReadWriteOnce"],
        "reclaimPolicy": "Delete",
        "csiMounter": "geesefs",
    }
    document = model({"objectStorage": None, "pv": pv})
    volume = specs(document)[0].spec.store.volume
    assert (volume.size, volume.storage_class_name, volume.retain) == ("20Gi", "fast", False)
    assert volume.access_modes == ["ReadOnlyMany", "ReadWriteOnce"]
    found = {path for code, path in warnings(document) if code == "KG0405"}
    assert found == {"spec.pv.capacity", "spec.pv.csiMounter"}
    assert ("KG0414", "spec") in warnings(document)
    assert specs(model({"objectStorage": None, "sourceUrl": f"team/own@{COMMIT}"}))[0].spec.store.volume.size == "10Gi"
    known = model({"objectStorage": None, "sourceUrl": f"Qwen/Qwen3-8B@{COMMIT}"})
    assert load_volume(known)["resources"]["requests"]["storage"] == "19Gi"


def test_what_kaigens_own_images_do_is_a_warning() -> None:
    given: Object = {
        "pipProxy": "http://proxy:4001",
        "download": {"image": "python:3.11"},
        "conversion": {
            "image": "python:3.11",
            "rcloneImage": "rclone/rclone",
            "toolsImage": "alpine:3.18",
            "converterVersion": "v0.16.2",
            "dependencies": {"torch": "2.5.0"},
        },
    }
    found = warnings(model(given))
    assert {path for code, path in found if code == "KG0405"} == {
        "spec.pipProxy",
        *(f"spec.download.{name}" for name in given["download"]),
        *(f"spec.conversion.{name}" for name in given["conversion"]),
    }


@pytest.mark.parametrize(
    ("version", "code"),
    [
        *((each, "KG0405") for each in ("v0.16.2", "0.16.5", "v0.17.0", "main")),
        *((each, "KG0413") for each in ("v0.16.1", "0.12.8-rc1")),
    ],
)
def test_a_converter_that_wrote_another_format_is_an_error(version: str, code: str) -> None:
    document = converted({"conversion": {"weightsFloatType": "q40", "converterVersion": version}})
    found = errors(document) if code == "KG0413" else warnings(document)
    assert found == [(code, "spec.conversion.converterVersion")]


@pytest.mark.parametrize("existing", [{}, {"preConverted": True, "preConvertedPVCName": "files"}], ids=["new", "old"])
def test_a_conversion_that_is_skipped_is_an_error(existing: Object) -> None:
    found = failures(model({"conversion": {"weightsFloatType": "q40", "convertWeights": "skip"}, **existing}))
    assert [(item.code, item.path) for item in found] == [("KG0413", "spec.conversion.convertWeights")]
    assert "preConverted" in (found[0].hint or "")


@pytest.mark.parametrize("block", ["download", "conversion"])
@pytest.mark.parametrize("given", [{"command": ["sh"], "args": ["-c"]}, {"args": ["mine.py"]}], ids=str)
def test_a_program_of_ones_own_is_an_error(block: str, given: Object) -> None:
    assert errors(model({block: given})) == [("KG0413", f"spec.{block}.{next(iter(given))}")]
    existing = {"preConverted": True, "preConvertedPVCName": "files"}
    found = warnings(model({block: given, **existing}))
    assert ("KG0405", f"spec.{block}.{next(iter(given))}") in found


def test_annotations_of_the_operator_are_warnings() -> None:
    notes = {"koldun.gorizond.io/ttl-seconds": "300", "koldun.gorizond.io/force-size-rerun": "2", "note": "n"}
    document = model(annotations=notes)
    assert [code for code, _ in warnings(document)] == ["KG0405", "KG0405"]
    (app,) = compiled(document).apps
    for item in app.objects:
        annotations = item.body["metadata"].get("annotations", {})
        assert annotations["note"] == "n"
        assert not [key for key in annotations if key.startswith("koldun")]


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("spec.objectStorage.secretRef.namespace", {"objectStorage": {"secretRef": {"namespace": "b"}}}),
        (
            "spec.download.huggingFaceTokenSecretRef.namespace",
            {"download": {"huggingFaceTokenSecretRef": {"name": "hf", "namespace": "b"}}},
        ),
    ],
)
def test_secret_of_another_namespace_is_a_warning(path: str, changes: Object) -> None:
    if "objectStorage" in changes:
        changes = {"objectStorage": {**STORAGE, "secretRef": {"name": "minio-creds", "namespace": "b"}}}
    assert warnings(model(changes, namespace="a")) == [("KG0414", path)]
    assert warnings(model(changes, namespace="b")) == []


def test_file_of_a_web_server_needs_a_checksum() -> None:
    given: Object = {"sourceUrl": "https://example.com/test-model.bin"}
    assert errors(model(given)) == [("KG0413", "spec.sourceUrl")]
    notes = annotated(sha256="a" * 64)
    (file,) = specs(model(given, annotations=notes))[0].spec.source.http.files
    assert (file.url, file.sha256) == ("https://example.com/test-model.bin", "a" * 64)
    wrong = annotated(sha256="abc")
    assert errors(model(given, annotations=wrong)) == [("KG0406", 'metadata.annotations["kaigen.dev/sha256"]')]
    assert warnings(model(annotations=notes)) == [("KG0405", 'metadata.annotations["kaigen.dev/sha256"]')]


def test_converted_files_in_a_volume() -> None:
    document = model({"preConverted": True, "preConvertedPVCName": "test-model-pvc", "preConvertedSizeBytes": 1000})
    (block,) = specs(document)
    assert block.spec.source.volume.claim_name == "test-model-pvc"
    assert block.spec.convert is None
    assert ("KG0405", "spec.preConvertedSizeBytes") in warnings(document)
    assert ("KG0405", "spec.sourceUrl") in warnings(document)


CONVERTED: Object = {"preConverted": True, "preConvertedPVCName": "w"}


def test_launch_options_name_the_files_in_the_volume() -> None:
    options = ["--model", "/model/a/x.m", "--tokenizer", "model/y.t"]
    (block,) = specs(model({**CONVERTED, "launchOptions": options}))
    assert block.spec.source.volume.files == {"model.m": "a/x.m", "tokenizer.t": "y.t"}
    (block,) = specs(model(CONVERTED))
    assert block.spec.source.volume.files == {}


@pytest.mark.parametrize("path", ["/other/x.m", "x.m", "/model/", "/model/../x.m"])
def test_file_outside_of_the_volume_is_an_error(path: str) -> None:
    assert errors(model({**CONVERTED, "launchOptions": ["--model", path]})) == [("KG0412", "spec.launchOptions[1]")]


def test_files_that_are_converted_already_are_not_converted() -> None:
    conversion = {"weightsFloatType": "q40", "memory": "2Gi", "outputPath": "s3://a"}
    document = model({**CONVERTED, "conversion": conversion})
    (block,) = specs(document)
    assert block.spec.convert is None
    found = [item for item in warnings(document) if "conversion" in item[1]]
    assert found == [("KG0405", "spec.conversion.memory"), ("KG0405", "spec.conversion.outputPath")]


@pytest.mark.parametrize("weights", ["q80", "f16"])
def test_files_of_a_type_that_the_runtime_cannot_load_are_an_error(weights: str) -> None:
    document = model({**CONVERTED, "conversion": {"weightsFloatType": weights}})
    assert errors(document) == [("KG0413", "spec.conversion.weightsFloatType")]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"preConvertedPVCName": "w"}, "spec.preConvertedPVCName"),
        ({"launchOptions": ["--seed", "1"]}, "spec.launchOptions"),
        ({"launchOptions": ["--seed", "1"], "preConverted": True}, "spec.launchOptions"),
        ({"preConverted": True, "conversion": {"weightsFloatType": "q40"}}, "spec.conversion.weightsFloatType"),
        ({"conversion": {}, "launchOptions": ["--model", "/model/x.m"]}, "spec.launchOptions[0]"),
        ({"conversion": {}, "launchOptions": ["--seed", "1", "--seed", "2"]}, "spec.launchOptions[0]"),
    ],
    ids=str,
)
def test_what_no_ring_reads_is_a_warning(changes: Object, path: str) -> None:
    assert warnings(model(changes)) == [("KG0405", path)]


def test_what_only_a_repository_needs_is_a_warning_for_a_file() -> None:
    given: Object = {
        "sourceUrl": "https://example.com/test-model.bin",
        "download": {"huggingFaceTokenSecretRef": {"name": "hf"}},
    }
    document = model(given, annotations=annotated(sha256="a" * 64))
    assert warnings(document) == [("KG0405", "spec.download.huggingFaceTokenSecretRef")]


def test_checksum_of_existing_files_is_a_warning() -> None:
    document = model(CONVERTED, annotations=annotated(sha256="a" * 64))
    assert ("KG0405", 'metadata.annotations["kaigen.dev/sha256"]') in warnings(document)


def test_dots_of_a_name_become_dashes_with_a_warning() -> None:
    (block,) = specs(model(name="qwen3-0.6b"))
    assert block.metadata.name == "qwen3-0-6b"
    assert warnings(model(name="qwen3-0.6b")) == [("KG0414", "metadata.name")]
    assert errors(model(name="a" * 54)) == [("KG0413", "metadata.name")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--buffer-float-type", "q80", "--nthreads", "4"], []),
        (["--buffer-float-type", "q40"], [("KG0414", "spec.launchOptions[1]")]),
        (["--port", "9999"], [("KG0405", "spec.launchOptions[0]")]),
        (["--nthreads", "4", "--seed"], [("KG0405", "spec.launchOptions[2]")]),
    ],
)
def test_launch_options_that_kaigen_decides_are_warnings(options: list[str], expected: list[tuple[str, str]]) -> None:
    found = warnings(converted({"launchOptions": options}))
    assert [item for item in found if item[1] != "spec.objectStorage"] == expected


def test_option_and_value_in_one_entry_are_an_error_with_both() -> None:
    document = converted({"launchOptions": ["--max-seq-len=2048", "--seed", "1"]})
    assert errors(document) == [("KG0412", "spec.launchOptions[0]")]
    (found,) = loaded(document).load_diagnostics
    assert '"--max-seq-len", "2048"' in found.hint


def test_unknown_launch_option_is_an_error() -> None:
    assert errors(converted({"launchOptions": ["--ntreads=4"]})) == [("KG0412", "spec.launchOptions[0]")]
    assert errors(converted({"launchOptions": ["--ntreads", "4"]})) == [("KG0412", "spec.launchOptions[0]")]
    assert errors(converted({"launchOptions": ["nthreads", "4"]})) == [("KG0412", "spec.launchOptions[0]")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sourceURL": "a/b"}, ("KG0201", "spec.sourceURL")),
        ({"localPath": None}, ("KG0203", "spec.localPath")),
        ({"pv": {"capacity": "10 GB"}}, ("KG0204", "spec.pv.capacity")),
        ({"pv": {"accessModes": ["ReadWriteManny"]}}, ("KG0412", "spec.pv.accessModes[0]")),
        ({"conversion": {"weightsFloatType": "q4"}}, ("KG0205", "spec.conversion.weightsFloatType")),
        ({"conversion": {"weightsFloatType": "f16"}}, ("KG0413", "spec.conversion.weightsFloatType")),
        (
            {"conversion": {"weightsFloatType": "f32", "convertWeights": "q40"}},
            ("KG0412", "spec.conversion.convertWeights"),
        ),
        ({"objectStorage": {**STORAGE, "bucketForSource": ""}}, ("KG0412", "spec.localPath")),
        (
            {"objectStorage": {**STORAGE, "bucketForConvert": ""}, "conversion": {}},
            ("KG0412", "spec.objectStorage.bucketForConvert"),
        ),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_an_error_at_its_field(changes: Object, expected: tuple[str, str]) -> None:
    assert errors(model(changes)) == [expected]
