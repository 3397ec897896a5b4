"""Specs as Python objects, and the notebook and page that show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import kaigen
from kaigen.dialects.registry import find_kind
from kaigen.kinds.block import Block, read_block
from kaigen.kinds.blocks import HuggingFace
from kaigen.kinds.model import ModelSource, ModelSpec
from kaigen.kinds.store import ModelVolume, Store
from tests.notebooks import executed
from tests.specs import QWEN

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "library" / "kaigen.ipynb"


def qwen() -> kaigen.Model:
    return kaigen.Model(
        metadata=kaigen.Metadata(name="qwen"),
        spec=ModelSpec(
            source=ModelSource(
                hugging_face=HuggingFace(
                    repo="Qwen/Qwen2.5-0.5B-Instruct", revision="7ae557604adf67be50417f59c2c2f167def9a775"
                )
            ),
            store=Store(volume=ModelVolume(size="5Gi")),
        ),
    )


def without_source(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files without the name of the spec's file."""
    return {
        path: data.replace(b" from specs.yaml", b"").replace(b" from `specs.yaml`", b"") for path, data in files.items()
    }


def test_an_object_a_dict_and_a_file_render_to_the_same_tree(tmp_path: Path) -> None:
    file = tmp_path / "specs.yaml"
    file.write_text(QWEN, encoding="utf-8")
    rendered = [kaigen.render(item, form="both") for item in (qwen(), yaml.safe_load(QWEN), file, str(file))]
    assert all(without_source(files) == without_source(rendered[0]) for files in rendered)
    assert len(rendered[0]) > 10


EXAMPLES = [
    pytest.param(document, id=f"{path.stem}-{document['metadata']['name']}")
    for path in sorted((ROOT / "examples").glob("*/*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    if document["apiVersion"] == "kaigen.dev/v1alpha1" and document["kind"] != "Config"
]


@pytest.mark.parametrize("document", EXAMPLES)
def test_every_example_means_the_same_as_an_object(document: dict[str, Any]) -> None:
    entry = find_kind(document["apiVersion"], document["kind"])
    assert entry is not None
    block: Block = read_block(entry.model(), document)
    one = kaigen.Run.load(block, use_cache=False)
    other = kaigen.Run.load(document, use_cache=False)
    assert one.load_diagnostics == other.load_diagnostics
    assert [spec.block for spec in one.specs] == [spec.block for spec in other.specs]


def test_examples_are_found() -> None:
    assert len(EXAMPLES) > 10


def test_a_problem_names_the_object_and_its_line() -> None:
    document = yaml.safe_load(QWEN)
    document["spec"]["sorce"] = document["spec"].pop("source")
    diagnostics, files = kaigen.validate([document], use_cache=False)
    assert files == ("<Model qwen>",)
    (first,) = diagnostics
    assert first.mark is not None
    assert (first.mark.file, first.mark.text) == ("<Model qwen>", "  sorce:")
    assert "did you mean `source`?" in kaigen.render_report(diagnostics, "text")


def test_two_objects_of_one_name_are_an_error() -> None:
    with pytest.raises(kaigen.InputError) as caught:
        kaigen.compile_specs([qwen(), qwen()])
    assert {item.code for item in caught.value.diagnostics} == {"KG0302"}


def test_paths_start_from_the_folder_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "repository" / "specs").mkdir(parents=True)
    (tmp_path / "repository" / "specs" / "qwen.yaml").write_text(QWEN, encoding="utf-8")
    (tmp_path / "repository" / "kaigen.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n", encoding="utf-8"
    )
    config = kaigen.load_config(tmp_path / "repository")
    monkeypatch.chdir(tmp_path)
    for inputs in ((), ["specs"], "specs/qwen.yaml", Path("specs/qwen.yaml")):
        run = kaigen.Run.load(inputs, config)
        assert not run.load_diagnostics
        (spec,) = run.specs
        assert spec.source == "specs/qwen.yaml"


def test_an_object_refers_to_specs_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "qwen.yaml").write_text(QWEN, encoding="utf-8")
    job = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "evaluate"},
        "spec": {"image": "python:3.12-slim", "model": "qwen", "command": ["true"]},
    }
    files = kaigen.render(job, kaigen.Config(root=tmp_path))
    assert {path.split("/")[1] for path in files} == {"evaluate"}


def test_the_notebook_runs_and_shows_its_outputs(request: pytest.FixtureRequest) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    done = executed(notebook)
    if request.config.getoption("--update"):
        NOTEBOOK.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        assert done == notebook, "run `pytest --update` and review the outputs"
