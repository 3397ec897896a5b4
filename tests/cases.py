"""The apps of `examples/` and of `tests/chart/specs/`, as test cases.

Nothing is listed by hand: a new example, environment or spec file is a new case. Each folder of `tests/chart/specs/`
is named after the profile its specs are compiled for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.config.value_layers import Overrides
from kaigen.core.json_types import Json
from kaigen.emit.chart import chart_files
from kaigen.emit.values import effective_values
from kaigen.pipeline.result import Compilation, Compiled
from kaigen.pipeline.run import compile_specs, render
from tests import plain_yaml

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SPECS = ROOT / "tests" / "chart" / "specs"


@dataclass(frozen=True, slots=True)
class Case:
    """Specs that are compiled together.

    Attributes:
        name: part of the test's name.
        paths: files and folders; the configured ones when empty.
        config: the configuration they are compiled with.
    """

    name: str
    paths: tuple[str, ...]
    config: Config

    @property
    def is_example(self) -> bool:
        """Whether the specs are below `examples/`."""
        return self.config.root.is_relative_to(EXAMPLES)

    def compile(self, overrides: Sequence[Overrides] = ()) -> Compilation:
        """Return the case's apps."""
        return compile_specs(self.paths, self.config, overrides)

    def render(self) -> dict[str, bytes]:
        """Return the output tree in both forms: content by path."""
        return render(self.paths, self.config, form="both")


@dataclass(frozen=True, slots=True)
class AppCase:
    """One app of a case."""

    case: Case
    index: int
    name: str

    @property
    def compiled(self) -> Compiled:
        """The app with the values its repository sets."""
        return _compiled(self.case.name)[self.index]

    def effective(self, values: Mapping[str, Any]) -> dict[str, Json]:
        """Return the app's settings: `values` on top of those its repository sets."""
        app = self.compiled.app
        return effective_values(app, [*self.case.config.values, {app.name: values}])


@cache
def cases() -> dict[str, Case]:
    """Return every case by name."""
    return {case.name: case for case in [*_repositories(), *_single_examples(), *_rich()]}


@cache
def app_cases() -> list[AppCase]:
    """Return every app of every case."""
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
        environments = plain_yaml.load(file.read_text()).get("environments", {})
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


ANY_VOLUME = Allowed(volumes=(VolumeGrant(drivers=("*",), secrets=("*",), attributes=("*",), options=("*",)),))
"""What kaigen.yaml must allow for specs that use every field."""

REGISTRY = {"substratus": {"registry": "registry.example.com/substratus"}}
"""Where dialects push built images."""


def _rich() -> Iterator[Case]:
    for file in sorted(SPECS.rglob("*.yaml")):
        name = file.relative_to(SPECS).with_suffix("").as_posix()
        yield Case(
            f"specs/{name}",
            (str(file),),
            Config(root=file.parent, profile=file.parent.name, allow=ANY_VOLUME, dialects=REGISTRY),
        )


def write_chart(folder: Path, item: Compiled, values: Mapping[str, Any] | None = None) -> Path:
    """Write the app's chart below `folder` and return the chart's folder.

    Args:
        folder: the root of the output tree.
        item: the app.
        values: the chart's default values, instead of the app's own.
    """
    for path, content in chart_files(item.app, item.values if values is None else values).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder / item.app.namespace / item.app.name / "chart"
