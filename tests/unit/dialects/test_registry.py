"""A dialect is one package and one entry of the registry, and its lowering sees every document of the run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from kaigen.config.dialects import Dialects
from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import InputError
from kaigen.dialects import registry
from kaigen.dialects.registry import GROUP, OWN, kinds_of, own_dialects, own_kinds
from kaigen.kinds.block import document_names
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import PATCHABLE, find_entry, import_reference
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import Run, compile_specs
from tests.unit.dialects.throwaway import DIALECT

TASK = {
    "apiVersion": "throwaway.example/v1",
    "kind": "Task",
    "metadata": {"name": "tidy"},
    "spec": {"image": "registry.example/tidy:1"},
}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"depth": "3"}}


def step(task: str, argument: str, **metadata: str) -> dict[str, Any]:
    """A step of a task."""
    return {
        "apiVersion": "throwaway.example/v1",
        "kind": "Step",
        "metadata": {"name": argument, **metadata},
        "spec": {"task": task, "argument": argument},
    }


@pytest.fixture
def throwaway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the throw-away dialect as a line of the registry would."""
    kinds = kinds_of((*own_dialects(), DIALECT))
    monkeypatch.setattr(registry, "own_kinds", lambda: kinds)


def with_settings(name: str) -> dict[str, Any]:
    """The task with a ConfigMap."""
    return {**TASK, "spec": {**TASK["spec"], "settings": name}}  # type: ignore[dict-item]


def compiled(folder: Path, files: Mapping[str, object]) -> Compilation:
    """The apps of files, each with one document."""
    paths = []
    for name, document in files.items():
        (folder / name).write_text(yaml.safe_dump(document))
        paths.append(str(folder / name))
    config = Config(root=folder)
    return compile_specs(paths, config)


def test_every_kind_comes_from_kaigen_or_from_a_registered_dialect() -> None:
    assert kinds_of(()) == BUILTIN_KINDS
    assert kinds_of(own_dialects()) == own_kinds()
    for dialect in own_dialects():
        assert {kind.system for kind in dialect.kinds} == {dialect.name}


def test_the_table_of_dialects_equals_the_entry_points() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"][GROUP] == OWN, "pyproject.toml and OWN list the same entry points"
    assert [dialect.name for dialect in own_dialects()] == [*OWN]


def test_the_settings_of_own_dialects_are_in_the_block_of_the_file() -> None:
    given = {item.name: import_reference(item.settings) for item in own_dialects() if item.settings}
    types = get_type_hints(Dialects)
    assert {name: get_args(types[name])[0] for name in document_names(Dialects)} == given


def test_overrides_patch_the_fields_of_every_kind() -> None:
    assert {name for kind in own_kinds() for name in kind.patchable} == {*PATCHABLE}
    assert {kind.key for kind in own_kinds() if kind.patchable != ("spec",) and not kind.older} == {"kaito.Workspace"}


def test_names_of_kinds_are_unique() -> None:
    assert len({kind.key for kind in own_kinds()}) == len(own_kinds())
    assert len({(kind.api_version, kind.kind) for kind in own_kinds()}) == len(own_kinds())


def test_a_kind_of_a_dialect_that_is_not_registered_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown apiVersion `throwaway\.example/v1`"):
        compiled(tmp_path, {"task.yaml": TASK})


@pytest.mark.usefixtures("throwaway")
def test_a_registered_dialect_is_validated_lowered_and_compiled(tmp_path: Path) -> None:
    assert find_entry("throwaway.example/v1", "Task", registry.own_kinds()) is DIALECT.kinds[0]
    (app,) = compiled(tmp_path, {"task.yaml": TASK}).apps
    assert app.app.kind == "Task of throwaway.example/v1"
    assert "registry.example/tidy:1" in json.dumps([item.body for item in app.objects])


@pytest.mark.usefixtures("throwaway")
def test_errors_of_a_registered_dialect_name_its_fields(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, {"task.yaml": {**TASK, "spec": {"imag": "a"}}})
    assert {item.path for item in caught.value.diagnostics} >= {"spec.imag"}


@pytest.mark.usefixtures("throwaway")
@pytest.mark.parametrize("names", [("a.yaml", "b.yaml"), ("b.yaml", "a.yaml")], ids=["after", "before"])
def test_lowering_consumes_documents_of_other_files(tmp_path: Path, names: tuple[str, str]) -> None:
    compilation = compiled(tmp_path, {names[0]: with_settings("settings"), names[1]: SETTINGS})
    (app,) = compilation.apps
    bodies = [item.body for item in app.objects]
    assert "--depth=3" in json.dumps(bodies)
    assert "ConfigMap" not in {body["kind"] for body in bodies}


@pytest.mark.usefixtures("throwaway")
def test_an_object_of_another_namespace_is_not_found(tmp_path: Path) -> None:
    elsewhere = {**SETTINGS, "metadata": {"name": "settings", "namespace": "elsewhere"}}
    with pytest.raises(InputError, match="no ConfigMap `settings`"):
        compiled(tmp_path, {"a.yaml": with_settings("settings"), "b.yaml": elsewhere})


@pytest.mark.usefixtures("throwaway")
def test_an_object_of_the_same_file_takes_precedence(tmp_path: Path) -> None:
    own = {**SETTINGS, "data": {"depth": "5"}}
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([with_settings("settings"), own]))
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(SETTINGS))
    config = Config(root=tmp_path, passthrough=True)
    compilation = compile_specs([str(tmp_path)], config)
    bodies = json.dumps([item.body for app in compilation.apps for item in app.objects])
    assert "--depth=5" in bodies
    assert "--depth=3" not in bodies


@pytest.mark.usefixtures("throwaway")
def test_documents_of_other_files_join_a_spec(tmp_path: Path) -> None:
    files = {"a.yaml": step("tidy", "one"), "b.yaml": TASK, "c.yaml": step("other", "two")}
    (app,) = compiled(tmp_path, files).apps
    text = json.dumps([item.body for item in app.objects])
    assert '"run", "one"]' in text


@pytest.mark.usefixtures("throwaway")
def test_a_document_that_joined_a_spec_is_not_broken(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([TASK, step("tidy", "one")]))
    config = Config(root=tmp_path)
    (unit,) = Run.load([str(tmp_path)], config, use_cache=False).units
    assert unit.broken == frozenset()


@pytest.mark.usefixtures("throwaway")
def test_a_spec_is_compiled_again_when_documents_join_or_leave_it(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (tmp_path / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\n")
    (specs / "task.yaml").write_text(yaml.safe_dump(TASK))

    def arguments() -> str:
        run = Run.load((), load_config(tmp_path), use_cache=True)
        tree = run.tree(tmp_path / "rendered", "manifests")
        tree.write()
        tree.save()
        (job,) = (tmp_path / "rendered").rglob("job.yaml")
        (pod,) = yaml.safe_load(job.read_text())["spec"]["template"]["spec"]["containers"]
        return " ".join(pod["command"])

    assert arguments() == "run"
    (specs / "step.yaml").write_text(yaml.safe_dump(step("tidy", "one")))
    assert arguments() == "run one"
    (specs / "other.yaml").write_text(yaml.safe_dump(step("tidy", "two")))
    assert arguments() == "run two one"
    (specs / "step.yaml").unlink()
    assert arguments() == "run two"
