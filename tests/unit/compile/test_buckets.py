"""Models in buckets: the download, the mounts, and the names of the volumes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kaigen.compile.builders.sources import identity
from kaigen.compile.expressions import Scope, resolve
from kaigen.compile.problems import Problems
from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.kinds.model import Model
from tests.unit.compile.specs import (
    Object,
    app,
    compiled,
    configured,
    context,
    job,
    model,
    objects,
    pod,
    problem_paths,
    topology,
)

KEYS: Object = {"secret": {"name": "keys"}}
S3: Object = {"uri": "s3://models/qwen"}
SERVER: Object = {"uri": "s3://models/qwen", "endpoint": "https://minio.storage.svc", "credentials": KEYS}
GOOGLE: Object = {"uri": "gs://models/qwen", "credentials": KEYS}
AZURE: Object = {"uri": "az://acme/models/qwen"}


def resting(bucket: Object) -> Model:
    """Return a Model in a bucket."""
    return model(store={"bucket": bucket})


def volume(bucket: Object) -> Object:
    """Return the spec of the PersistentVolume of a Model in a bucket."""
    found: Object = objects(resting(bucket))["PersistentVolume"]["spec"]
    return found


def names(bucket: Object) -> tuple[str, str]:
    """Return the names of the volume and of the claim, where kaigen.yaml allows every mount."""
    every = ("*",)
    grant = VolumeGrant(drivers=every, secrets=every, attributes=every, options=every)
    made = objects(resting(bucket), configured(context(), allow=Allowed(volumes=(grant,))))
    return made["PersistentVolume"]["metadata"]["name"], made["PersistentVolumeClaim"]["metadata"]["name"]


def folder(bucket: Object) -> str:
    """Return the folder of the revision, which does not depend on the bucket."""
    return identity(resting(bucket).spec.source)


def fetch(bucket: Object) -> Object:
    """Return the downloader's container."""
    container: Object = pod(resting(bucket))["containers"][0]
    return container


@pytest.mark.promise("Substratus", "Buckets are mounted with FUSE")
@pytest.mark.parametrize(
    ("bucket", "driver"),
    [
        (S3, "s3.csi.aws.com"),
        (SERVER, "ru.yandex.s3.csi"),
        (GOOGLE, "gcsfuse.csi.storage.gke.io"),
        (AZURE, "blob.csi.azure.com"),
    ],
)
def test_driver_follows_from_the_buckets_provider(bucket: Object, driver: str) -> None:
    assert volume(bucket)["csi"]["driver"] == driver


@pytest.mark.parametrize("bucket", [S3, SERVER, GOOGLE, AZURE])
def test_volume_is_read_only_and_bound_to_its_own_claim(bucket: Object) -> None:
    made = objects(resting(bucket))
    found, claim = made["PersistentVolume"], made["PersistentVolumeClaim"]
    assert "namespace" not in found["metadata"]
    assert found["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert found["spec"]["claimRef"]["namespace"] == claim["metadata"]["namespace"] == "default"
    assert claim["spec"]["volumeName"] == found["metadata"]["name"]
    assert claim["spec"]["storageClassName"] == ""
    assert found["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert found["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert found["spec"]["csi"]["readOnly"] is True


def test_each_driver_gets_the_folder_in_its_own_format() -> None:
    amazon = volume({**S3, "region": "eu-central-1"})
    assert amazon["mountOptions"] == ["read-only", "allow-other", "region eu-central-1", "prefix qwen/"]
    assert amazon["csi"]["volumeAttributes"] == {"bucketName": "models"}
    geese = volume(SERVER)
    assert geese["csi"]["volumeHandle"] == "models/qwen"
    assert geese["csi"]["nodePublishSecretRef"] == {"name": "csi-s3-secret", "namespace": "kube-system"}
    google = volume(GOOGLE)
    assert google["mountOptions"] == ["implicit-dirs", "only-dir=qwen"]
    assert google["csi"]["volumeHandle"].partition(":")[0] == "models"


def test_a_whole_bucket_has_no_folder() -> None:
    whole = {"uri": "s3://models", "endpoint": "https://minio.storage.svc", "credentials": KEYS}
    assert volume(whole)["csi"]["volumeHandle"] == "models"
    assert volume({**whole, "mount": {"driver": "mountpoint-s3"}})["mountOptions"] == [
        "read-only",
        "allow-other",
        "endpoint-url https://minio.storage.svc",
        "force-path-style",
    ]
    assert f"--dest=s3://models/{folder(whole)}" in fetch(whole)["args"]


def test_the_downloader_fills_the_bucket_without_mounting_it() -> None:
    container = fetch({**SERVER, "region": "us-east-1"})
    assert {
        f"--dest=s3://models/qwen/{folder(SERVER)}",
        "--s3-endpoint=https://minio.storage.svc",
        "--s3-region=us-east-1",
    } <= {*container["args"]}
    token = {"gate-token"}
    assert {each["name"] for each in container["volumeMounts"]} == token
    assert {each["name"] for each in pod(resting(SERVER))["volumes"]} == token
    keys = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in container["env"][:2]}
    assert keys == {
        "AWS_ACCESS_KEY_ID": {"name": "keys", "key": "AWS_ACCESS_KEY_ID"},
        "AWS_SECRET_ACCESS_KEY": {"name": "keys", "key": "AWS_SECRET_ACCESS_KEY"},
    }


def test_googles_buckets_are_filled_by_the_s3_protocol() -> None:
    arguments = fetch(GOOGLE)["args"]
    assert f"--dest=s3://models/qwen/{folder(GOOGLE)}" in arguments
    assert "--s3-endpoint=https://storage.googleapis.com" in arguments
    assert "--s3-region=auto" in arguments


def test_a_container_of_azure_is_mounted_by_account_container_and_folder() -> None:
    bucket = {**AZURE, "mount": {"secret": {"name": "key", "namespace": "storage"}}}
    grant = VolumeGrant(secrets=("storage/key",))
    found = objects(resting(bucket), configured(context(), allow=Allowed(volumes=(grant,))))["PersistentVolume"]["spec"]
    assert found["mountOptions"] == ["-o allow_other", "--subdirectory=qwen"]
    assert found["csi"]["volumeAttributes"] == {
        "containerName": "models",
        "protocol": "fuse2",
        "storageAccount": "acme",
    }
    assert found["csi"]["nodeStageSecretRef"] == {"name": "key", "namespace": "storage"}
    assert "#" not in found["csi"]["volumeHandle"]


def test_a_container_of_azure_is_filled_with_the_identity_of_the_pod() -> None:
    annotations = {"azure.workload.identity/client-id": "0aaa"}
    bucket = {**AZURE, "credentials": {"serviceAccount": {"annotations": annotations}}}
    assert f"--dest=az://acme/models/qwen/{folder(bucket)}" in fetch(bucket)["args"]
    made = objects(resting(bucket))
    assert made["ServiceAccount"]["metadata"]["annotations"] == annotations
    label = ("azure.workload.identity/use", "true")
    assert label in made["Job"]["spec"]["template"]["metadata"]["labels"].items()
    with_key = objects(resting({**AZURE, "credentials": KEYS}))
    assert label not in with_key["Job"]["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("secret", "variable", "key"),
    [
        ({}, "AZURE_STORAGE_KEY", "AZURE_STORAGE_KEY"),
        ({"accountKey": "key1"}, "AZURE_STORAGE_KEY", "key1"),
        ({"sasToken": "sas"}, "AZURE_STORAGE_SAS_TOKEN", "sas"),
    ],
)
def test_a_key_or_a_signature_of_azure_is_a_variable(secret: Object, variable: str, key: str) -> None:
    reference = {"secretKeyRef": {"name": "keys", "key": key}}
    bucket = {**AZURE, "credentials": {"secret": {"name": "keys", **secret}}}
    assert {"name": variable, "valueFrom": reference} in fetch(bucket)["env"]
    source = {**bucket, "revision": f"1:1:{'0' * 64}"}
    reader = pod(model(source={"s3": source}, store={"volume": {"size": "1Gi"}}))["containers"][0]
    assert {"name": f"SOURCE_{variable}", "valueFrom": reference} in reader["env"]
    assert "--uri=az://acme/models/qwen" in reader["args"]


TOKENS: Object = {"uri": "gs://models/qwen"}
KEY_FILE: Object = {**TOKENS, "credentials": {"secret": {"name": "writer", "serviceAccountKey": "key.json"}}}


@pytest.mark.parametrize("bucket", [TOKENS, KEY_FILE])
def test_googles_buckets_without_hmac_keys_are_filled_with_tokens(bucket: Object) -> None:
    container = fetch(bucket)
    assert f"--dest=gs://models/qwen/{folder(bucket)}" in container["args"]
    assert not [each for each in container["args"] if each.startswith("--s3-")]
    assert container["resources"]["limits"]["memory"] == "512Mi"
    assert not [each for each in container["env"] if each["name"].startswith("AWS_")]


def test_the_key_file_of_a_service_account_is_a_variable_from_its_secret() -> None:
    reference = {"secretKeyRef": {"name": "writer", "key": "key.json"}}
    assert {"name": "GOOGLE_SERVICE_ACCOUNT_KEY", "valueFrom": reference} in fetch(KEY_FILE)["env"]
    source = {**KEY_FILE, "revision": f"1:1:{'0' * 64}"}
    reader = pod(model(source={"s3": source}, store={"volume": {"size": "1Gi"}}))["containers"][0]
    assert {"name": "SOURCE_GOOGLE_SERVICE_ACCOUNT_KEY", "valueFrom": reference} in reader["env"]
    assert "--uri=gs://models/qwen" in reader["args"]


def test_service_account_of_the_downloader_has_the_clouds_annotations() -> None:
    annotations = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/models"}
    made = objects(resting({**S3, "credentials": {"serviceAccount": {"annotations": annotations}}}))
    assert made["ServiceAccount"]["metadata"]["annotations"] == annotations
    assert not [each for each in fetch(S3)["env"] if each["name"].startswith("AWS_")]


@pytest.mark.parametrize(
    "change",
    [
        {"uri": "s3://models/other"},
        {"uri": "s3://others/qwen"},
        {"endpoint": "https://other.storage.svc"},
        {"mount": {"driver": "mountpoint-s3"}},
        {"mount": {"driverName": "s3.example.com"}},
        {"mount": {"options": ["--stat-cache-ttl=5s"]}},
        {"mount": {"attributes": {"capacity": "5"}}},
        {"mount": {"secret": {"name": "a", "namespace": "b"}}},
    ],
)
def test_immutable_fields_change_the_name_of_the_volume(change: Object) -> None:
    before, after = names(SERVER), names({**SERVER, **change})
    assert not set(before) & set(after)


@pytest.mark.parametrize(
    "same", [{"uri": "s3://models/qwen/"}, {"credentials": {"secret": {"name": "other"}}}, {"mount": {}}]
)
def test_other_fields_keep_the_name_of_the_volume(same: Object) -> None:
    assert names(SERVER) == names({**SERVER, **same})


@pytest.mark.parametrize(("bucket", "sidecar"), [(S3, False), (SERVER, False), (GOOGLE, True)])
def test_pods_have_the_sidecar_annotation_where_the_driver_needs_it(bucket: Object, sidecar: bool) -> None:
    where = context(models={"m": resting(bucket)})
    note = ("gke-gcsfuse/volumes", "true")
    consumers: list[tuple[Any, str]] = [
        (job(model="m"), "Job"),
        (topology(model="m"), "Deployment"),
        (topology(model={"folder": "/w"}, adapters=[{"name": "a", "model": "m"}]), "Deployment"),
    ]
    for consumer, kind in consumers:
        template = objects(consumer, where)[kind]["spec"]["template"]
        found = template["metadata"].get("annotations", {})
        assert (note in found.items()) == sidecar
    (test,) = [each for each in app(resting(bucket)).objects if each.role == "tests/pod"]
    check = cast(Object, resolve(test.body, Scope("m", "default", {})))
    assert (note in check["metadata"]["annotations"].items()) == sidecar


def test_consumers_mount_the_claim_behind_the_gate_on_every_node() -> None:
    where = context(models={"m": resting(SERVER)})
    claim = names(SERVER)[1]
    for consumer in (job(model="m", nodes=4), topology(model="m", shape={"replicas": 4})):
        found = pod(consumer, where)
        assert {"name": "model", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}} in found["volumes"]
        assert found["initContainers"][0]["name"] == "wait-for-model"
        assert [code for code, _ in problem_paths(consumer, where) if code in {"KG0309", "KG0311"}] == []


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        ({**S3, "endpoint": "https://minio.storage.svc"}, [("KG0317", "spec.store.bucket")]),
        (
            {**TOKENS, "endpoint": "https://storage.example.com"},
            [("KG0316", "spec.store.bucket.endpoint"), ("KG0317", "spec.store.bucket.endpoint")],
        ),
        (
            {**S3, "credentials": {"secret": {"name": "a", "serviceAccountKey": "b"}}},
            [("KG0340", "spec.store.bucket.credentials.secret.serviceAccountKey")],
        ),
        (
            {**TOKENS, "credentials": {"secret": {"name": "a", "serviceAccountKey": "b", "accessKey": "c"}}},
            [("KG0340", "spec.store.bucket.credentials.secret.accessKey")],
        ),
        (TOKENS, []),
        ({**GOOGLE, "mount": {"driver": "csi-s3"}}, [("KG0316", "spec.store.bucket.mount.driver")]),
        ({**AZURE, "mount": {"driver": "gcsfuse"}}, [("KG0316", "spec.store.bucket.mount.driver")]),
        ({**S3, "mount": {"driver": "blobfuse"}}, [("KG0316", "spec.store.bucket.mount.driver")]),
        ({**AZURE, "endpoint": "https://acme.blob.core.windows.net/"}, []),
        ({**AZURE, "endpoint": "https://acme.blob.core.example.com"}, [("KG0317", "spec.store.bucket.endpoint")]),
        ({**AZURE, "endpoint": "https://other.blob.core.windows.net"}, [("KG0317", "spec.store.bucket.endpoint")]),
        ({**AZURE, "endpoint": "http://acme.blob.core.windows.net"}, [("KG0317", "spec.store.bucket.endpoint")]),
        ({**AZURE, "endpoint": "https://blobs.example.com/acme", "credentials": KEYS}, []),
        (
            {**AZURE, "credentials": {"secret": {"name": "a", "accessKey": "b"}}},
            [("KG0340", "spec.store.bucket.credentials.secret.accessKey")],
        ),
        (
            {**S3, "credentials": {"secret": {"name": "a", "sasToken": "b"}}},
            [("KG0340", "spec.store.bucket.credentials.secret.sasToken")],
        ),
        (
            {**AZURE, "credentials": {"secret": {"name": "a", "sasToken": "b", "accountKey": "c"}}},
            [("KG0340", "spec.store.bucket.credentials.secret.accountKey")],
        ),
        ({**S3, "mount": {"driver": "gcsfuse"}}, [("KG0316", "spec.store.bucket.mount.driver")]),
        ({**S3, "mount": {"secret": {"name": "a", "namespace": "b"}}}, [("KG0340", "spec.store.bucket.mount.secret")]),
    ],
)
def test_impossible_mount_is_reported(bucket: Object, expected: list[tuple[str, str]]) -> None:
    assert problem_paths(resting(bucket)) == expected


@pytest.mark.parametrize(
    ("transfer", "memory"),
    [
        ({}, "512Mi"),
        ({"concurrency": 32, "partSize": "64Mi"}, "2304Mi"),
        ({"concurrency": 64, "partSize": "1Mi"}, "576Mi"),
        ({"concurrency": 64, "partSize": "64Mi", "memory": "8Gi"}, "8Gi"),
    ],
)
def test_memory_of_the_downloader_covers_the_parts_in_flight(transfer: Object, memory: str) -> None:
    found = pod(model(store={"bucket": S3}, transfer=transfer))["containers"][0]["resources"]
    assert found["limits"]["memory"] == found["requests"]["memory"] == memory


def copied(source: Object, store: Object, **fields: Any) -> Model:
    """Return a Model whose files are copied from one folder to another."""
    fixed = {"revision": f"1:1:{'0' * 64}", **source}
    return model(source={"s3": fixed}, store={"bucket": store}, **fields)


INSIDE = [("KG0400", "spec.store.bucket.uri")]


@pytest.mark.parametrize(
    ("source", "store"),
    [
        ({"uri": "s3://models"}, {"uri": "s3://models/copy"}),
        ({"uri": "az://one/models"}, {"uri": "az://one/models/copy"}),
        ({"uri": "s3://models/a"}, {"uri": "s3://models/a/"}),
        ({"uri": "s3://models/a/"}, {"uri": "s3://models/a/b/c"}),
        ({"uri": "s3://models/a"}, {"uri": "s3://models/a/b"} | {"region": "eu-central-1"}),
        (
            {"uri": "s3://models/a", "endpoint": "https://s3.eu-central-1.amazonaws.com", "credentials": KEYS},
            {"uri": "s3://models/a"},
        ),
        (
            {"uri": "s3://models/a", "endpoint": "https://storage.googleapis.com", "credentials": KEYS},
            {"uri": "gs://models/a", "credentials": KEYS},
        ),
        (
            {"uri": "s3://models/a", "endpoint": "http://MinIO.svc:9000/", "credentials": KEYS},
            {"uri": "s3://models/a", "endpoint": "https://minio.svc:9000", "credentials": KEYS},
        ),
        ({"uri": "s3://models/a", "exclude": ["b/*.bin", "bc/"]}, {"uri": "s3://models/a/b"}),
        ({"uri": "s3://models/a", "include": ["*.safetensors"]}, {"uri": "s3://models/a/b"}),
        ({"uri": "s3://models/a", "include": ["b/c*"]}, {"uri": "s3://models/a/b"}),
    ],
)
def test_a_store_inside_of_its_source_is_an_error(source: Object, store: Object) -> None:
    assert problem_paths(copied(source, store)) == INSIDE


@pytest.mark.parametrize(
    ("source", "store"),
    [
        ({"uri": "s3://models/a"}, {"uri": "s3://models/ab"}),
        ({"uri": "s3://models/a/b"}, {"uri": "s3://models/a"}),
        ({"uri": "az://one/models/a"}, {"uri": "az://other/models/a/b"}),
        ({"uri": "s3://models/a"}, {"uri": "s3://others/a"}),
        (
            {"uri": "s3://models/a", "endpoint": "https://one.example", "credentials": KEYS},
            {"uri": "s3://models/a", "endpoint": "https://other.example", "credentials": KEYS},
        ),
        ({"uri": "s3://models/a", "exclude": ["b/"]}, {"uri": "s3://models/a/b"}),
        ({"uri": "s3://models/a", "exclude": ["b/*"]}, {"uri": "s3://models/a/b/c"}),
        ({"uri": "s3://models/a", "include": ["q4/*", "config.json"]}, {"uri": "s3://models/a/copy"}),
    ],
)
def test_a_store_next_to_its_source_is_not(source: Object, store: Object) -> None:
    assert problem_paths(copied(source, store)) == []


def test_converted_files_inside_of_the_source_are_an_error() -> None:
    own = {"bucket": {"uri": "s3://raw/qwen/q40"}}
    block = copied({"uri": "s3://raw/qwen"}, S3, convert={"distributedLlama": {"weights": "q40", "store": own}})
    assert problem_paths(block) == [("KG0400", "spec.convert.distributedLlama.store.bucket.uri")]


def test_the_hint_about_a_store_inside_of_its_source_is_a_solution() -> None:
    source: Object = {"uri": "s3://models/a"}
    hints = []
    for store in ("s3://models/a/b", "s3://models/a"):
        problems = Problems()
        compiled(copied(source, {"uri": store}), context(), problems)
        hints += [found.hint for found in problems.items]
    assert hints == ["set another prefix, or set `exclude: [b/]` in `source.s3`", "set another prefix"]
