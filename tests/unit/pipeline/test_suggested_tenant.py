"""Grants that a folder needs: pasted into kaigen.yaml, they let its specs through, and nothing less does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kaigen.config.merge import read_config
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.pipeline.suggested_tenant import suggest_tenant
from kaigen.pipeline.validate import validate
from kaigen.yaml.dump import dump

SPECS = Path(__file__).parents[2] / "chart" / "specs"
VOLUMES = {"drivers": ["*"], "secrets": ["*/*"], "attributes": ["*"], "options": ["*"]}


def config_with(root: Path, profile: str, tenants: object) -> Config:
    text = dump({"profile": profile, "namespace": "ml", "allow": {"volumes": [VOLUMES]}, "tenants": tenants})
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")
    return read_config(root, "")


def errors(config: Config) -> list[str]:
    found, _ = validate((), config, use_cache=False)
    return [each.message for each in found if each.severity is Severity.ERROR]


@pytest.mark.parametrize(
    ("profile", "names"),
    [("generic", ["build", "security", "inputs"]), ("gke", [path.stem for path in (SPECS / "gke").iterdir()])],
)
def test_pasted_grants_are_what_specs_need(tmp_path: Path, profile: str, names: list[str]) -> None:
    (tmp_path / "specs").mkdir()
    for name in names:
        shutil.copy(SPECS / profile / f"{name}.yaml", tmp_path / "specs")
    without = config_with(tmp_path, profile, {})
    assert errors(without) == []
    found = suggest_tenant("team", "specs", [without])
    assert found.denied == ()
    assert errors(config_with(tmp_path, profile, {"team": found.block})) == []
    lists = {field: entries for field, entries in found.block.items() if isinstance(entries, list)}
    runs = [entry for entries in lists.values() for entry in entries if re.search("[-:][0-9a-f]{8,16}$", entry)]
    assert not runs, "the next run has another name"
    for field in lists.keys() - {"folders", "namespaces"} if profile == "gke" else ():
        assert errors(config_with(tmp_path, profile, {"team": {**found.block, field: []}})), field
