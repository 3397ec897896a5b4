"""The policy on licences in kaigen.yaml, checked against the lock and the catalogue."""

from __future__ import annotations

import pytest

from kaigen.config.licenses import Licenses
from runtimes.downloader.tests.hub import Hub
from tests.unit.lock.conftest import Repository, model, model_files
from tests.unit.lock.registry import Registry

_ANNOTATION = "org.opencontainers.image.licenses"


@pytest.mark.parametrize(
    ("policy", "licence", "verdict"),
    [
        (Licenses(), "mit", "allow"),
        (Licenses(allow=["apache-2.0", "MIT"]), "mit", "allow"),
        (Licenses(allow=["apache-2.0"]), "mit", "deny"),
        (Licenses(deny=["*-nc-*"]), "cc-by-nc-4.0", "deny"),
        (Licenses(allow=["cc-*"], deny=["*-nc-*"]), "cc-by-nc-4.0", "deny"),
        (Licenses(allow=["mit"], ask=["llama3*"]), "llama3.1", "ask"),
        (Licenses(allow=["mit"]), "unknown", "deny"),
    ],
)
def test_verdict(policy: Licenses, licence: str, verdict: str) -> None:
    assert policy.verdict(licence) == verdict


def test_a_licence_that_is_not_allowed_is_an_error_at_the_repository(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {allow: [mit]}\n")
    # The policy does not keep the lock from being written: it shows the licence.
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("render")
    assert code == 2
    assert "specs/a.yaml:7:" in printed
    assert "KG0752" in printed
    assert "owner/name has the licence `apache-2.0`" in printed
    repository.configure("licenses: {allow: [mit, apache-2.0]}\n")
    code, printed = repository.run("render")
    assert code == 0, printed


def test_a_licence_to_ask_about_is_a_warning(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {ask: ['apache-*']}\n")
    repository.run("lock")
    code, printed = repository.run("validate")
    assert code == 0, printed
    assert "warning[KG0752]" in printed


def test_a_licence_that_nobody_locked_is_an_error(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.configure("licenses: {deny: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert f"the licence of {hub.url}/owner/name is not known" in printed
    assert "run `kaigen lock`" in printed


def test_the_catalogue_knows_licences_without_a_lock(repository: Repository) -> None:
    repository.write(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {name: chat}\n"
        "spec: {preset: phi-4, resources: {instanceType: g6.12xlarge}}\n"
    )
    repository.configure("licenses: {deny: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert "microsoft/phi-4 has the licence `mit`" in printed


@pytest.mark.parametrize(
    ("licence", "verdict"),
    [
        ("MIT AND Apache-2.0", "allow"),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", "deny"),
        ("MIT AND llama3.1", "ask"),
        ("MIT AND llama3.1 AND GPL-3.0-only", "deny"),
        ("GPL-2.0-only WITH Classpath-exception-2.0", "allow"),
        ("()", "deny"),
    ],
)
def test_every_licence_of_an_expression_must_be_allowed(licence: str, verdict: str) -> None:
    policy = Licenses(allow=["mit", "apache-2.0", "gpl-* with classpath-*"], ask=["llama3*"])
    assert policy.verdict(licence) == verdict


def _source(source: str, kind: str = "Model") -> str:
    return (
        f"apiVersion: kaigen.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: tuned}}\nspec:\n  source:\n"
        f"    {source}\n  store: {{volume: {{size: 5Gi}}}}\n"
    )


_SUM = "a" * 64


@pytest.mark.parametrize(
    ("source", "place", "name"),
    [
        ("s3: {uri: s3://acme/qwen/}", "6:15", "s3://acme/qwen"),
        (
            "s3: {uri: s3://acme/qwen, endpoint: 'https://minio.example', credentials: {secret: {name: a}}}",
            "6:15",
            "s3://acme/qwen at minio.example",
        ),
        (
            f"http: {{files: [{{url: 'https://web.example/a.gguf', sha256: {_SUM}}}]}}",
            "6:26",
            "https://web.example/a.gguf",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["Model", "Dataset"])
def test_a_source_without_a_card_has_the_licence_that_kaigen_yaml_gives_it(
    repository: Repository, source: str, place: str, name: str, kind: str
) -> None:
    repository.write(_source(source, kind))
    repository.configure("licenses: {allow: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert f"specs/a.yaml:{place}" in printed
    assert f"{name} has the licence `unknown`" in printed
    assert "`licenses.known`" in printed
    repository.configure(f"licenses: {{allow: [mit], known: {{'{name[:9]}*': mit, '{name}': mit}}}}\n")
    code, printed = repository.run("validate")
    assert code == 0, printed
    repository.configure(f"licenses: {{deny: [cc-*], known: {{'{name}': CC-BY-NC-4.0}}}}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert f"{name} has the licence `CC-BY-NC-4.0`" in printed


def test_a_known_bucket_of_another_server_is_unknown(repository: Repository) -> None:
    repository.write(_source("s3: {uri: s3://acme/qwen, endpoint: 'https://evil.example'}"))
    repository.configure("licenses: {allow: [mit], known: {'s3://acme/*': mit}}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert "s3://acme/qwen at evil.example has the licence `unknown`" in printed


@pytest.mark.parametrize(
    ("annotations", "licence"),
    [
        ({_ANNOTATION: "Apache-2.0"}, "Apache-2.0"),
        ({}, ""),
        ({_ANNOTATION: 3}, ""),
        ({_ANNOTATION: "MIT\nx"}, ""),
        ({_ANNOTATION: "x" * 1000}, "x" * 200),
    ],
)
def test_the_lock_has_the_licence_of_an_artifact(
    repository: Repository, annotations: dict[str, object], licence: str
) -> None:
    with Registry() as registry:
        registry.artifact("1", model_files(), annotations)
        repository.write(_source(f"oci: {{ref: '{registry.host}/acme/weights:1', plainHttp: true}}"))
        repository.configure("licenses: {allow: [mit]}\n")
        code, printed = repository.run("validate")
        assert code == 2
        assert "specs/a.yaml:6:16" in printed
        assert f"the licence of {registry.host}/acme/weights is not known" in printed
        code, printed = repository.run("lock")
        assert code == 0, printed
        assert f"licence {licence or 'unknown'}" in printed
    ((_, entry),) = repository.lock["artifacts"].items()
    assert entry["licence"] == licence
    code, printed = repository.run("validate")
    assert code == 2
    assert f"has the licence `{licence or 'unknown'}`" in printed
    repository.configure(f"licenses: {{allow: [{licence[:99].lower() or 'unknown'}*]}}\n")
    code, printed = repository.run("validate")
    assert code == 0, printed


def test_the_licence_of_an_image_with_files_is_that_of_its_index(repository: Repository) -> None:
    with Registry() as registry:
        registry.image("car", model_files(), {_ANNOTATION: "MIT"})
        repository.write(_source(f"oci: {{ref: '{registry.host}/acme/weights:car', plainHttp: true}}"))
        assert repository.run("lock")[0] == 0
    ((_, entry),) = repository.lock["artifacts"].items()
    assert entry["licence"] == "MIT"


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (
            "kind: Topology\nmetadata: {name: chat}\nspec:\n"
            "  model: {image: {ref: 'registry.example/acme/weights:1'}}\n"
            "  engine: vllm\n  resources: {gpus: 1, gpuType: L4}\n",
            "registry.example/acme/weights",
        ),
        (
            "kind: Job\nmetadata: {name: train}\nspec:\n  image: registry.example/acme/train:1\n"
            "  volumes: {data: {image: 'registry.example/acme/data:1', mountPath: /data}}\n",
            "registry.example/acme/data",
        ),
    ],
    ids=["of a model", "of data"],
)
def test_an_image_that_is_mounted_has_the_licence_that_kaigen_yaml_gives_it(
    spec: str, image: str, repository: Repository
) -> None:
    repository.write(f"apiVersion: kaigen.dev/v1alpha1\n{spec}")
    repository.configure("licenses: {allow: [mit]}\n")
    code, printed = repository.run("validate")
    assert code == 2
    assert f"{image} has the licence `unknown`" in printed
    repository.configure("licenses: {allow: [mit], known: {'registry.example/acme/*': MIT}}\n")
    _, printed = repository.run("validate")
    assert "KG0752" not in printed
