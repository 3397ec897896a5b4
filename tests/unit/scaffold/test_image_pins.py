"""A new version of kaigen on a repository whose images `kaigen upgrade` has pinned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kaigen.catalog import images, yaml_files
from kaigen.config.merge import read_config
from kaigen.pipeline.run import render
from kaigen.scaffold.image_settings import images_to_pin, with_images

EXAMPLES = Path(__file__).parents[3] / "examples"
SPECS = (
    "jobs/built.yaml",
    "jobs/classify.yaml",
    "jobs/tune.yaml",
    "notebooks/research.yaml",
    "topology/one-gpu.yaml",
    "topology/ring.yaml",
    "topology/small-on-cpu.yaml",
)
CONFIG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
namespace: ml
format: both
registry: {mirror: "harbor.example/{host}"}
images: {distributedLlama: "registry.example/distributed-llama:v0.16.4"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    for number, path in enumerate(SPECS):
        shutil.copyfile(EXAMPLES / path, tmp_path / "specs" / f"{number}.yaml")
    (tmp_path / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def rendered(root: Path) -> dict[str, bytes]:
    return render(config=read_config(root, ""))


def install_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change what a release changes: the version, and the tags of engines and tools."""
    table = yaml_files.load("images")
    newer = {name: ref if "{version}" in ref else ref.partition("@")[0] + ".9" for name, ref in table.items()}
    monkeypatch.setattr(images, "__version__", "9.9.9")
    monkeypatch.setattr(yaml_files, "load", lambda name: newer if name == "images" else loaded(name))


loaded = yaml_files.load


def test_another_version_changes_no_object_of_a_repository_with_pinned_images(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rendered(root)
    pins = images_to_pin([read_config(root, "")])
    assert pins.keys() >= {"buildkit", "classify", "downloader", "kubectl", "notebook", "ringproxy", "train", "vllm"}
    (root / "kaigen.yaml").write_text(with_images(root / "kaigen.yaml", pins).new, encoding="utf-8")
    assert rendered(root) == before
    install_another_version(monkeypatch)
    assert rendered(root) == before
    assert not images_to_pin([read_config(root, "")])


def test_images_are_pinned_as_the_tree_has_them_when_the_version_has_changed_already(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rendered(root)
    for path, content in before.items():
        file = root / "rendered" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    install_another_version(monkeypatch)
    assert rendered(root) != before
    pins = images_to_pin([read_config(root, "")])
    (root / "kaigen.yaml").write_text(with_images(root / "kaigen.yaml", pins).new, encoding="utf-8")
    assert rendered(root) == before
