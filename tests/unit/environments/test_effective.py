"""An effective spec shows the source of every value."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
import yaml

from kaigen.cli.explain import effective_text
from kaigen.config.load import load_config
from kaigen.explain.effective import effective_spec, leaves
from kaigen.pipeline.run import Run

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("environment", ["", "prod"])
def test_every_value_of_every_spec_of_the_demo_has_an_origin_that_is_there(environment: str) -> None:
    config = load_config(EXAMPLES / "demo", environment)
    specs = Run.load((), config).specs
    assert len(specs) >= 3
    for spec in specs:
        found = effective_spec(spec.block.metadata.name, config)
        assert set(found.origins) == {path for path, _ in leaves(found.document)}
        for path, origin in found.origins.items():
            assert origin, path
            file, _, line = origin.split(" ")[0].rstrip(",").rpartition(":")
            if not origin.startswith(("default of", "dialect ")):
                assert int(line) <= len(Path(file).read_text(encoding="utf-8").splitlines()), origin


@pytest.mark.parametrize("environment", ["", "prod"])
def test_the_text_is_yaml_of_the_same_data(environment: str) -> None:
    config = load_config(EXAMPLES / "demo", environment)
    for spec in Run.load((), config).specs:
        found = effective_spec(spec.block.metadata.name, config)
        first = next(iter(yaml.safe_load_all(effective_text(found, color=False))))
        assert first == found.document
        colored = effective_text(found, color=True)
        assert click.unstyle(colored) == effective_text(found, color=False) != colored


def test_the_line_of_an_origin_holds_the_value(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "demo" / "specs", tmp_path / "specs")
    config = load_config(tmp_path)
    found = effective_spec("qwen", config)
    seen = 0
    for path, value in leaves(found.document):
        file, _, line = found.origins[path].rpartition(":")
        if isinstance(value, str) and line.isdecimal():
            seen += 1
            assert value in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert seen > 5
