"""Overrides and pins come out the same when only what changed is rendered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.config.pins import pins_text
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import Run

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: {name}, labels: {{team: {team}}}}}
spec:
  source: {{huggingFace: {{repo: org/{name}, revision: "{commit}"}}}}
  store: {{volume: {{size: 5Gi}}}}
"""
CONFIG = """\
namespace: ml
environments:
  prod:
    overrides:
      - match: {labels: {team: red}}
        spec: {store: {volume: {size: 20Gi}}}
      - match: {app: gamma}
        spec: {retries: 2}
"""
TEAMS = {"alpha": "red", "beta": "blue", "gamma": "red"}
COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"


@dataclass(frozen=True, slots=True)
class Repository:
    """Three Models, rendered for prod with and without a cache."""

    root: Path

    def config(self, text: str) -> None:
        (self.root / "kaigen.yaml").write_text(text, encoding="utf-8")

    def spec(self, name: str, team: str, commit: str = COMMIT) -> None:
        text = SPEC.format(name=name, team=team, commit=commit)
        (self.root / "specs" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def pins(self, **commits: str) -> None:
        path = self.root / "pins" / "prod.yaml"
        path.parent.mkdir(exist_ok=True)
        apps = {name: {"spec.source.huggingFace.revision": commit} for name, commit in commits.items()}
        path.write_text(pins_text(apps, {}), encoding="utf-8")

    def render(self) -> tuple[set[str], list[str]]:
        """Return the apps whose files changed, and the warnings; check that both ways of rendering agree."""
        before = self._tree("kept")
        reported = [self._render("kept", use_cache=True), self._render("whole", use_cache=False)]
        assert reported[0] == reported[1]
        after = self._tree("kept")
        assert after == self._tree("whole")
        changed = {path for path in before | after if before.get(path) != after.get(path)}
        return {path.split("/")[1] for path in changed if "/" in path}, reported[0]

    def _render(self, output: str, *, use_cache: bool) -> list[str]:
        config = load_config(self.root, "prod")
        try:
            result = Run.load((), config, use_cache=use_cache).tree(self.root / output)
        except InputError as error:
            return [_said(item) for item in error.diagnostics]
        result.write()
        result.save()
        return [_said(item) for item in result.diagnostics]

    def _tree(self, output: str) -> dict[str, bytes]:
        folder = self.root / output
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _said(item: Diagnostic) -> str:
    place = Path(item.mark.file).name if item.mark else ""
    return f"{place}:{item.mark.line if item.mark else 0} {item.code} {item.message}"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "repository" / "specs").mkdir(parents=True)
    made = Repository(tmp_path / "repository")
    made.config(CONFIG)
    for name, team in TEAMS.items():
        made.spec(name, team)
    assert made.render() == (set(TEAMS), [])
    assert made.render() == (set(), [])
    return made


def test_a_changed_override_renders_only_the_matching_apps_again(repository: Repository) -> None:
    repository.config(CONFIG.replace("20Gi", "30Gi"))
    assert repository.render() == ({"alpha", "gamma"}, [])
    repository.config(CONFIG.replace("20Gi", "30Gi").replace("retries: 2", "retries: 3"))
    assert repository.render() == ({"gamma"}, [])


def test_a_spec_that_gets_another_label_gets_other_overrides(repository: Repository) -> None:
    repository.spec("beta", "red")
    assert repository.render() == ({"beta"}, [])
    repository.spec("gamma", "blue")
    assert repository.render() == ({"gamma"}, [])


def test_an_override_that_no_longer_matches_is_reported_though_its_line_did_not_change(repository: Repository) -> None:
    for name in ("alpha", "gamma"):
        repository.spec(name, "blue")
    reported = ["kaigen.yaml:5 KG0709 this override matches no spec"]
    assert repository.render() == ({"alpha", "gamma"}, reported)
    assert repository.render() == (set(), reported)
    repository.config(f"# A comment\n{CONFIG}")
    assert repository.render() == (set(), ["kaigen.yaml:6 KG0709 this override matches no spec"])
    (repository.root / "specs" / "gamma.yaml").unlink()
    assert repository.render()[1][-1] == "kaigen.yaml:8 KG0707 no app `gamma` to override"


def test_pins_render_only_the_apps_that_they_change(repository: Repository) -> None:
    repository.pins(alpha=COMMIT, beta=COMMIT)
    assert repository.render() == (set(), [])
    repository.spec("alpha", "red", "1" * 40)
    repository.spec("gamma", "red", "1" * 40)
    assert repository.render() == ({"gamma"}, [])
    repository.pins(alpha="1" * 40, beta=COMMIT, delta=COMMIT)
    reported = ["prod.yaml:10 KG0713 `delta` is pinned, but no app has this name"]
    assert repository.render() == ({"alpha"}, reported)
    assert repository.render() == (set(), reported)


def test_a_warning_of_a_patched_value_moves_with_its_line(repository: Repository) -> None:
    text = CONFIG.replace("{retries: 2}", "{source: {huggingFace: {revision: main}}}")
    repository.config(text)
    changed, reported = repository.render()
    assert changed == {"gamma"}
    assert [line.split(" ")[:2] for line in reported] == [["kaigen.yaml:8", "KG0310"]]
    repository.config(f"# A comment\n{text}")
    changed, reported = repository.render()
    assert changed == set()
    assert [line.split(" ")[:2] for line in reported] == [["kaigen.yaml:9", "KG0310"]]
