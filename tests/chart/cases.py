"""Every app that the chart tests look at: those of `examples/`, and the richer ones of `specs/`.

Nothing is listed by hand: a new example, environment or file of specs is a new case. A folder of `specs/` bears
the name of the profile that its specs are compiled for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kaigen.compile.expressions import Json
from kaigen.config.settings import Config, load_config
from kaigen.emit.chart import chart_files
from kaigen.emit.values import Overrides, effective_values
from kaigen.pipeline.run import Compilation, Compiled, compile_specs, load_specs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SPECS = Path(__file__).parent / "specs"


@dataclass(frozen=True, slots=True)
class Case:
    """Specs that are compiled together.

    Attributes:
        name: for the test's name.
        paths: files and folders; the configured ones when empty.
        config: what they are compiled for.
    """

    name: str
    paths: tuple[str, ...]
    config: Config

    def compile(self, overrides: Sequence[Overrides] = ()) -> Compilation:
        """The case's apps."""
        return compile_specs(load_specs(self.paths, self.config), self.config, overrides)


@dataclass(frozen=True, slots=True)
class AppCase:
    """One app of a case."""

    case: Case
    index: int
    name: str

    @property
    def compiled(self) -> Compiled:
        """The app with the values that its repository gives it."""
        return _compiled(self.case.name)[self.index]

    def effective(self, values: Mapping[str, Any]) -> dict[str, Json]:
        """The app's settings with `values` laid on top of those of its repository."""
        app = self.compiled.app
        return effective_values(app, [*self.case.config.values, {app.name: values}])


@cache
def cases() -> dict[str, Case]:
    """Every case by its name."""
    return {case.name: case for case in [*_repositories(), *_single_examples(), *_rich()]}


@cache
def app_cases() -> list[AppCase]:
    """Every app of every case."""
    return [
        AppCase(case, index, f"{case.name}/{item.app.name}")
        for case in cases().values()
        for index, item in enumerate(_compiled(case.name))
    ]


@cache
def _compiled(name: str) -> tuple[Compiled, ...]:
    return cases()[name].compile().apps


def _repositories() -> Iterator[Case]:
    for file in sorted(EXAMPLES.rglob("kaigen.yaml")):
        name = file.parent.relative_to(EXAMPLES).as_posix()
        environments = yaml.safe_load(file.read_text()).get("environments", {})
        yield Case(name, (), load_config(file.parent))
        for environment in environments:
            yield Case(f"{name}@{environment}", (), load_config(file.parent, environment))


def _single_examples() -> Iterator[Case]:
    repositories = [file.parent for file in EXAMPLES.rglob("kaigen.yaml")]
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        if any(file.is_relative_to(folder) for folder in repositories):
            continue
        name = file.relative_to(EXAMPLES).with_suffix("").as_posix()
        yield Case(name, (str(file),), Config(root=file.parent))


def _rich() -> Iterator[Case]:
    for file in sorted(SPECS.rglob("*.yaml")):
        name = file.relative_to(SPECS).with_suffix("").as_posix()
        yield Case(f"specs/{name}", (str(file),), Config(root=file.parent, profile=file.parent.name))


def write_chart(folder: Path, item: Compiled, values: Mapping[str, Any] | None = None) -> Path:
    """Writes the app's chart, with `values` instead of its own for defaults, and gives the chart's own folder."""
    for path, content in chart_files(item.app, item.values if values is None else values).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder / item.app.namespace / item.app.name / "chart"
