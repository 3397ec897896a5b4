"""`kaigen notebook promote` writes the Model that trains what a notebook of Substratus tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.scaffold.notebook_job import promotion_of, write_promotion
from tests.unit.dialects.substratus_case import COMMIT, model, resource
from tests.unit.scaffold.checkout_case import checkout

CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n"
CONFIG += "dialects: {substratus: {registry: registry.example.com/substratus}}\n"

CONTEXT = f"registry.example.com/train-context@sha256:{'a' * 64}"


def promoted(root: Path, *documents: Any, **options: Any) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """Return the new document, its blank fields and its text, after it was written and validated."""
    (root / "kaigen.yaml").write_text(CONFIG)
    (root / "specs").mkdir(exist_ok=True)
    (root / "specs" / "all.yaml").write_text(yaml.safe_dump_all(documents))
    config = load_config(root)
    made = promotion_of(config, documents[0]["metadata"]["name"], label="main", **options)
    write_promotion(made, config)
    assert made.path == root / "specs" / "model-main.yaml"
    return yaml.safe_load(made.text), made.blank, made.text


@pytest.mark.promise("Substratus", "`model-EPOCH.yaml` is generated with the image")
def test_a_model_of_the_releases_has_what_the_notebook_has(tmp_path: Path) -> None:
    spec = {
        "image": "example.com/notebook:1",
        "model": {"name": "it"},
        "dataset": {"name": "squad"},
        "params": {"epochs": 1},
        "resources": {"gpu": {"count": 1, "type": "nvidia-l4"}},
        "suspend": True,
    }
    squad = resource("Dataset", {"image": "example.com/squad:1"}, "squad")
    document, blank, _ = promoted(
        tmp_path, resource("Notebook", spec), model(), squad, image="example.com/train:1", command=["train.py"]
    )
    assert (document["apiVersion"], document["kind"]) == ("substratus.ai/v1", "Model")
    assert document["metadata"] == {"name": "it-main"}
    assert document["spec"] == {
        "image": "example.com/train:1",
        "command": ["train.py"],
        **{name: spec[name] for name in ("model", "dataset", "resources", "params")},
    }
    assert blank == ()


@pytest.mark.promise("Substratus", "`model-EPOCH.yaml` is generated with the image")
@pytest.mark.promise("Substratus", "`dataset` is left blank with a comment unless the notebook has a single one")
def test_a_model_of_the_design_has_its_shape(tmp_path: Path) -> None:
    notebook = resource("Notebook", {"container": {"image": "example.com/notebook:1"}, "sourceModel": "it"})
    notebook["metadata"]["namespace"] = "research"
    base = model()
    base["metadata"]["namespace"] = "research"
    document, blank, text = promoted(tmp_path, notebook, base)
    assert document["metadata"] == {"name": "it-main", "namespace": "research"}
    assert document["spec"] == {
        "container": {"image": "example.com/notebook:1"},
        "trainer": {"baseModel": {"name": "it"}},
    }
    assert blank == ("dataset",)
    assert text.endswith("    # dataset: {name: DATASET}  # Name the dataset: the notebook has none.\n")


def test_a_built_image_is_built_again(tmp_path: Path) -> None:
    build = {"git": {"url": "https://example.com/train", "commit": COMMIT}}
    document, blank, _ = promoted(tmp_path, resource("Notebook", {"build": build}))
    assert document["spec"] == {"build": build}
    assert blank == ("model", "dataset")


@pytest.mark.promise("Substratus", "`model-EPOCH.yaml` is generated with the just-built image, or with repo and branch")
@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ({"container": {"local": True}}, {"container": {"local": True}, "trainer": {}}),
        ({"build": {"upload": {"md5Checksum": "0" * 32, "requestID": "1"}}},) * 2,
    ],
    ids=["design", "releases"],
)
def test_a_pushed_folder_is_built_again(tmp_path: Path, spec: dict[str, Any], image: dict[str, Any]) -> None:
    notebook = resource("Notebook", spec, build_context=CONTEXT, pod_security="baseline", size="5Gi")
    document, _, _ = promoted(tmp_path, notebook)
    assert document["spec"] == image
    assert document["metadata"]["annotations"] == {
        "kaigen.dev/build-context": CONTEXT,
        "kaigen.dev/pod-security": "baseline",
    }


@pytest.mark.parametrize(
    ("image", "promoted_image"),
    [
        ({"name": "example.com/a:1"}, {"image": "example.com/a:1"}),
        ({"git": {"url": "https://example.com/a", "commit": COMMIT}, "name": "written"},) * 2,
    ],
    ids=["name", "git"],
)
def test_the_block_of_the_first_releases_is_promoted(
    tmp_path: Path, image: dict[str, Any], promoted_image: dict[str, Any]
) -> None:
    expected = promoted_image if "git" not in image else {"build": {"git": image["git"]}}
    document, _, _ = promoted(tmp_path, resource("Notebook", {"image": image}))
    assert document["spec"] == expected


def test_another_image_replaces_a_pushed_folder(tmp_path: Path) -> None:
    notebook = resource("Notebook", {"container": {"local": True}}, build_context=CONTEXT)
    document, _, _ = promoted(tmp_path, notebook, image="example.com/train:1")
    assert document["metadata"] == {"name": "it-main"}
    assert document["spec"]["container"] == {"image": "example.com/train:1"}


@pytest.mark.parametrize(
    ("spec", "field", "branch"),
    [
        ({"container": {"local": True}}, "container", {"ref": "refs/heads/work"}),
        ({"image": "example.com/notebook:1"}, "build", {"branch": "work"}),
    ],
    ids=["design", "releases"],
)
def test_a_local_folder_is_built_from_its_repository_and_branch(
    tmp_path: Path, spec: dict[str, Any], field: str, branch: dict[str, str]
) -> None:
    folder, commit = checkout(tmp_path / "code")
    (tmp_path / "repository").mkdir()
    document, _, _ = promoted(tmp_path / "repository", resource("Notebook", spec), program=folder)
    assert document["spec"][field] == {
        "git": {"url": "https://git.example.com/acme/train.git", **branch, "commit": commit, "path": "images/train"}
    }


def test_a_local_folder_is_no_image_that_trains(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="has kaigen's own image, which trains nothing"):
        promoted(tmp_path, resource("Notebook", {"container": {"local": True}}))
