"""Archives, bills of materials and provenance are reproducible and follow their formats."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from hypothesis import given
from hypothesis import strategies as st

from kaigen.config.publish import Publish
from kaigen.diagnostics.errors import InputError
from kaigen.kubernetes.images import images_of
from kaigen.oci.reference import Reference, parse_reference
from kaigen.publish.artifact import HELM_CONFIG, bill_of_images, provenance
from kaigen.publish.artifacts import gzip_stored, tgz
from kaigen.publish.plan import Destination, Requested, destination, make_plan
from kaigen.publish.source import Source
from tests.unit.publish.clones import Clone

SOURCE = Source("a" * 40, 1_700_000_000, "https://example.com/acme/specs.git", "", "main", dirty=False)
DIGEST = "sha256:" + "c" * 64


@given(st.binary(max_size=200_000))
def test_a_stored_gzip_is_read_back(data: bytes) -> None:
    assert gzip.decompress(gzip_stored(data)) == data


@pytest.mark.parametrize("size", [0, 1, 65534, 65535, 65536, 131070, 131071])
def test_blocks_of_every_size_are_read_back_by_gzip_itself(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    done = subprocess.run(["gzip", "-dc"], input=gzip_stored(data[:size]), capture_output=True, check=True)
    assert done.stdout == data[:size]


def test_an_archive_depends_only_on_its_files() -> None:
    files = {"b/two.yaml": b"2", "a.yaml": b"1", "long/" + "x" * 150: b"3"}
    assert tgz(files) == tgz(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(tgz(files, first=("b/two.yaml", "none")))) as archive:
        entries = archive.getmembers()
        assert [entry.name for entry in entries] == ["b/two.yaml", "a.yaml", "long/" + "x" * 150]
        assert {(entry.mtime, entry.uid, entry.gid, entry.uname, entry.mode) for entry in entries} == {
            (0, 0, 0, "", 0o644)
        }
        read = archive.extractfile("a.yaml")
        assert read is not None
        assert read.read() == b"1"


def test_an_archive_is_the_same_in_another_process_zone_and_hash_seed() -> None:
    code = (
        "from kaigen.publish.artifacts import tgz; from hashlib import sha256;"
        "print(sha256(tgz({f'{n}.yaml': b'x' * n for n in {*range(50)}})).hexdigest())"
    )
    root = str(Path(__file__).parents[3])
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": root, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(said) == 1


IMAGES = [
    "python:3.12-slim",
    "busybox",
    "ghcr.io/acme/tool:1.0@sha256:" + "d" * 64,
    "localhost:5000/x@sha256:" + "e" * 64,
    "registry.example.com:8443/Team/app",
]


def test_a_bill_of_materials_is_valid_and_lists_every_image() -> None:
    bill = bill_of_images("qwen", "0.1.0", DIGEST, [*IMAGES, IMAGES[0]])
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.decode())
    assert problem is None, problem
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.decode().replace('"container"', '"box"'))
    components = {item["bom-ref"]: item for item in json.loads(bill)["components"]}
    assert sorted(components) == sorted(IMAGES)
    assert components[IMAGES[0]] == {
        "type": "container",
        "bom-ref": IMAGES[0],
        "name": "python",
        "version": "3.12-slim",
    }
    assert components[IMAGES[2]]["hashes"] == [{"alg": "SHA-256", "content": "d" * 64}]
    assert components[IMAGES[2]]["purl"] == (
        f"pkg:oci/tool@sha256%3A{'d' * 64}?repository_url=ghcr.io%2Facme%2Ftool&tag=1.0"
    )
    assert components[IMAGES[3]]["name"] == "localhost:5000/x"
    assert "version" not in components[IMAGES[4]]
    assert bill == bill_of_images("qwen", "0.1.0", DIGEST, reversed(IMAGES))
    assert bill != bill_of_images("qwen", "0.1.0", "sha256:" + "0" * 64, IMAGES)


def test_a_bill_without_images_is_valid() -> None:
    assert (
        JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill_of_images("a", "1.0.0", DIGEST, []).decode()) is None
    )


def test_images_are_found_in_every_kind_of_pod() -> None:
    pod: dict[str, Any] = {
        "initContainers": [{"name": "a", "image": "init:1"}],
        "containers": [{"name": "b", "image": "main:1"}, {"name": "c", "image": "main:1"}],
        "volumes": [{"name": "w", "image": {"reference": "weights:1"}}, {"name": "e", "emptyDir": {}}],
    }
    objects = [
        {"kind": "Job", "spec": {"template": {"spec": pod}}},
        {
            "kind": "LeaderWorkerSet",
            "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"image": "worker:1"}]}}}},
        },
        {"kind": "ConfigMap", "data": {"image": "not:one", "containers": "no"}},
    ]
    assert images_of(objects) == ["init:1", "main:1", "weights:1", "worker:1"]


def test_a_provenance_statement_names_the_source_and_its_files() -> None:
    text = provenance(
        SOURCE, "oci://example.com/charts/qwen:0.1.0", DIGEST, {"environment": "prod"}, {"specs/a.yaml": "f" * 64}
    )
    data = json.loads(text)
    assert data["_type"] == "https://in-toto.io/Statement/v1"
    assert data["subject"] == [{"name": "oci://example.com/charts/qwen:0.1.0", "digest": {"sha256": "c" * 64}}]
    build = data["predicate"]["buildDefinition"]
    assert build["externalParameters"] == {"environment": "prod"}
    assert build["resolvedDependencies"] == [
        {"uri": "git+https://example.com/acme/specs.git", "digest": {"gitCommit": "a" * 40}},
        {"name": "specs/a.yaml", "digest": {"sha256": "f" * 64}},
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("oci://ghcr.io/acme/charts", Reference("ghcr.io", "acme/charts")),
        ("oci://127.0.0.1:5000/a/b-c/d__e:v1.0_x", Reference("127.0.0.1:5000", "a/b-c/d__e", "v1.0_x")),
        ("oci://[::1]:5000/a", Reference("[::1]:5000", "a")),
    ],
)
def test_a_reference_is_parsed(text: str, found: Reference) -> None:
    assert parse_reference(text, tag=True) == found
    assert str(found) == text


@pytest.mark.parametrize(
    "text",
    [
        "ghcr.io/acme",
        "oci://ghcr.io",
        "oci://ghcr.io/Acme",
        "oci://u:p@ghcr.io/acme",
        "oci://ghcr.io/a/../b",
        "oci://h/a:",
        "oci://h/a b",
        "http://h/a",
    ],
)
def test_an_invalid_reference_is_rejected(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_reference(text, tag=True)
    assert error.value.diagnostics[0].code == "KG0906"
    assert "u:p" not in str(error.value)


def test_only_loopback_registries_are_used_without_tls() -> None:
    plain = ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000"]
    others = ["localhost.example.com", "127.0.0.1.example.com", "example.com:127", "10.0.0.1:5000"]
    assert all(Reference(host, "a").is_loopback for host in plain)
    assert not any(Reference(host, "a").is_loopback for host in others)


@pytest.mark.parametrize(
    ("settings", "given", "found"),
    [
        ({}, {}, Destination(branch="deploy")),
        ({}, {"charts": "oci://h/c"}, Destination(branch="", charts="oci://h/c")),
        ({"branch": "x", "charts": "oci://h/c"}, {}, Destination(branch="x", charts="oci://h/c")),
        ({"branch": "x", "charts": "oci://h/c", "remote": "up"}, {"branch": "y"}, Destination(branch="y", remote="up")),
        ({"remote": "up", "path": "a"}, {"path": "b"}, Destination(remote="up", path="b")),
        (
            {"version_suffix": True},
            {"charts": "oci://h/c"},
            Destination(branch="", charts="oci://h/c", version_suffix=True),
        ),
    ],
)
def test_targets_on_the_command_line_replace_those_of_the_configuration(
    settings: dict[str, Any], given: dict[str, Any], found: Destination
) -> None:
    assert destination(Publish(**settings), Requested(**given)) == found


@pytest.fixture
def repository(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> Clone:
    clone.job("evaluate")
    clone.write("kaigen.yaml", "kind: Config\nenvironments: {dev: {}, prod: {namespace: ml-prod}}\n")
    clone.commit("environments")
    monkeypatch.chdir(clone.folder)
    return clone


def plan(clone: Clone, *environments: str, **where: Any) -> Any:
    from kaigen.config.load import load_config

    configs = [load_config(clone.folder, name) for name in environments or ("",)]
    return make_plan(configs, Destination(**where))


def test_a_chart_is_packed_like_helm_does(repository: Clone) -> None:
    artifacts = {item.name: item for item in plan(repository, branch="", charts="oci://h/c").artifacts}
    assert sorted(artifacts) == ["evaluate", "qwen"]
    chart = artifacts["qwen"]
    assert str(chart.reference) == "oci://h/c/qwen:0.1.0"
    assert chart.config[0] == HELM_CONFIG
    assert json.loads(chart.config[1])["name"] == "qwen"
    with tarfile.open(fileobj=io.BytesIO(chart.layer[1])) as archive:
        names = archive.getnames()
    assert names[:3] == ["qwen/Chart.yaml", "qwen/values.yaml", "qwen/values.schema.json"]
    assert all(name.startswith("qwen/") for name in names)
    assert chart.images == ["python:3.12-slim"]
    assert set(chart.materials) == {"kaigen.yaml", "specs/evaluate.yaml", "specs/qwen.yaml"}
    repository.write("kaigen.lock", '{"apiVersion": "kaigen.dev/v1alpha1", "kind": "Lock"}\n')
    repository.commit("lock")
    locked = plan(repository, branch="", charts="oci://h/c").artifacts
    assert all("kaigen.lock" in item.materials for item in locked)
    # Another commit, the same content.
    repository.commit("of no matter")
    assert {item.name: item.manifest() for item in plan(repository, branch="", charts="oci://h/c").artifacts} == {
        name: item.manifest() for name, item in artifacts.items()
    }


def test_a_version_suffix_depends_on_the_content(repository: Clone) -> None:
    def versions() -> dict[str, str]:
        made = plan(repository, branch="", charts="oci://h/c", version_suffix=True).artifacts
        for item in made:
            assert json.loads(item.config[1])["version"] == item.version
            assert item.reference.tag == item.version.replace("+", "_")
        return {item.name: item.version for item in made}

    before = versions()
    assert before["qwen"].startswith("0.1.0+")
    repository.job("qwen", "2")
    repository.commit("a change")
    after = versions()
    assert after["evaluate"] == before["evaluate"]
    assert after["qwen"] != before["qwen"]


def test_manifests_are_packed_for_flux(repository: Clone) -> None:
    (item,) = plan(repository, "prod", branch="", manifests="oci://h/m/{env}").artifacts
    assert str(item.reference) == "oci://h/m/prod:latest"
    assert item.annotations["org.opencontainers.image.revision"] == f"main@sha1:{repository.git('rev-parse', 'HEAD')}"
    with tarfile.open(fileobj=io.BytesIO(item.layer[1])) as archive:
        names = archive.getnames()
    assert "ml/qwen/manifests/kustomization.yaml" in names
    assert not any("chart" in name or name.startswith(".") for name in names)


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"branch": "deploy", "path": "."}, "KG0905"),
        ({"branch": "deploy", "path": "apps"}, "KG0905"),
        ({"branch": "deploy", "path": "../up"}, "KG0902"),
        ({"branch": "deploy", "path": "/etc"}, "KG0902"),
        ({"branch": "deploy", "path": ".git/hooks"}, "KG0902"),
        ({"branch": "", "manifests": "oci://h/m"}, "KG0907"),
        ({"branch": "", "charts": "oci://h/C"}, "KG0906"),
    ],
)
def test_invalid_destinations_are_rejected(repository: Clone, where: dict[str, Any], code: str) -> None:
    repository.write("kaigen.yaml", "kind: Config\nenvironments: {dev: {}, prod: {profile: gke}}\n")
    repository.commit("two environments")
    with pytest.raises(InputError) as error:
        plan(repository, "dev", "prod", **where)
    assert {item.code for item in error.value.diagnostics} == {code}


def test_each_environment_goes_to_its_own_branch(repository: Clone) -> None:
    made = plan(repository, "dev", "prod", branch="env/{env}", path=".")
    assert {branch: [tree.path for tree in trees] for branch, trees in made.branches.items()} == {
        "env/dev": [""],
        "env/prod": [""],
    }
    with pytest.raises(InputError, match="needs an environment"):
        plan(repository, branch="env/{env}")
