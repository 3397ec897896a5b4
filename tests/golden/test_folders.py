"""Kustomize builds the folders of the examples to the objects that kaigen checked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kaigen.config.load import load_config
from tests import plain_yaml
from tests.cases import EXAMPLES, Case, cases
from tests.kustomize import build, in_order


@pytest.mark.parametrize("case", cases().values(), ids=lambda case: case.name)
def test_a_cluster_gets_what_was_checked(kubectl: Path, tmp_path: Path, case: Case) -> None:
    compilation = case.compile()
    for path, content in compilation.files("manifests").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    folders = [str(folder.relative_to(tmp_path)) for folder in tmp_path.glob("*/*/manifests")]
    assert len(folders) == len(compilation.apps)
    # One build for all folders, because starting kubectl takes most of the time.
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": folders}), encoding="utf-8")
    checked = [each.body for item in compilation.apps for each in item.objects]
    assert in_order(build(kubectl, tmp_path)) == in_order(checked)


@pytest.mark.parametrize("environment", load_config(EXAMPLES / "demo").environments)
def test_a_cluster_gets_every_file_of_the_demo(kubectl: Path, environment: str) -> None:
    lists = [*(EXAMPLES / "demo" / "rendered" / environment).rglob("kustomization.yaml")]
    assert lists
    for file in lists:
        assert in_order(build(kubectl, file.parent)) == in_order(listed(file.parent)), file


def listed(folder: Path) -> list[object]:
    """Return the objects in the files that the kustomization of a folder lists, also by those of other folders."""
    found: list[object] = []
    for name in plain_yaml.load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]:
        path = folder / name
        found += listed(path) if path.is_dir() else plain_yaml.load_all(path.read_text(encoding="utf-8"))
    return found
