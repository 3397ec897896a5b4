"""Kinds of installed packages: real distributions on the path, with entry points."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaigen.emit.chart import chart_files
from tests.unit.extend.packages import install, of_the_page
from tests.unit.extend.repository import SPEC, compiled, compiled_counts, messages, repository

SECTION = "A kind as a Python package"
QUOTA = """\
apiVersion: acme.example/v1
kind: GpuQuota
metadata: {name: search}
spec: {gpus: 8}
"""
MINIMAL = """\
from kaigen.compile.expressions import Release
from kaigen.extend import Part, PythonKind, build_app

def compile_it(document, context, problems):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": Release()}, "data": {"a": document.spec["a"]}}
    return build_app(document.kind, document.metadata, context, problems, [Part("map", body)])

SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "default": "b"}}, "additionalProperties": False}
KIND = PythonKind("plug.example/v1", "Plug", "a plug", compile_it, schema=SCHEMA)
"""
MODEL = """\
from typing import Annotated
from kaigen.extend import PythonKind
from kaigen.kinds.base import Metadata, text
from kaigen.kinds.block import Block

class Spec(Block):
    a: TYPE = "a"

    def __post_init__(self):
        if self.a == "wrong":
            raise ValueError("the package rejects it")

class Plug(Block):
    api_version: str
    kind: str
    metadata: Metadata
    spec: Spec

KIND = PythonKind("plug.example/v1", "Plug", "a plug", lambda *_: None, model=Plug)
"""
PLUG = "apiVersion: plug.example/v1\nkind: Plug\nmetadata: {name: one}\nspec: {}\n"


def model_of(kind: str) -> str:
    """Return the code of a package whose model has a field of a type."""
    return MODEL.replace("TYPE", kind)


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]


def quota_repository(folder: Path, monkeypatch: pytest.MonkeyPatch, spec: str = QUOTA) -> Path:
    """A repository with a document of the kind of docs/extending.md, whose package is installed."""
    project = tomllib.loads(of_the_page("toml", SECTION))["project"]
    install(
        folder, monkeypatch, of_the_page("python", SECTION), project["entry-points"]["kaigen.kinds"], project["name"]
    )
    return repository(folder / "repository", {"kaigen.yaml": "namespace: ml\n", "specs/one.yaml": spec})


def test_the_package_of_the_docs_renders_in_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = compiled(quota_repository(tmp_path, monkeypatch))
    (quota,) = item.objects
    assert quota.body["metadata"]["name"] == "search-gpus"
    assert quota.body["spec"] == {"hard": {"requests.nvidia.com/gpu": 8}}
    chart = chart_files(item.app, item.values)
    assert b"{{ .Values.gpus | toJson }}" in chart["ml/search/chart/templates/quota.yaml"]
    assert item.app.kind == "GpuQuota"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{gpus: 65}", "specs/one.yaml:4:14 e KG0210 gpus must be at most 64, not 65"),
        ("{gpu: 65}", "specs/one.yaml:4:8 e KG0201 unknown field `gpu` (did you mean `gpus`?)"),
        ("{gpus: -1}", "specs/one.yaml:4:14 e KG0208 `gpus` is -1; it must be at least 0"),
    ],
)
def test_documents_of_a_package_kind_are_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, message: str
) -> None:
    assert messages(quota_repository(tmp_path, monkeypatch, QUOTA.replace("{gpus: 8}", spec))) == [message]


def plug(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, point: str = "acme_kaigen:KIND", spec: str = PLUG
) -> list[str]:
    """Return the messages about a document of a package's kind."""
    install(folder, monkeypatch, code, {"plug": point})
    return messages(repository(folder / "repository", {"specs/one.yaml": spec}))


def test_a_package_can_provide_a_schema_instead_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plug(tmp_path, monkeypatch, MINIMAL) == []
    (item,) = compiled(tmp_path / "repository").objects
    assert item.body["data"] == {"a": "b"}


@pytest.mark.parametrize(
    ("code", "point", "message"),
    [
        ("import nothing_of_the_kind\n", "acme_kaigen:KIND", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("x = = 1\n", "acme_kaigen:KIND", "cannot be loaded: SyntaxError"),
        (MINIMAL, "acme_kaigen:KID", "cannot be loaded: AttributeError"),
        (MINIMAL, "acme_kaigen:SCHEMA", "`acme_kaigen:SCHEMA` is a dict, not a PythonKind"),
        (MINIMAL.replace("plug.example/v1", "v1"), "acme_kaigen:KIND", "`v1` is not a group and version"),
        (MINIMAL.replace(", schema=SCHEMA", ""), "acme_kaigen:KIND", "it must have either `model` or `schema`"),
        (MINIMAL.replace("schema=SCHEMA", "model=int"), "acme_kaigen:KIND", "`model` must be a subclass of"),
        (model_of("complex"), "acme_kaigen:KIND", "`model` cannot be used: "),
        (
            model_of("Annotated[str, text('^a$')] | list[str]"),
            "acme_kaigen:KIND",
            "`model` cannot be used: msgspec crashes on a union",
        ),
        (MINIMAL.replace('"object"', '"objct"'), "acme_kaigen:KIND", "not a valid JSON Schema"),
        (MINIMAL.replace("plug.example/v1", "kaigen.dev/v3"), "acme_kaigen:KIND", "is reserved for kaigen"),
    ],
)
def test_an_unusable_package_is_reported_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, point: str, message: str
) -> None:
    found = plug(tmp_path, monkeypatch, code, point)
    assert any("the package acme-kaigen 1.0" in item and message in item for item in found), found


def test_a_model_may_have_rules_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = plug(tmp_path, monkeypatch, model_of("str"), spec=PLUG.replace("{}", "{a: wrong}"))
    assert found == ["specs/one.yaml:4:7 e KG0210 `spec`: the package rejects it"]


def test_a_model_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = model_of("str").replace("raise ValueError", "raise KeyError")
    (found,) = plug(tmp_path, monkeypatch, code, spec=PLUG.replace("{}", "{a: wrong}"))
    assert "acme_kaigen.py:11:13 e KG1011 the kind `Plug` of the package acme-kaigen 1.0 failed: KeyError" in found


def test_a_failing_package_is_reported_with_the_failing_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = plug(tmp_path, monkeypatch, MINIMAL.replace('document.spec["a"]', 'document.spec["z"]'))
    assert "acme_kaigen.py:5:5 e KG1011 the kind `Plug` of the package acme-kaigen 1.0 failed: KeyError: 'z'" in found


def test_a_package_that_returns_no_app_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = plug(tmp_path, monkeypatch, MINIMAL.replace("return build_app", "return str"))
    assert " e KG1011 the kind `Plug` of the package acme-kaigen 1.0 " in found


@pytest.mark.parametrize(
    "code", [MINIMAL.replace("[Part(", "2 * [Part("), MINIMAL.replace('Part("map"', 'Part("kustomization"')]
)
def test_a_package_whose_objects_have_one_file_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    (found,) = plug(tmp_path, monkeypatch, code)
    assert " e KG1011 the kind `Plug` of the package acme-kaigen 1.0 failed" in found
    assert "two objects have the same file" in found


def test_a_broken_package_does_not_affect_other_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "raise SystemError('no')\n", {"plug": "acme_kaigen:KIND"})
    assert messages(repository(tmp_path / "repository")) == []


def test_a_folder_takes_precedence_over_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        monkeypatch,
        MINIMAL.replace("plug.example/v1", "acme.example/v1").replace("Plug", "Thing"),
        {"a": "acme_kaigen:KIND"},
    )
    folder = repository(tmp_path / "repository", {"specs/one.yaml": SPEC})
    assert compiled(folder).objects[0].body["data"] == {"text": "hello"}


def test_documents_of_packages_are_compiled_at_every_render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    plug(tmp_path, monkeypatch, MINIMAL)
    folder = tmp_path / "repository"
    (folder / "specs/two.yaml").write_text(SPEC.replace("one", "two"), encoding="utf-8")
    assert compiled_counts(folder) == [2, 1]
