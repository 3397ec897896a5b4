"""Each Secret that apps read is listed once with all its uses, and compared with the objects that make it."""

from __future__ import annotations

from kaigen.pipeline.app_secrets import expected_secrets
from kaigen.secrets.listing import script
from tests.unit.secrets.repository import DATA, Repository, document, job, model


def test_a_secret_that_two_apps_read_is_listed_once_with_both(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen"))
    repository.write("specs/train.yaml", job("train", {"HF": ("hf-token", "token"), "USER": ("hf-token", "user")}))
    (secret,) = expected_secrets(repository.compile())
    assert (secret.namespace, secret.name, secret.type) == ("ml", "hf-token", "Opaque")
    assert secret.keys == ("token", "user")
    assert secret.apps == ("ml/qwen", "ml/train")
    assert secret.maker is None
    places = [(use.field, use.mark and use.mark.line) for use in secret.uses]
    assert places == [
        ("spec.source.huggingFace.tokenSecret.name", 11),
        ("spec.env.HF.secret.name", 10),
        ("spec.env.USER.secret.name", 14),
    ]


def test_secrets_of_an_app_are_selected_by_its_name_with_or_without_namespace(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen"))
    repository.write("specs/train.yaml", job("train", {"KEY": ("bucket", "key")}))
    compilation = repository.compile()
    for name in ("train", "ml/train"):
        assert [secret.name for secret in expected_secrets(compilation, [name])] == ["bucket"]
    assert [secret.name for secret in expected_secrets(compilation)] == ["bucket", "hf-token"]


def test_pull_secrets_have_their_type_and_key(repository: Repository) -> None:
    repository.write(
        "specs/train.yaml", job("train", image={"ref": "example.com/a:1", "pullSecrets": [{"name": "registry"}]})
    )
    (secret,) = expected_secrets(repository.compile())
    assert (secret.type, secret.keys) == ("kubernetes.io/dockerconfigjson", (".dockerconfigjson",))
    assert secret.uses[0].field == "spec.image.pullSecrets[0].name"


def test_the_login_of_a_registry_with_weights_has_the_type_of_a_pull_secret(repository: Repository) -> None:
    source = {"oci": {"ref": f"ghcr.io/org/qwen@sha256:{'0' * 64}", "pullSecret": {"name": "registry"}}}
    spec = {"source": source, "store": {"volume": {"size": "5Gi"}}}
    repository.write("specs/qwen.yaml", document("Model", "qwen", spec))
    (secret,) = expected_secrets(repository.compile())
    assert (secret.type, secret.keys) == ("kubernetes.io/dockerconfigjson", (".dockerconfigjson",))
    assert (secret.uses[0].field, secret.uses[0].purpose) == (
        "spec.source.oci.pullSecret.name",
        "variable REGISTRY_AUTH of fetch",
    )
    assert "create secret docker-registry registry" in script([secret])


def test_a_missing_key_is_reported_with_both_locations(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen", key="tokem"))
    repository.text("specs/hf-token.yaml", (DATA / "hf-token.yaml").read_text(encoding="utf-8"))
    compilation = repository.compile()
    (warning,) = compilation.diagnostics
    assert warning.code == "KG0330"
    assert warning.severity.label == "warning"
    assert "`hf-token` has no key `tokem`: the Secret encrypted with SOPS at " in warning.message
    assert "specs/hf-token.yaml:8:1 does not make it" in warning.message
    assert warning.hint == "did you mean `token`?"
    assert warning.mark is not None
    assert (warning.mark.file.rsplit("/", 1)[-1], warning.mark.line) == ("qwen.yaml", 11)
    (secret,) = expected_secrets(compilation)
    assert secret.maker is not None
    assert (secret.maker.source, secret.maker.app) == ("SOPS", "ml/hf-token")


def test_keys_of_a_secret_that_is_read_whole_are_not_checked(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen"))
    whole = {"secretStoreRef": {"name": "vault"}, "dataFrom": [{"extract": {"key": "x"}}]}
    external = {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": "hf-token"},
        "spec": whole,
    }
    repository.write("specs/hf.yaml", external)
    assert repository.compile().diagnostics == ()
    external["spec"] = {**whole, "dataFrom": [], "data": [{"secretKey": "tok", "remoteRef": {"key": "x"}}]}
    repository.write("specs/hf.yaml", external)
    assert [item.code for item in repository.compile().diagnostics] == ["KG0330"]
