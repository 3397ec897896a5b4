"""Specs in a repository of their own, compiled together: their objects, and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.pipeline.run import Run, compile_specs

Object = dict[str, Any]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A repository with nothing but its settings."""
    (tmp_path / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n")
    (tmp_path / "specs").mkdir()
    return load_config(tmp_path)


def apps(config: Config, *specs: Object) -> dict[str, dict[tuple[str, str], Object]]:
    """Return the objects of each app, by kind and name."""
    _write(config, specs)
    made = compile_specs((), config)
    return {
        item.app.name: {(each.body["kind"], each.body["metadata"]["name"]): dict(each.body) for each in item.objects}
        for item in made.apps
    }


def codes(config: Config, *specs: Object) -> list[tuple[str, str]]:
    """Return code and field of each error."""
    _write(config, specs)
    found = Run.load((), config, use_cache=False).diagnostics
    return [(item.code, item.path) for item in found if item.severity is Severity.ERROR]


def _write(config: Config, specs: tuple[Object, ...]) -> None:
    (config.root / "specs/all.yaml").write_text("---\n".join(yaml.safe_dump(each) for each in specs))
