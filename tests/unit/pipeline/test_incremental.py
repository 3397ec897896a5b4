"""Rendering changes gives the same bytes as rendering everything, after any sequence of edits."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.assignments import parse_assignment
from kaigen.config.load import load_config
from kaigen.config.settings import Format
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.output import OutputTree
from kaigen.pipeline.run import Run
from kaigen.system import cache

COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"
NAMES = ("alpha", "beta", "gamma", "delta")


def model(name: str, size: str = "5Gi", **spec: Any) -> dict[str, Any]:
    """A Model."""
    source = {"huggingFace": {"repo": f"org/{name}", "revision": COMMIT}}
    return _document("Model", name, {"source": source, "store": {"volume": {"size": size}}, **spec})


def job(name: str, **spec: Any) -> dict[str, Any]:
    """A Job."""
    return _document("Job", name, {"image": "python:3.12-slim", **spec})


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}


@dataclass(slots=True)
class Repository:
    """A small repository that can be rendered in both ways."""

    root: Path
    specs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    environment: str = ""
    form: Format = "manifests"
    assignments: list[str] = field(default_factory=list)
    compiled: int = 0

    def save(self) -> None:
        """Write the specs and the configuration as they are now."""
        (self.root / "kaigen.yaml").write_text(yaml.safe_dump(self.config), encoding="utf-8")
        folder = self.root / "specs"
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.yaml"):
            if path.name not in self.specs:
                path.unlink()
        for name, documents in self.specs.items():
            text = yaml.safe_dump_all(documents)
            if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text:
                (folder / name).write_text(text, encoding="utf-8")

    def render(self, output: Path, *, use_cache: bool) -> tuple[OutputTree | None, list[str]]:
        """Render and write; return the tree with the warnings, or None with the errors."""
        try:
            config = load_config(self.root, self.environment)
            overrides = [parse_assignment(text) for text in self.assignments]
            run = Run.load((), config, overrides, use_cache=use_cache)
            result = run.tree(output, self.form)
            result.write()
            result.save()
            self.compiled = run.compiled
        except InputError as error:
            return None, [_said(item) for item in error.diagnostics]
        return result, [_said(item) for item in result.diagnostics]


def _said(item: Any) -> str:
    return f"{item.mark} {item.severity.label} {item.code} {item.message} {item.hint} {item.path}"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "repository"
    root.mkdir()
    made = Repository(root)
    made.config = {"namespace": "ml", "environments": {"prod": {"profile": "eks", "namespace": "ml-prod"}}}
    made.specs = {
        "alpha.yaml": [model("alpha")],
        "beta.yaml": [model("beta", source={"huggingFace": {"repo": "org/beta"}}), job("beta-run", model="beta")],
        "gamma.yaml": [job("gamma", model="alpha", params={"samples": 1}, output={"volume": {"size": "1Gi"}})],
        # What it waits for depends on gamma, and so on alpha and on the settings of gamma.
        "served.yaml": [
            _document("Topology", "served", {"engine": "transformers", "model": {"job": {"name": "gamma"}}})
        ],
        "delta.yaml": [job("delta", command=["true"])],
    }
    made.save()
    return made


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Walk:
    """A random walk of edits; each is a thing that happens to a repository between two renders."""

    def __init__(self, repository: Repository, output: Path, rng: random.Random) -> None:
        self.repository = repository
        self.output = output
        self.rng = rng
        self.remember()

    def remember(self) -> None:
        """Keep the repository as it is now, to come back to."""
        now = self.repository
        self.good = deepcopy((now.specs, now.config, now.environment, now.form, now.assignments))

    def back(self) -> None:
        """Restore the last valid state."""
        now = self.repository
        now.specs, now.config, now.environment, now.form, now.assignments = deepcopy(self.good)
        now.save()

    def step(self) -> str:
        """Take one random step, and return its description."""
        steps: list[Callable[[], object]] = [
            self.change_a_field,
            self.change_a_model,
            self.rename,
            self.add,
            self.remove,
            self.move,
            self.break_or_fix,
            self.configure,
            self.override,
            self.edit_an_output,
            self.delete_an_output,
            self.damage_the_cache,
            self.switch,
            self.touch,
            self.nothing,
        ]
        chosen = self.rng.choice(steps)
        detail = chosen()
        self.repository.save()
        return f"{chosen.__name__} {detail or ''}"

    def _spec(self, kind: str = "") -> dict[str, Any]:
        every = [item for items in self.repository.specs.values() for item in items if item.get("spec")]
        fitting = [item for item in every if not kind or item["kind"] == kind]
        return self.rng.choice(fitting or every or [job("spare")])

    def change_a_field(self) -> object:
        spec = self._spec()
        spec["spec"]["retries"] = self.rng.randrange(9)
        return spec["metadata"]["name"]

    def change_a_model(self) -> object:
        spec = self._spec("Model")
        if spec["kind"] == "Model":
            revision = f"{self.rng.randrange(16**6):040x}"
            spec["spec"]["source"] = {"huggingFace": {"repo": "org/other", "revision": revision}}
        return spec["metadata"]["name"]

    def rename(self) -> object:
        spec = self._spec()
        spec["metadata"]["name"] = self.rng.choice([*NAMES, "epsilon", "beta-run"])
        return spec["metadata"]["name"]

    def add(self) -> object:
        name = f"new-{self.rng.randrange(5)}"
        used = self.rng.choice([None, "alpha", "beta", "new-1", "missing"])
        made = self.rng.choice([model(name), job(name, **({"model": used} if used else {}))])
        file = self.rng.choice([f"{name}.yaml", *self.repository.specs])
        self.repository.specs[file] = [*self.repository.specs.get(file, []), made]
        return f"{made['kind']} {name} that uses {used} in {file}"

    def remove(self) -> object:
        file = self.rng.choice(list(self.repository.specs))
        if len(self.repository.specs) > 2:
            del self.repository.specs[file]
        return file

    def move(self) -> object:
        file = self.rng.choice(list(self.repository.specs))
        other = f"moved-{self.rng.randrange(3)}.yaml"
        if other not in self.repository.specs:
            self.repository.specs[other] = self.repository.specs.pop(file)
        return f"{file} to {other}"

    def break_or_fix(self) -> object:
        for items in self.repository.specs.values():
            for item in items:
                if item["spec"].pop("retris", None) is not None:
                    return f"fixes {item['metadata']['name']}"
        spec = self._spec()
        spec["spec"]["retris"] = 1
        return f"breaks {spec['metadata']['name']}"

    def configure(self) -> object:
        key, value = self.rng.choice(
            [
                ("profile", "k3s"),
                ("profile", "generic"),
                ("namespace", "ml"),
                ("namespace", "team"),
                ("values", {"alpha": {"retries": 1}}),
                ("values", {}),
                ("images", {"downloader": "mirror/downloader:1"}),
                ("kubernetes", "1.35"),
                ("registry", "registry.example:5000"),
            ]
        )
        self.repository.config[key] = value
        return f"{key}: {value}"

    def override(self) -> object:
        choices = [[], [], ["alpha.retries=2"], ["delta.retries=0", "gamma.params.samples=7"], ["missing.retries=1"]]
        self.repository.assignments = self.rng.choice(choices)
        return self.repository.assignments

    def _outputs(self) -> list[Path]:
        return sorted(path for path in self.output.rglob("*.yaml") if path.is_file())

    def edit_an_output(self) -> object:
        for path in self._outputs()[:: self.rng.randrange(1, 9)][:1]:
            found = path.stat()
            path.write_bytes(path.read_bytes().replace(b"a", b"b", 1))
            if self.rng.random() < 0.5:
                os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
            return path.name
        return None

    def delete_an_output(self) -> object:
        outputs = self._outputs()
        if outputs:
            self.rng.choice(outputs).unlink()
        if self.rng.random() < 0.2:
            shutil.rmtree(self.output, ignore_errors=True)
        return None

    def damage_the_cache(self) -> object:
        folder = self.repository.root.parent / "cache"
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            return None
        path = self.rng.choice(files)
        data = path.read_bytes()
        damage: list[Callable[[], object]] = [
            path.unlink,
            lambda: path.write_bytes(b""),
            lambda: path.write_bytes(data[: len(data) // 2]),
            lambda: path.write_bytes(b"[]"),
            lambda: path.write_bytes(bytes([*data[:20], data[20] ^ 1, *data[21:]]) if len(data) > 21 else b"{"),
            lambda: shutil.rmtree(folder),
        ]
        self.rng.choice(damage)()
        return path.name

    def switch(self) -> object:
        self.repository.environment = self.rng.choice(["", "", "prod"])
        self.repository.form = self.rng.choice(["manifests", "manifests", "chart", "both"])
        return f"{self.repository.environment} {self.repository.form}"

    def touch(self) -> object:
        file = self.rng.choice(list(self.repository.specs))
        (self.repository.root / "specs" / file).touch()
        return file

    def nothing(self) -> object:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_after_any_edits_the_tree_is_that_of_a_full_render(repository: Repository, tmp_path: Path, seed: int) -> None:
    output, full = tmp_path / "incremental", tmp_path / "full"
    walk = Walk(repository, output, random.Random(seed))
    story = ["the start"]
    written = 0
    for _ in range(20):
        before = tree(output) if output.exists() else {}
        result, said = repository.render(output, use_cache=True)
        whole, wanted = repository.render(full, use_cache=False)
        assert said == wanted, story
        if result is None or whole is None:
            assert result is whole, story
            assert (tree(output) if output.exists() else {}) == before, story
            if walk.rng.random() < 0.7:
                walk.back()
                story.append("back")
                continue
        else:
            assert tree(output) == tree(full), story
            assert list(result.apps) == list(whole.apps), story
            written += 1
            walk.remember()
        story.append(walk.step())
    assert written > 5


def test_a_render_compiles_only_what_changed(repository: Repository, tmp_path: Path) -> None:
    output = tmp_path / "out"

    def compiled() -> int:
        repository.save()
        result, _ = repository.render(output, use_cache=True)
        assert result is not None
        return repository.compiled

    assert compiled() == 5
    assert compiled() == 0
    repository.specs["delta.yaml"] = [job("delta", command=["false"])]
    assert compiled() == 1
    repository.specs["alpha.yaml"] = [model("alpha", "6Gi")]
    assert compiled() == 3, "the Job in gamma.yaml reads it, and served.yaml waits for that Job"
    assert compiled() == 0
    repository.specs["alpha.yaml"][0]["metadata"]["name"] = "omega"
    repository.save()
    assert repository.render(output, use_cache=True)[0] is None, "gamma.yaml refers to nothing now"
    repository.specs["gamma.yaml"] = [job("gamma", model="omega", output={"volume": {"size": "1Gi"}})]
    assert compiled() == 3


def test_a_render_without_changes_writes_nothing(repository: Repository, tmp_path: Path) -> None:
    output = tmp_path / "out"
    repository.render(output, use_cache=True)
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    repository.render(output, use_cache=True)
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == before


def test_the_cache_of_another_kaigen_is_not_used(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    repository.render(output, use_cache=True)
    monkeypatch.setattr("kaigen.pipeline.store.build_id", lambda: "another")
    monkeypatch.setattr("kaigen.system.cache.build_id", lambda: "another")
    result, _ = repository.render(output, use_cache=True)
    assert result is not None
    assert repository.compiled == 5
    result, _ = repository.render(output, use_cache=True)
    assert result is not None
    assert repository.compiled == 0


def test_a_changed_module_makes_another_kaigen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "kaigen"
    package.mkdir()
    module = package / "cache.py"
    module.write_text("old\n", encoding="utf-8")
    monkeypatch.setattr("kaigen.__file__", str(module))
    first = cache.build_id.__wrapped__()
    assert cache.build_id.__wrapped__() == first
    module.write_text("newer\n", encoding="utf-8")
    second = cache.build_id.__wrapped__()
    (package / "more.yaml").write_text("", encoding="utf-8")
    assert len({first, second, cache.build_id.__wrapped__()}) == 3


def test_warnings_of_unchanged_specs_are_reported_again(repository: Repository, tmp_path: Path) -> None:
    output = tmp_path / "out"
    _, first = repository.render(output, use_cache=True)
    result, again = repository.render(output, use_cache=True)
    assert result is not None
    assert repository.compiled == 0
    assert again == first
    assert [line.split()[2] for line in first] == ["KG0310"]


def test_a_second_tree_of_one_repository_is_written_in_full(repository: Repository, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    repository.render(one, use_cache=True)
    result, _ = repository.render(two, use_cache=True)
    assert result is not None
    result, _ = repository.render(one, use_cache=True)
    assert result is not None
    assert repository.compiled == 0
    assert tree(one) == tree(two)
