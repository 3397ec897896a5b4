"""Objects that SOPS or Sealed Secrets encrypted reach the tree, unchanged where required."""

from __future__ import annotations

import pytest
import yaml

from kaigen.compile.passthrough import app_name
from kaigen.diagnostics.errors import InputError
from tests.unit.secrets.repository import DATA, Repository, job, model

SEALED = {
    "apiVersion": "bitnami.com/v1alpha1",
    "kind": "SealedSecret",
    "metadata": {"name": "bucket", "namespace": "ml"},
    "spec": {"encryptedData": {"key": "AgBy3i4OJSWK"}},
}


@pytest.mark.parametrize("ending", ["yaml", "json"])
@pytest.mark.parametrize("form", ["manifests", "chart", "both"])
def test_a_file_of_sops_is_copied_byte_for_byte(repository: Repository, ending: str, form: str) -> None:
    content = (DATA / f"hf-token.{ending}").read_bytes()
    repository.text(f"specs/hf.{ending}", content.decode())
    repository.write("specs/train.yaml", job("train"))
    compilation = repository.compile()
    files = compilation.files(form)  # type: ignore[arg-type]
    path = f"ml/hf/manifests/secret-hf-token.{ending}"
    assert files[path] == content
    listed = yaml.safe_load(files["ml/hf/manifests/kustomization.yaml"])["resources"]
    assert listed == [f"secret-hf-token.{ending}"]
    assert not any(path.startswith("ml/hf/chart/") for path in files)
    assert content.decode().removesuffix("\n") in compilation.stream()


def test_a_sops_secret_in_a_chart_is_a_warning(repository: Repository) -> None:
    repository.configure(format="chart")
    repository.text("specs/hf.yaml", (DATA / "hf-token.yaml").read_text(encoding="utf-8"))
    (warning,) = repository.compile().diagnostics
    assert (warning.code, warning.severity.label) == ("KG0610", "warning")


def test_a_sealed_secret_passes_and_is_checked(repository: Repository) -> None:
    repository.write("specs/bucket.yaml", SEALED)
    files = repository.files("both")
    text = files["ml/bucket/manifests/sealedsecret-bucket.yaml"]
    assert yaml.safe_load(text) == SEALED
    assert "ml/bucket/chart/templates/sealedsecret-bucket.yaml" in files
    repository.write("specs/bucket.yaml", {**SEALED, "spec": {"encryptedDatas": {}}})
    with pytest.raises(InputError) as caught:
        repository.compile()
    assert {item.code for item in caught.value.diagnostics} == {"KG0504", "KG0505"}


def test_other_plain_objects_need_passthrough(repository: Repository) -> None:
    repository.write("specs/map.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    with pytest.raises(InputError) as caught:
        repository.compile()
    assert [item.code for item in caught.value.diagnostics] == ["KG0213"]


@pytest.mark.parametrize("passthrough", [False, True])
def test_a_secret_with_plain_values_is_refused_even_with_passthrough(repository: Repository, passthrough: bool) -> None:
    repository.configure(passthrough=passthrough)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"a": "b"}}
    repository.write("specs/x.yaml", secret)
    with pytest.raises(InputError) as caught:
        repository.compile()
    assert [item.code for item in caught.value.diagnostics] == ["KG0151"]


def test_a_sops_file_with_other_documents_is_refused(repository: Repository) -> None:
    text = (DATA / "hf-token.yaml").read_text(encoding="utf-8")
    repository.text("specs/hf.yaml", f"{text}---\n{yaml.safe_dump(SEALED)}")
    with pytest.raises(InputError) as caught:
        repository.compile()
    assert [item.code for item in caught.value.diagnostics] == ["KG0153"]


def test_plain_objects_next_to_a_spec_form_their_own_app(repository: Repository) -> None:
    repository.write("specs/qwen.yaml", model("qwen", "bucket", "key"), SEALED)
    assert [item.app.name for item in repository.compile().apps] == ["qwen", "qwen-objects"]


def test_files_of_one_name_in_two_folders_are_two_apps(repository: Repository) -> None:
    other = {**SEALED, "metadata": {"name": "other", "namespace": "ml"}}
    repository.write("specs/team-a/secrets.yaml", SEALED)
    repository.write("specs/team-b/secrets.yaml", other)
    assert [item.app.name for item in repository.compile().apps] == ["team-a-secrets", "team-b-secrets"]
    repository.write("specs/team/a.yaml", {**SEALED, "metadata": {"name": "third", "namespace": "ml"}})
    repository.write("specs/team-a.yaml", {**SEALED, "metadata": {"name": "fourth", "namespace": "ml"}})
    with pytest.raises(InputError) as caught:
        repository.compile()
    (found,) = caught.value.diagnostics
    assert found.code == "KG0302"
    assert "is `team-a`" in found.message


def test_the_folder_is_the_namespace_that_the_objects_name(repository: Repository) -> None:
    repository.write("specs/a.yaml", {**SEALED, "metadata": {"name": "a", "namespace": "lab"}})
    repository.write("specs/b.yaml", {**SEALED, "metadata": {"name": "b"}})
    assert [item.app.namespace for item in repository.compile().apps] == ["lab", "ml"]


def test_a_hostile_namespace_is_refused(repository: Repository) -> None:
    repository.write("specs/a.yaml", {**SEALED, "metadata": {"name": "a", "namespace": "../../etc"}})
    try:
        paths = list(repository.files())
    except InputError:
        return
    assert all(path.startswith("ml/") for path in paths)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("specs/a.yaml", "a"),
        ("specs/Team A/My_Secrets.enc.YML", "team-a-my-secrets-enc"),
        ("elsewhere/deep/a.json", "a"),
        ("specs/***.yaml", "objects"),
        ("", "objects"),
        ("specs/taken.yaml", "taken-objects"),
        (f"specs/{'x' * 80}.yaml", "x" * 53),
    ],
)
def test_the_name_of_a_file_s_app(source: str, name: str) -> None:
    assert app_name(source, ("specs",), {"taken"}) == name
