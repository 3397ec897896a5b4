"""ExternalSecrets: one for each Secret, in an app that belongs to none of its readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.check.schema_check import check_object
from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.output.contents import data_of
from kaigen.pipeline.app_secrets import expected_secrets
from kaigen.pipeline.run import Run
from tests import helm
from tests.unit.secrets.repository import DATA, Repository, job, model

STORE = {"store": {"name": "vault"}}


def externals(files: dict[str, bytes]) -> dict[str, dict[str, object]]:
    """The ExternalSecrets of a tree, by path."""
    return {path: yaml.safe_load(data) for path, data in files.items() if "/externalsecret-" in path}


def test_no_external_secret_is_written_by_default(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen"))
    before = repository.files()
    assert externals(before) == {}
    repository.configure(secrets={"provider": "references", "externalSecrets": STORE})
    assert repository.files() == before


def test_a_secret_that_two_apps_read_is_made_once_and_survives_the_removal_of_one(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", model("a"))
    repository.write("specs/b.yaml", model("b"))
    both = repository.files()
    path = "ml/kaigen-secrets/manifests/externalsecret-hf-token.yaml"
    assert list(externals(both)) == [path]
    (repository.root / "specs/a.yaml").unlink()
    one = repository.files()
    assert one[path] == both[path]
    (repository.root / "specs/b.yaml").unlink()
    repository.write("specs/c.yaml", job("c"))
    assert externals(repository.files()) == {}


def test_each_namespace_has_its_own(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    other = model("b")
    other["metadata"]["namespace"] = "lab"
    repository.write("specs/a.yaml", model("a"), other)
    assert sorted(externals(repository.files())) == [
        "lab/kaigen-secrets/manifests/externalsecret-hf-token.yaml",
        "ml/kaigen-secrets/manifests/externalsecret-hf-token.yaml",
    ]


def test_keys_are_properties_of_one_entry_in_the_store(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id"), "B": ("s3", "key")}))
    (made,) = externals(repository.files()).values()
    assert check_object(made) == []
    spec = made["spec"]
    assert isinstance(spec, dict)
    remotes = [(item["secretKey"], item["remoteRef"]["key"], item["remoteRef"]["property"]) for item in spec["data"]]
    assert remotes == [("id", "ml/s3", "id"), ("key", "ml/s3", "key")]
    assert spec["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "vault"}
    assert spec["target"]["name"] == "s3"


def test_an_environment_overrides_the_file(repository: Repository) -> None:
    prod = {"externalSecrets": {"store": {"name": "prod"}, "keyTemplate": "{env}-{name}-{key}"}}
    repository.configure(
        secrets={"externalSecrets": {"store": {"kind": "SecretStore", "name": "dev"}, "refreshInterval": "10m"}},
        environments={"prod": {"secrets": prod}, "local": {"secrets": {"provider": "references"}}},
    )
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}))
    (made,) = externals(repository.files(environment="prod")).values()
    spec = made["spec"]
    assert isinstance(spec, dict)
    assert spec["secretStoreRef"] == {"kind": "SecretStore", "name": "prod"}
    assert spec["refreshInterval"] == "10m"
    assert spec["data"][0]["remoteRef"]["key"] == "prod-s3-id"
    assert "property" not in spec["data"][0]["remoteRef"]
    assert externals(repository.files(environment="local")) == {}
    # What was read once is kept in a cache, and must come back as it was.
    assert load_config(repository.root, "prod") == load_config(repository.root, "prod")


def test_the_chart_is_the_same_and_its_store_can_be_set(repository: Repository, tmp_path: Path) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}, image={"ref": "x.io/a", "pullSecrets": ["pull"]}))
    files = repository.files("both")
    chart = tmp_path / "chart"
    for path, data in files.items():
        if path.startswith("ml/kaigen-secrets/chart/"):
            target = chart / path.removeprefix("ml/kaigen-secrets/chart/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    plain = list(externals({path: data for path, data in files.items() if "/manifests/" in path}).values())
    rendered = helm.template(chart, "kaigen-secrets", "ml", fast=True)
    assert rendered == sorted(plain, key=lambda item: item["metadata"]["name"])  # type: ignore[index]
    changed = helm.template(chart, "kaigen-secrets", "ml", {"secretStore": {"name": "other"}}, fast=True)
    assert {item["spec"]["secretStoreRef"]["name"] for item in changed} == {"other"}


def test_a_secret_that_the_repository_makes_gets_none(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/qwen.yaml", model("qwen"))
    repository.text("specs/hf-token.yaml", (DATA / "hf-token.yaml").read_text(encoding="utf-8"))
    assert externals(repository.files()) == {}
    (secret,) = expected_secrets(repository.compile())
    assert secret.maker is not None
    assert secret.maker.source == "SOPS"


def ingress(annotations: dict[str, str]) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "ml", "annotations": annotations},
        "spec": {"tls": [{"hosts": ["a.example"], "secretName": "web-tls"}], "rules": [rule]},
    }


def test_a_certificate_of_cert_manager_gets_none(repository: Repository) -> None:
    repository.configure(passthrough=True, secrets={"externalSecrets": STORE})
    repository.write("specs/web.yaml", ingress({}))
    assert list(externals(repository.files())) == ["ml/kaigen-secrets/manifests/externalsecret-web-tls.yaml"]
    repository.write("specs/web.yaml", ingress({"cert-manager.io/cluster-issuer": "letsencrypt"}))
    assert externals(repository.files()) == {}
    (secret,) = expected_secrets(repository.compile())
    assert secret.maker is not None
    assert secret.maker.source == "cert-manager"


def test_a_secret_that_the_cluster_has_gets_none(repository: Repository) -> None:
    entry = {"kind": "Secret", "name": "hf-*", "namespace": "ml"}
    repository.configure(secrets={"externalSecrets": STORE}, external=[entry])
    other = model("b")
    other["metadata"]["namespace"] = "lab"
    repository.write("specs/a.yaml", model("a"), other)
    assert list(externals(repository.files())) == ["lab/kaigen-secrets/manifests/externalsecret-hf-token.yaml"]
    (known,) = [item.maker for item in expected_secrets(repository.compile(), external=repository.config().external)
                if item.namespace == "ml"]  # fmt: skip
    assert known is not None


@pytest.mark.parametrize("form", ["manifests", "chart"])
def test_flux_applies_the_readers_before_every_value_is_there(repository: Repository, form: str) -> None:
    gitops = {"repository": "https://git.example/a", "path": "rendered", "flux": {}}
    repository.configure(secrets={"externalSecrets": STORE}, gitops=gitops, format=form)
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}))
    tree = Run.load((), repository.config()).files()
    read = {path: yaml.safe_load(data_of(data)) for path, data in tree.items() if path.startswith("_flux/apps/ml.")}
    secrets, reader = read["_flux/apps/ml.kaigen-secrets.yaml"]["spec"], read["_flux/apps/ml.a.yaml"]["spec"]
    assert reader["dependsOn"] == [{"name": "ml.kaigen-secrets"}]
    if form == "chart":
        assert [spec["install"].get("disableWait") for spec in (secrets, reader)] == [True, None]
        assert [spec["upgrade"].get("disableWait") for spec in (secrets, reader)] == [True, None]
    else:
        assert [spec["wait"] for spec in (secrets, reader)] == [False, True]


@pytest.mark.parametrize(("syncers", "ignored"), [((), True), (("argocd",), True), (("flux",), False)])
def test_argo_cd_leaves_the_health_of_external_secrets_out(
    repository: Repository, syncers: tuple[str, ...], ignored: bool
) -> None:
    gitops = {"repository": "https://git.example/a", "path": "rendered", **{name: {} for name in syncers}}
    repository.configure(secrets={"externalSecrets": STORE}, **({"gitops": gitops} if syncers else {}))
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}))
    (made,) = externals(repository.files()).values()
    metadata: Any = made["metadata"]
    key = "argocd.argoproj.io/ignore-healthcheck"
    assert metadata.get("annotations", {}) == ({key: "true"} if ignored else {})


def test_rendering_some_specs_writes_the_secrets_of_all(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}))
    repository.write("specs/b.yaml", job("b", {"B": ("s3", "key"), "C": ("other", "x")}))
    whole = externals(repository.files())
    assert externals(repository.compile("specs/a.yaml").files("manifests")) == whole


@pytest.mark.parametrize(
    "text",
    [
        "kind: Job\n",
        "a: [\n",
        yaml.safe_dump({**job("b"), "spec": {"imagee": "x"}}),
        yaml.safe_dump(job("b", model="none")),
    ],
)
def test_a_broken_sibling_spec_leaves_the_secrets_unchanged(repository: Repository, text: str) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}))
    repository.text("specs/b.yaml", text)
    part = repository.compile("specs/a.yaml")
    assert [item.code for item in part.diagnostics] == ["KG0332"]
    assert [item.app.name for item in part.apps] == ["a"]


def test_its_readers_wait_for_it(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("a", {"A": ("s3", "id")}), job("b"))
    needs = {item.app.name: item.needs for item in repository.compile().apps}
    assert needs == {"a": (("ml", "kaigen-secrets"),), "b": (), "kaigen-secrets": ()}


def test_an_app_must_not_use_the_name_of_the_app_of_secrets(repository: Repository) -> None:
    repository.configure(secrets={"externalSecrets": STORE})
    repository.write("specs/a.yaml", job("kaigen-secrets", {"A": ("s3", "id")}))
    with pytest.raises(InputError) as caught:
        repository.compile()
    assert [item.code for item in caught.value.diagnostics] == ["KG0302"]


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "ml"},
    "spec": {"containers": [{"name": "web", "image": "x", "envFrom": [{"secretRef": {"name": "all"}}]}]},
}


def test_a_secret_that_is_read_whole_is_extracted(repository: Repository) -> None:
    repository.configure(passthrough=True, secrets={"externalSecrets": STORE})
    repository.write("specs/web.yaml", POD)
    (made,) = externals(repository.files()).values()
    spec = made["spec"]
    assert isinstance(spec, dict)
    assert spec["dataFrom"][0]["extract"]["key"] == "ml/all"
    assert "data" not in spec
    assert check_object(made) == []
    template = {**STORE, "keyTemplate": "{name}-{key}"}
    repository.configure(passthrough=True, secrets={"externalSecrets": template})
    with pytest.raises(InputError) as caught:
        repository.compile()
    (found,) = caught.value.diagnostics
    assert found.code == "KG0331"
    assert found.path == "spec.containers[0].envFrom[0].secretRef.name"


@pytest.mark.parametrize(
    ("secrets", "code"),
    [
        ({"externalSecrets": {}}, "KG0730"),
        ({"provider": "externalSecrets"}, "KG0730"),
        ({"externalSecrets": {"store": {"name": "v", "kind": "Vault"}}}, "KG0205"),
        ({"externalSecrets": {**STORE, "keyTemplate": "{nam}"}}, "KG0204"),
        ({"externalSecrets": {**STORE, "refreshInterval": "1d"}}, "KG0204"),
        ({"provider": "sops"}, "KG0205"),
    ],
)
def test_an_invalid_block_is_reported(repository: Repository, secrets: dict[str, object], code: str) -> None:
    repository.configure(secrets=secrets)
    with pytest.raises(InputError) as caught:
        repository.config()
    assert [item.code for item in caught.value.diagnostics] == [code]
