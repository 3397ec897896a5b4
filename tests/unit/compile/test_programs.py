"""Programs of pods: in one ConfigMap for each app, whose name follows its content, and in no command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.compile import finish
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.programs import files
from kaigen.programs.files import FOLDER, program, program_text
from tests.cases import AppCase, Case, app_cases, cases
from tests.unit.compile.specs import objects, topology
from tests.unit.compile.topologies import FOLDER as MODEL


def texts(tree: Any) -> Iterator[str]:
    """Yield every text in a tree."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        yield from (text for node in tree.values() for text in texts(node))
    elif isinstance(tree, list):
        yield from (text for node in tree for text in texts(node))


def commands(container: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the command line of a container, and those of its hooks and probes."""
    yield [*container.get("command", ()), *container.get("args", ())]
    hooks = container.get("lifecycle", {}).values()
    probes = (container.get(f"{name}Probe", {}) for name in ("startup", "readiness", "liveness"))
    yield from (each["exec"]["command"] for each in (*hooks, *probes) if "exec" in each)


def written(case: Case) -> set[str]:
    """Return the texts that the specs of a case contain."""
    paths = [Path(path) for path in case.paths or (case.config.root / "specs",)]
    specs = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.y*ml")))]
    return {text for file in specs for each in yaml.safe_load_all(file.read_text("utf-8")) for text in texts(each)}


def inlined(command: list[str]) -> Iterator[str]:
    """Yield the arguments of a command line that are programs."""
    for before, argument in zip(["", *command], command, strict=False):
        if "\n" in argument or (before.startswith("-") and not before.startswith("--") and before.endswith("c")):
            yield argument


def rendered_containers(app: AppCase) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the pods of an app, each with one of its containers."""
    for template in (each for item in app.compiled.objects for each in pod_templates(item.body)):
        yield from ((template.spec, each.body) for each in containers(template))


def test_no_command_line_contains_a_program_that_the_spec_does_not() -> None:
    own = {case.name: written(case) for case in cases().values()}
    for app in app_cases():
        for _, container in rendered_containers(app):
            for command in commands(container):
                assert set(inlined(command)) <= own[app.case.name], app.name


def test_every_container_that_names_a_program_has_it() -> None:
    seen: set[str] = set()
    for app in app_cases():
        maps = [each.body for each in app.compiled.objects if each.body["kind"] == "ConfigMap"]
        data = {each["metadata"]["name"]: each.get("data", {}) for each in maps}
        for pod, container in rendered_containers(app):
            named = {text.rpartition("/")[2] for text in texts(container) if text.startswith(f"{FOLDER}/")}
            mounts = [each for each in container.get("volumeMounts", ()) if each["mountPath"] == FOLDER]
            assert len(mounts) == bool(named), app.name
            for mount in mounts:
                (volume,) = (each for each in pod["volumes"] if each["name"] == mount["name"])
                assert mount["readOnly"]
                # A pod template of KAITO's has them as annotations.
                items = {each["path"] for each in volume.get("downwardAPI", {}).get("items", ())}
                assert named <= items | data.get(volume.get("configMap", {}).get("name"), {}).keys(), app.name
            seen |= named
    # Envoy reads the programs in Lua as a part of its configuration.
    others = {"__init__.py", "files.py"}
    programs = {path.name for path in Path(files.__file__).parent.glob("*.*") if path.suffix != ".lua"}
    assert seen == programs - others


def test_a_changed_program_makes_new_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> tuple[str, str]:
        found = objects(topology(model=MODEL))
        (volume,) = (
            each["configMap"]["name"]
            for each in found["Deployment"]["spec"]["template"]["spec"]["volumes"]
            if each["name"] == files.VOLUME
        )
        return volume, found["ConfigMap"]["metadata"]["name"]

    before = names()
    assert before[0] == before[1]
    assert names() == before
    monkeypatch.setattr(finish, "program_text", lambda name: program_text(name) + "# changed\n")
    after = names()
    assert after[0] == after[1] != before[0]


def test_an_app_has_only_the_programs_that_it_uses() -> None:
    found = objects(topology(model=MODEL))["ConfigMap"]
    assert set(found["data"]) == {"drain.py", "kaigen_connections.py", "launch.py"}
    assert "ConfigMap" not in objects(topology(model=MODEL, engine="transformers"))


def test_a_path_outside_the_folder_is_not_a_program() -> None:
    assert [*files.programs_in(program("drain.py"))] == ["drain.py"]
    for text in ("/other/drain.py", f"{FOLDER}/other.py", f"{FOLDER}/files.py", f"{FOLDER}/__pycache__", "drain.py"):
        assert [*files.programs_in(text)] == []
