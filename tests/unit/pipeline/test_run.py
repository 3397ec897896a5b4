"""Every command gets its results from one run, whether files are compiled or come from the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.config.load import load_config
from kaigen.config.settings import Format
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.output.contents import data_of
from kaigen.pipeline.run import Run
from kaigen.pipeline.unit import Unit
from kaigen.pipeline.units import CachedUnit, FreshUnit
from kaigen.pipeline.validate import validate

WORKSPACE = """\
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: phi}
resource:
  instanceType: Standard_NC24ads_A100_v4
  labelSelector: {matchLabels: {apps: phi}}
inference:
  preset: {name: phi-4-mini-instruct}
  config: phi-config
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: phi-config}
data:
  inference_config.yaml: |
    vllm: {max-model-len: LENGTH}
"""
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: NAME}
spec: {image: "python:3.12-slim", retries: RETRIES}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    (folder / "specs").mkdir(parents=True)
    (folder / "kaigen.yaml").write_text("namespace: default\nprofile: aks\n", encoding="utf-8")
    return folder


def write(repository: Path, name: str, text: str) -> None:
    """Write a spec file."""
    (repository / "specs" / name).write_text(text, encoding="utf-8")


def render(repository: Path, *, use_cache: bool = True) -> tuple[dict[str, bytes], int]:
    """Write the tree to a folder, and return its files and how many sources were compiled."""
    output = repository / ("cached" if use_cache else "whole")
    run = Run.load((), load_config(repository), use_cache=use_cache)
    tree = run.tree(output)
    tree.write()
    tree.save()
    files = {path.relative_to(output).as_posix(): path.read_bytes() for path in output.rglob("*.yaml")}
    return files, run.compiled


def codes(found: list[Diagnostic]) -> list[str]:
    """The codes of diagnostics."""
    return [item.code for item in found]


def test_validate_reports_the_same_from_the_cache(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "two.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    config = load_config(repository)
    first = validate((), config)
    assert codes(first[0]) == ["KG0302"]
    assert validate((), config) == first
    assert validate((), config, use_cache=False) == first


def test_render_uses_what_validate_stored_except_for_the_files(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    assert validate((), load_config(repository))[0] == []
    run = Run.load((), load_config(repository))
    assert run.diagnostics == []
    assert run.compiled == 0
    assert render(repository)[1] == 1
    assert render(repository)[1] == 0
    assert validate((), load_config(repository))[0] == []
    assert render(repository)[1] == 0


def test_an_error_in_one_file_keeps_the_others_in_the_cache(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "two.yaml", JOB.replace("NAME", "two").replace("RETRIES", "many"))
    for compiled in (2, 1):
        run = Run.load((), load_config(repository))
        assert codes(run.diagnostics) == ["KG0202"]
        run.save()
        assert run.compiled == compiled


def test_a_run_of_some_files_keeps_the_summaries_of_the_others(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "two.yaml", JOB.replace("NAME", "two").replace("RETRIES", "1"))
    validate((), load_config(repository))
    validate([str(repository / "specs" / "one.yaml")], load_config(repository))
    run = Run.load((), load_config(repository))
    assert run.diagnostics == []
    assert run.compiled == 0


def test_a_document_in_another_file_is_looked_up_again_when_it_changes(repository: Path) -> None:
    write(repository, "phi.yaml", WORKSPACE)
    seen = []
    for length in ("4096", "8192"):
        write(repository, "settings.yaml", CONFIG_MAP.replace("LENGTH", length))
        files, compiled = render(repository)
        assert compiled >= 1
        assert files == render(repository, use_cache=False)[0]
        assert any(length.encode() in data for data in files.values())
        seen.append(files)
        assert render(repository)[0] == files
    assert seen[0] != seen[1]


def test_a_document_is_reported_when_no_other_file_uses_it_any_more(repository: Path) -> None:
    write(repository, "phi.yaml", WORKSPACE)
    write(repository, "settings.yaml", CONFIG_MAP.replace("LENGTH", "4096"))
    render(repository)
    write(repository, "phi.yaml", WORKSPACE.replace("  config: phi-config\n", ""))
    for use_cache in (True, False):
        assert codes(validate((), load_config(repository), use_cache=use_cache)[0]) == ["KG0213"]


def test_an_unchanged_file_with_plain_objects_keeps_the_specs_in_the_cache(repository: Path) -> None:
    (repository / "kaigen.yaml").write_text("passthrough: true\n", encoding="utf-8")
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "settings.yaml", CONFIG_MAP.replace("LENGTH", "4096"))
    first = render(repository)
    assert first[1] == 2
    again = render(repository)
    assert again == (first[0], 1)
    assert first[0] == render(repository, use_cache=False)[0]


def test_objects_of_an_app_are_freed_when_its_files_are_made(repository: Path) -> None:
    write(repository, "job.yaml", JOB.replace("NAME", "job").replace("RETRIES", "1"))
    run = Run.load((), load_config(repository))
    files = run.files("both")
    assert (run.compiled, [unit.is_compiled for unit in run.units]) == (1, [False])
    assert [len(item.files("both")) for item in run.compilation().apps] == [len(files)]


GITOPS = """\
namespace: default
profile: aks
gitops: {repository: "https://git.example/team/apps.git", argocd: {}, flux: {}}
"""
FORMS: tuple[Format, ...] = ("manifests", "chart", "both")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["nothing", "diagnostics", "rows", "apps", *FORMS])
def test_the_tree_does_not_depend_on_what_the_run_was_asked_before(repository: Path, form: Format, before: str) -> None:
    (repository / "kaigen.yaml").write_text(GITOPS, encoding="utf-8")
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "two.yaml", JOB.replace("NAME", "two").replace("RETRIES", "1"))

    def content(run: Run) -> dict[str, bytes]:
        return {path: data_of(file) for path, file in run.files(form).items()}

    expected = content(Run.load((), load_config(repository), use_cache=False))
    assert any("argocd" in path for path in expected)
    run = Run.load((), load_config(repository), use_cache=False)
    if before == "diagnostics":
        assert run.diagnostics == []
    elif before == "rows":
        assert [row.name for row in run.rows] == ["one", "two"]
    elif before == "apps":
        assert [item.app.name for item in run.apps()] == ["one", "two"]
    elif before != "nothing":
        assert run.files(next(each for each in FORMS if each == before))
    assert content(run) == expected


def test_a_run_of_some_files_finds_the_specs_of_the_others(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "two.yaml", JOB.replace("NAME", "two").replace("RETRIES", "1"))
    run = Run.load([str(repository / "specs" / "one.yaml")], load_config(repository))
    assert [spec.block.metadata.name for spec in run.specs] == ["one"]
    for name in ("one", "default/two", "two"):
        ((unit, position),) = run.find(name)
        assert name.endswith(unit.loaded.specs[position].block.metadata.name)
    assert run.find("three") == []
    assert [item.app.name for item in run.apps()] == ["one"]


def test_a_run_resolves_a_spec_as_it_renders_it(repository: Path) -> None:
    write(repository, "phi.yaml", WORKSPACE.replace("  config: phi-config\n", ""))
    run = Run.load((), load_config(repository))
    (spec,) = run.specs
    resolution = run.resolve(spec)
    assert isinstance(resolution, TopologyResolution)
    assert resolution.sizing.plan is not None
    (item,) = run.apps()
    rendered = str([each.body for each in item.objects])
    for flag, value in resolution.sizing.plan.flags:
        assert f"--{flag}={value}" in rendered


def test_a_file_that_the_cache_knows_is_read_when_its_content_is_needed(repository: Path) -> None:
    write(repository, "one.yaml", JOB.replace("NAME", "one").replace("RETRIES", "1"))
    write(repository, "phi.yaml", WORKSPACE)
    write(repository, "settings.yaml", CONFIG_MAP.replace("LENGTH", "4096"))
    first, _ = render(repository)

    def load() -> dict[str, Unit]:
        run = Run.load((), load_config(repository))
        assert run.diagnostics == []
        return {Path(unit.source.path).stem: unit for unit in run.units}

    units = load()
    # A file of a Kubernetes object does not say whether a spec of another one uses it.
    assert {name: type(unit) for name, unit in units.items()} == {
        "one": CachedUnit,
        "phi": CachedUnit,
        "settings": FreshUnit,
    }
    assert [name for name, unit in units.items() if "parsed" in vars(unit)] == ["settings"]
    assert all(data_of(file) == first[path] for path, file in units["one"].files().items())
    assert "parsed" in vars(units["one"])
    write(repository, "settings.yaml", CONFIG_MAP.replace("LENGTH", "8192"))
    assert {name: type(unit) for name, unit in load().items()} == {
        "one": CachedUnit,
        "phi": FreshUnit,
        "settings": FreshUnit,
    }
