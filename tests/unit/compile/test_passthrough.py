"""The apps of plain Kubernetes objects among the specs."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.passthrough import app_name, is_secret_source, passthrough_app, plain_namespace


@pytest.mark.parametrize(
    ("source", "folders", "name"),
    [
        ("a.yaml", (), "a"),
        ("deep/er/a.yml", (), "a"),
        ("specs/team/a.json", ("specs",), "team-a"),
        ("specs/team/a.json", ("specs/",), "team-a"),
        ("specs/team/a.yaml", ("specs", "specs/team"), "a"),
        ("specs2/a.yaml", ("specs",), "a"),
        ("My File_1.YAML", (), "my-file-1"),
        ("a.yaml.yaml", (), "a-yaml"),
        ("xyaml", (), "xyaml"),
        ("-a-.yaml", (), "a"),
        ("___.yaml", (), "objects"),
        (f"{'a' * 53}.yaml", (), "a" * 53),
        (f"{'a' * 54}.yaml", (), "a" * 53),
        (f"{'a' * 52}-b.yaml", (), "a" * 52),
    ],
)
def test_an_app_has_the_name_of_its_file(source: str, folders: tuple[str, ...], name: str) -> None:
    assert app_name(source, folders) == name


@pytest.mark.parametrize(
    ("stem", "name"),
    [("a", "a-objects"), ("a" * 53, f"{'a' * 45}-objects"), (f"{'a' * 44}-bcd", f"{'a' * 44}-objects")],
)
def test_an_app_whose_name_is_taken_gets_another_of_at_most_53_characters(stem: str, name: str) -> None:
    assert app_name(f"{stem}.yaml", taken={stem}) == name


@pytest.mark.parametrize(
    ("namespaces", "namespace"),
    [
        (["ml"], "ml"),
        (["ml", "ml"], "ml"),
        (["ml", "ai"], "folder"),
        (["ml", None], "folder"),
        ([None], "folder"),
        (["a" * 63], "a" * 63),
        (["a" * 64], "folder"),
        (["../up"], "folder"),
        (["up/.."], "folder"),
    ],
)
def test_the_namespace_of_objects_is_their_own_where_they_agree(namespaces: list[str | None], namespace: str) -> None:
    bodies = [{"metadata": {"namespace": each}} for each in namespaces]
    assert plain_namespace(bodies, "folder") == namespace


@pytest.mark.parametrize(
    ("api_version", "kind", "allowed"),
    [
        ("external-secrets.io/v1", "ExternalSecret", True),
        ("bitnami.com/v1alpha1", "SealedSecret", True),
        ("v1", "Secret", False),
        ("example.com/v1", "SealedSecret", False),
    ],
)
def test_kinds_without_secret_values_may_bring_secrets(api_version: str, kind: str, allowed: bool) -> None:
    assert is_secret_source({"apiVersion": api_version, "kind": kind}) is allowed


def body(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def test_each_object_has_a_role_of_its_own() -> None:
    bodies = [body("ConfigMap", "a"), body("ConfigMap", "A"), body("Role", "system:x.y"), body("ConfigMap", "a")]
    app = passthrough_app("app", "a.yaml", bodies, "ml", "text")
    assert [each.role for each in app.objects] == [
        "configmap-a", "configmap-a-2", "role-system-x.y", "configmap-a-3",
    ]  # fmt: skip
    assert [each.body for each in app.objects] == bodies
    assert (app.name, app.namespace, app.kind, app.source) == ("app", "ml", "Kubernetes", "a.yaml")
    assert (app.settings, app.summary) == ((), "Kubernetes objects copied unchanged from the specs.")


@pytest.mark.parametrize(("source", "ending"), [("a.yaml", "yaml"), ("a.yml", "yaml"), ("A.JSON", "json")])
def test_the_text_of_a_secret_that_sops_encrypted_is_kept(source: str, ending: str) -> None:
    secret = body("Secret", "a", data={"b": "ENC[x]"}, sops={"mac": "ENC[y]", "version": "3.9.0"})
    (kept,) = passthrough_app("app", source, [secret], "ml", "the text").objects
    assert (kept.verbatim, kept.ending) == ("the text", ending)
