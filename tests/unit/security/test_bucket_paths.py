"""A path in a bucket is granted, allowed and accepted by one rule: none with `..`, however it is written."""

from __future__ import annotations

import re
from typing import Any

import pytest
import re2
import yaml

from kaigen.kinds.bucket import LOCATION
from kaigen.kubernetes.buckets import ANY_URI, BUCKET_URI, WEB_BUCKET, bucket_uris
from kaigen.regex.pattern import matches
from kaigen.tenancy.conditions.volumes import bucket_pattern, is_bucket_granted
from tests.tenancy.places import PATHS, URIS
from tests.unit.security.hostile import CONFIG, Repository

GRANTED = ["s3://shared/a", "https://ours.s3.amazonaws.com/a"]
MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source:
    huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae557604adf67be50417f59c2c2f167def9a775}
  store:
    bucket: {uri: URI}
"""
GCSFUSE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: example.com/train:1.0
  command: [train]
  resources: {cpu: 1, memory: 1Gi}
  volumes:
    m:
      csi: {driver: gcsfuse.csi.storage.gke.io, readOnly: true, volumeAttributes: ATTRIBUTES}
      mountPath: /m
  podAnnotations: {gke-gcsfuse/volumes: "true"}
"""


def whole(pattern: str, text: str) -> bool:
    return re2.search(f"^({pattern})$", text) is not None


def is_granted_by_policy(uri: str) -> bool:
    return whole(BUCKET_URI, uri) and whole(bucket_pattern(GRANTED), uri)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_granted_by_the_check_and_by_the_patterns_of_policies(path: str) -> None:
    uri = f"s3://shared/{path}"
    assert (is_bucket_granted(uri, GRANTED), is_granted_by_policy(uri)) == (PATHS[path], PATHS[path])


@pytest.mark.parametrize("text", URIS)
def test_uris_are_found_anywhere_in_a_text(text: str) -> None:
    found = [match for match in re2.finditer(ANY_URI, text)]
    uris = [uri[0] for uri in found if not uri[0].lower().startswith("http") or whole(WEB_BUCKET, uri[0])]
    assert [*bucket_uris(text)] == uris
    assert all(is_bucket_granted(uri, GRANTED) for uri in uris) == URIS[text]
    assert all(map(is_granted_by_policy, uris)) == URIS[text]


@pytest.mark.parametrize(
    ("uri", "is_granted"),
    [
        ("az://acme/models/a", True),
        ("AZ://acme/models/a", True),
        ("az://acme/models/a/../b", False),
        ("az://acme/models", False),
        ("az://ACME/models/a", False),
        ("az://other/models/a", False),
        ("az://acme@other/models/a", False),
        ("https://acme.blob.core.windows.net/models/a", False),
        ("abfss://models@acme.dfs.core.windows.net/a", False),
        ("wasbs://models@acme.blob.core.windows.net/a", False),
    ],
)
def test_a_container_of_azure_is_granted_by_its_own_scheme_only(uri: str, is_granted: bool) -> None:
    granted = ["az://acme/models/a"]
    assert [*bucket_uris(f"--uri={uri}")] == [uri]
    assert is_bucket_granted(uri, granted) == is_granted
    assert (whole(BUCKET_URI, uri) and whole(bucket_pattern(granted), uri)) == is_granted


@pytest.mark.parametrize(
    ("uri", "is_valid"),
    [
        ("az://acme/models", True),
        ("az://acme/models/a/b", True),
        ("az://acme", False),
        ("az://ac/models", False),
        ("az://Acme/models", False),
        ("az://acme-x/models", False),
        ("az://acme/mo--dels", False),
        ("az://acme/models-", False),
        ("az://acme/$root", False),
        ("az://acme/models/../other", False),
    ],
)
def test_the_uri_of_a_container_has_an_account(uri: str, is_valid: bool) -> None:
    assert matches(LOCATION, uri) == is_valid


def in_the_folder(path: str) -> bool:
    """Return whether a path is well-formed, whatever its folder is."""
    return PATHS[path] or path in ("", "b", "ab", "A")


@pytest.mark.parametrize("path", PATHS)
def test_the_uri_of_a_spec_has_the_same_paths(path: str) -> None:
    uri = f"s3://shared/{path}"
    assert matches(LOCATION, uri) == in_the_folder(path)
    assert (re.search(LOCATION, uri) is not None) == in_the_folder(path)


@pytest.mark.parametrize("path", [path for path in PATHS if not in_the_folder(path)])
@pytest.mark.parametrize("globs", [["s3://*"], ["s3://shared/a/*", "s3://shared/a"]])
def test_a_path_that_is_not_well_formed_is_not_allowed(repository: Repository, path: str, globs: list[str]) -> None:
    grant = {"allow": {"volumes": [{"uris": globs, "attributes": ["*"], "options": ["*"]}]}}
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n" + yaml.safe_dump(grant)})
    csi: dict[str, Any] = {"driver": "ru.yandex.s3.csi", "volumeHandle": f"shared/{path}"}
    claim = {"namespace": "ml", "name": "c"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "claimRef": claim, "csi": csi}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    repository.write({"specs/v.yaml": yaml.safe_dump(body)})
    done = repository.kaigen("validate")
    assert (done.code, "KG0581" in done.err, "does not allow the bucket" in done.err) == (2, True, True)


@pytest.mark.parametrize("path", ["a/../b", "..", "a//b", "./a", "a/.", "a/%2e%2e/b", "a/b at x"])
def test_no_kind_names_a_path_with_dots(repository: Repository, path: str) -> None:
    repository.write({"specs/qwen.yaml": MODEL.replace("URI", f'"s3://shared/{path}"')})
    done = repository.kaigen("validate")
    assert (done.code, "specs/qwen.yaml:8:19" in done.err) == (2, True), done.text
    attributes = {"bucketName": "shared", "mountOptions": f"implicit-dirs,only-dir={path}"}
    written = yaml.safe_dump(attributes, default_flow_style=True, width=1000).strip()
    repository.write({"specs/qwen.yaml": GCSFUSE.replace("ATTRIBUTES", written)})
    done = repository.kaigen("validate")
    assert (done.code, "KG0581" in done.err) == (2, True), done.text


def test_a_server_is_not_part_of_the_path(repository: Repository) -> None:
    grant = {"allow": {"volumes": [{"uris": ["s3://shared*"], "options": ["*"]}]}}
    options = ["prefix a at evil.example/"]
    csi: dict[str, Any] = {
        "driver": "s3.csi.aws.com",
        "volumeHandle": "x",
        "volumeAttributes": {"bucketName": "shared"},
    }
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "mountOptions": options, "csi": csi}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n" + yaml.safe_dump(grant)})
    repository.write({"specs/v.yaml": yaml.safe_dump(body)})
    assert "does not allow the bucket" in repository.kaigen("validate").err


def test_the_secrets_store_needs_a_grant_as_other_drivers_do(repository: Repository) -> None:
    store = GCSFUSE.replace("gcsfuse.csi.storage.gke.io", "secrets-store.csi.k8s.io")
    store = store.replace("ATTRIBUTES", "{secretProviderClass: vault}")
    repository.write({"specs/train.yaml": store})
    done = repository.kaigen("validate")
    assert (done.code, "the driver secrets-store.csi.k8s.io" in done.err) == (2, True), done.text
    grant = {"drivers": ["secrets-store.csi.k8s.io"], "attributes": ["secretProviderClass"]}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"allow": {"volumes": [grant]}})})
    assert repository.kaigen("validate").code == 0
