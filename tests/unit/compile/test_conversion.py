"""Models whose weights are converted after the download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.model.mounted import CONVERTER
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from kaigen.pipeline.validate import validate
from tests import plain_yaml

ROOT = Path(__file__).parents[3]
MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen, namespace: ml}
spec:
  source: {huggingFace: {repo: acme/qwen, revision: 16d0fe4d4a8824a9ca0fdb6d28a9b6ca2a6ad5cd}}
  store: {volume: {size: 20Gi}}
"""
CONVERT = "  convert: {distributedLlama: {weights: q40}}\n"
OWN_VOLUME = "  convert: {distributedLlama: {weights: f32, store: {volume: {size: 30Gi}}}}\n"
READER = """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: read, namespace: ml}
spec: {image: "busybox:1.36", model: {name: qwen, mountPath: /weights}}
"""


def objects(root: Path, specs: str) -> list[dict[str, Any]]:
    (root / "specs.yaml").write_text(specs, encoding="utf-8")
    files = render([str(root / "specs.yaml")], Config(root=root))
    texts = [bytes(data).decode() for path, data in files.items() if "kustomization" not in path]
    return [body for text in texts for body in plain_yaml.load_all(text)]


def problems(root: Path, specs: str) -> list[str]:
    (root / "specs.yaml").write_text(specs, encoding="utf-8")
    found, _ = validate([str(root / "specs.yaml")], Config(root=root), use_cache=False)
    return [f"{item.code} {item.mark.line if item.mark else 0} {item.message}" for item in found]


def pod_of(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (body,) = [each for each in found if each["kind"] == "Job" and each["metadata"]["name"].startswith(f"{name}-")]
    pod: dict[str, Any] = body["spec"]["template"]["spec"]
    return pod


def argument(container: dict[str, Any], name: str) -> str:
    (found,) = [each for each in container["args"] if each.startswith(f"--{name}=")]
    return str(found.partition("=")[2])


def test_converter_runs_after_the_downloader_and_reads_its_folder(tmp_path: Path) -> None:
    pod = pod_of(objects(tmp_path, MODEL + CONVERT), "qwen")
    fetch, convert = pod["initContainers"]
    assert (fetch["name"], convert["name"]) == ("fetch", "convert")
    assert argument(convert, "source") == argument(fetch, "dest")
    assert argument(convert, "source-identity") == argument(fetch, "identity")
    assert argument(convert, "dest") == f"/model/converted/{argument(convert, 'identity')}"


@pytest.mark.promise("Koldun", "`status.conversionSizeBytes`, `status.conversionSizeHuman`")
@pytest.mark.parametrize("convert_block", [CONVERT, OWN_VOLUME], ids=["volume", "own volume"])
def test_size_of_a_conversion_is_recorded_next_to_what_the_download_measured(
    tmp_path: Path, convert_block: str
) -> None:
    pod = pod_of(objects(tmp_path, MODEL + convert_block), "qwen")
    (fetch, convert), (record,) = pod["initContainers"], pod["containers"]
    assert (record["name"], record["image"]) == ("record", fetch["image"])
    assert argument(record, "facts") == argument(fetch, "facts") == "qwen-facts"
    assert argument(record, "identity") == argument(convert, "identity")
    assert argument(record, "dest") == argument(convert, "dest")
    mounts = {each["mountPath"]: each["name"] for each in convert["volumeMounts"]}
    (mounted,) = [each for each in record["volumeMounts"] if each["name"] != "gate-token"]
    assert argument(record, "dest").startswith(f"{mounted['mountPath']}/")
    assert mounts[mounted["mountPath"]] == mounted["name"]
    assert {each["name"] for each in record["env"]} == {"KAIGEN_APP", "JOB_NAME", "JOB_UID"}


def test_readers_wait_for_the_converted_files_and_mount_only_them(tmp_path: Path) -> None:
    found = objects(tmp_path, MODEL + CONVERT + READER)
    (convert,) = pod_of(found, "qwen")["containers"]
    identity, reader = argument(convert, "identity"), pod_of(found, "read")
    (gate,) = reader["initContainers"]
    assert argument(gate, "identity") == identity
    assert argument(gate, "dest").endswith(f"/converted/{identity}")
    (mount,) = [each for each in reader["containers"][0]["volumeMounts"] if each["name"] == "model"]
    assert mount["subPath"] == f"converted/{identity}"


def test_converted_files_in_a_volume_of_their_own(tmp_path: Path) -> None:
    found = objects(tmp_path, MODEL + OWN_VOLUME + READER)
    sizes = {
        each["metadata"]["name"]: each["spec"]["resources"]["requests"]["storage"]
        for each in found
        if each["kind"] == "PersistentVolumeClaim"
    }
    assert sizes == {"qwen-weights": "20Gi", "qwen-converted": "30Gi"}
    (convert,) = pod_of(found, "qwen")["containers"]
    identity, reader = argument(convert, "identity"), pod_of(found, "read")
    assert argument(convert, "dest") == f"/converted/{identity}"
    (volume,) = [each for each in reader["volumes"] if each["name"] == "model"]
    assert volume["persistentVolumeClaim"]["claimName"] == "qwen-converted"
    (mount,) = [each for each in reader["containers"][0]["volumeMounts"] if each["name"] == "model"]
    assert mount["subPath"] == identity


def test_each_source_and_each_type_of_weights_has_its_own_identity(tmp_path: Path) -> None:
    def identity(specs: str) -> str:
        pod = pod_of(objects(tmp_path, specs), "qwen")
        return argument(pod["containers"][0], "identity")

    found = {
        identity(MODEL),
        identity(MODEL + CONVERT),
        identity(MODEL + CONVERT.replace("q40", "f32")),
        identity(MODEL.replace("16d0fe4d", "26d0fe4d") + CONVERT),
    }
    assert len(found) == 4
    assert identity(MODEL + CONVERT.replace("q40", "f32")) == identity(MODEL + OWN_VOLUME)


def test_version_of_the_output_is_that_of_the_runtime() -> None:
    text = (ROOT / "runtimes/convert/kaigen_convert/__init__.py").read_text(encoding="utf-8")
    assert f'VERSION = "{CONVERTER}"' in text.splitlines()


def test_sidecars_run_before_the_download(tmp_path: Path) -> None:
    sidecar = "  sidecars: {log: {image: 'busybox:1.36', command: [sleep, inf]}}\n"
    pod = pod_of(objects(tmp_path, MODEL + CONVERT + sidecar), "qwen")
    assert [each["name"] for each in pod["initContainers"]] == ["log", "fetch", "convert"]


@pytest.mark.parametrize("weights", ["q80", "f16"])
def test_weights_that_the_runtime_cannot_load_are_refused(tmp_path: Path, weights: str) -> None:
    (found,) = problems(tmp_path, MODEL + CONVERT.replace("q40", weights))
    assert found.startswith(f"KG0391 7 distributed-llama cannot load weights of type `{weights}`: it ")


def test_models_that_the_format_cannot_have_are_refused(tmp_path: Path) -> None:
    facts = "  facts: {weights: 1Gi, config: {model_type: gemma2, num_hidden_layers: 2, num_attention_heads: 4,"
    facts += " hidden_size: 64, max_position_embeddings: 64}}\n"
    (found,) = problems(tmp_path, MODEL + CONVERT + facts)
    assert found == "KG0390 7 distributed-llama cannot run models of type `gemma2`"


SERVED = """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat, namespace: ml}
spec:
  model: qwen
  resources: {cpu: "2", memory: 4Gi}
"""


def test_engine_that_cannot_read_converted_files_is_refused(tmp_path: Path) -> None:
    shared = MODEL.replace("20Gi", "20Gi, accessModes: [ReadWriteMany], storageClassName: shared") + CONVERT
    found = problems(tmp_path, shared + SERVED.replace("cpu", "gpus: 1, gpuType: L4, cpu"))
    assert "KG0398 13 Model `qwen` is converted for distributed-llama, and engine `vllm` cannot read it" in found
    own = "  engine: container\n  image: busybox:1.36\n  command: [cat, /models/qwen/model.m]\n"
    assert [each for each in problems(tmp_path, shared + SERVED + own) if "KG0398" in each] == []


def test_conversion_of_an_existing_volume_is_refused(tmp_path: Path) -> None:
    specs = MODEL.split("  source")[0] + "  source: {volume: {claimName: models}}\n" + CONVERT
    (found,) = problems(tmp_path, specs)
    assert found.startswith("KG0340 6 `convert` has no effect")


FACTS = """\
  facts:
    weights: 3.4Gi
    config: {model_type: qwen3, num_hidden_layers: 28, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128,
      hidden_size: 2048, intermediate_size: 6144, vocab_size: 151936, max_position_embeddings: 40960,
      rms_norm_eps: 1.0e-6}
"""
"""Qwen3-1.7B: 2.06 GiB in q40, 7.57 GiB in f32."""


@pytest.mark.parametrize(
    ("convert", "sizes"),
    [
        # Twice (3.4 + 2.06) and a tenth and 2 GiB; and twice 3.4 and twice 7.6 apart.
        (CONVERT, {"qwen-weights": "16Gi"}),
        (OWN_VOLUME.replace("30Gi", "auto"), {"qwen-weights": "12Gi", "qwen-converted": "22Gi"}),
    ],
)
def test_automatic_sizes_have_room_for_converted_weights(tmp_path: Path, convert: str, sizes: dict[str, str]) -> None:
    found = objects(tmp_path, MODEL.replace("20Gi", "auto") + convert + FACTS)
    assert {
        each["metadata"]["name"]: each["spec"]["resources"]["requests"]["storage"]
        for each in found
        if each["kind"] == "PersistentVolumeClaim"
    } == sizes


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (
            MODEL.replace("20Gi", "5Gi") + CONVERT + FACTS,
            "KG0320 6 5Gi is smaller than the downloaded and converted weights of `acme/qwen`, which have 5.5 GiB",
        ),
        (
            MODEL + OWN_VOLUME.replace("30Gi", "5Gi") + FACTS,
            "KG0320 7 5Gi is smaller than the converted weights, which have 7.6 GiB",
        ),
        (
            MODEL + OWN_VOLUME.replace("30Gi", "9Gi") + FACTS,
            "KG0321 7 9Gi has no room for 2 revisions of converted weights with 7.6 GiB each",
        ),
        (
            MODEL + OWN_VOLUME.replace("30Gi", "auto"),
            "KG0320 7 the size of the converted weights is not known, so `auto` has no value",
        ),
        (
            MODEL.replace("20Gi", "auto") + CONVERT,
            "KG0320 6 the size of the files is not known, so `auto` has no value",
        ),
    ],
)
def test_volumes_without_room_for_converted_weights_are_reported(tmp_path: Path, specs: str, expected: str) -> None:
    assert problems(tmp_path, specs) == [expected]


BUCKET = "{bucket: {uri: s3://models/qwen, region: eu-central-1}}"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("{bucket: {uri: s3://models/qwen/, region: eu-central-1}}", "are stored in the folder of the downloaded ones"),
        ("{volume: {size: 30Gi}}", "in a bucket, and the converted ones in a volume"),
    ],
)
def test_converted_files_of_a_bucket_need_a_folder_in_a_bucket(tmp_path: Path, own: str, expected: str) -> None:
    model = MODEL.split("  store")[0] + f"  store: {BUCKET}\n"
    convert = f"  convert: {{distributedLlama: {{store: {own}}}}}\n"
    (found,) = [each for each in problems(tmp_path, model + convert) if "KG0392" in each]
    assert expected in found


def test_only_the_bucket_that_pods_mount_has_a_volume(tmp_path: Path) -> None:
    model = MODEL.split("  store")[0] + f"  store: {BUCKET}\n"
    own = f"  convert: {{distributedLlama: {{store: {BUCKET.replace('models/qwen', 'converted/qwen')}}}}}\n"
    for convert, name in ((CONVERT, "models"), (own, "converted")):
        (volume,) = [each for each in objects(tmp_path, model + convert) if each["kind"] == "PersistentVolume"]
        assert volume["spec"]["csi"]["volumeAttributes"]["bucketName"] == name


def scratch(found: list[dict[str, Any]]) -> tuple[dict[str, Any], Any]:
    """Return the volumes on the node's disk, and what the converter requests of that disk."""
    pod = pod_of(found, "qwen")
    (convert,) = [each for each in (*pod["initContainers"], *pod["containers"]) if each["name"] == "convert"]
    volumes = {each["name"]: each["emptyDir"] for each in pod["volumes"] if "emptyDir" in each}
    return volumes, convert["resources"]["requests"].get("ephemeral-storage")


IN_BUCKET = MODEL.split("  store")[0] + f"  store: {BUCKET}\n" + CONVERT


def test_the_disk_of_a_conversion_is_requested_and_limited(tmp_path: Path) -> None:
    # 3.4 + 2.06, and a tenth and 2 GiB. Facts do not count every file of the source.
    assert scratch(objects(tmp_path, IN_BUCKET + FACTS)) == ({"weights": {}, "converted": {"sizeLimit": "5Gi"}}, "8Gi")
    assert scratch(objects(tmp_path, IN_BUCKET)) == ({"weights": {}, "converted": {}}, None)


def test_a_source_whose_files_are_all_known_has_a_limit(tmp_path: Path) -> None:
    s3 = f"s3: {{uri: s3://raw/qwen, revision: '9:{4 << 30}:{'0' * 64}'}}"
    hub = IN_BUCKET[IN_BUCKET.index("huggingFace") : IN_BUCKET.index("}}") + 1]
    found = objects(tmp_path, IN_BUCKET.replace(hub, s3) + FACTS)
    assert scratch(found) == ({"weights": {"sizeLimit": "7Gi"}, "converted": {"sizeLimit": "5Gi"}}, "9Gi")


def test_downloaded_files_in_a_volume_take_nothing_of_the_disk(tmp_path: Path) -> None:
    convert = f"  convert: {{distributedLlama: {{store: {BUCKET}}}}}\n"
    found = objects(tmp_path, MODEL + convert + FACTS)
    assert scratch(found) == ({"converted": {"sizeLimit": "5Gi"}}, "5Gi")


def test_two_models_with_one_folder_of_converted_files_are_reported_at_it(tmp_path: Path) -> None:
    def model(name: str, source: str) -> str:
        own = BUCKET.replace("models/qwen", "converted/same")
        return (
            MODEL.split("  store")[0].replace("name: qwen", f"name: {name}")
            + f"  store: {BUCKET.replace('models/qwen', source)}\n"
            + f"  convert:\n    distributedLlama:\n      store: {own}\n"
        )

    specs = f"{model('one', 'models/one')}---\n{model('two', 'models/two')}"
    message = "app `one` in namespace `ml` is stored at s3://converted/same too"
    assert f"KG0318 {len(specs.splitlines())} {message}" in problems(tmp_path, specs)
    specs = f"{model('one', 'models/one')}---\n{model('two', 'models/one').replace('/same', '/other')}"
    line = len(specs.splitlines()) - 3
    assert f"KG0318 {line} {message.replace('converted/same', 'models/one')}" in problems(tmp_path, specs)
