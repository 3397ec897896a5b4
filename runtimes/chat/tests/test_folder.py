"""Unsupported folders are rejected before PyTorch is imported."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from kaigen_chat import folder
from kaigen_chat.cli import main
from kaigen_chat.errors import BadModel, NotComplete
from kaigen_chat.folder import check_adapter


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a folder that looks like a model until it is loaded."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text('{"model_type": "llama"}')
    (path / "model.safetensors").write_bytes(b"12345")
    return path


def refused(capsys: pytest.CaptureFixture[str], path: object, *flags: str) -> str:
    """The one line that a refusal prints, without the path."""
    assert main(["--model", str(path), *flags], {}) == 3
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line.replace(str(path), "DIR")


def test_a_good_folder_passes(model: Path) -> None:
    folder.check(model, trust_remote_code=False)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth", "last.ckpt"])
def test_pickled_weights_are_refused(model: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (model / "model.safetensors").rename(model / name)
    assert refused(capsys, model) == (
        f"error: DIR has its weights as a pickle ({name}), which can run any code when it is loaded. "
        "Convert them to safetensors\n"
    )


def test_pickles_next_to_safetensors_are_ignored(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"x")
    folder.check(model, trust_remote_code=False)


def test_a_folder_without_weights_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "model.safetensors").unlink()
    (model / "training_args.bin").write_bytes(b"x")
    assert refused(capsys, model) == "error: DIR has no weights: no *.safetensors file in it\n"


def test_a_name_of_a_hub_is_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "Qwen/Qwen3-0.6B") == (
        "error: DIR does not exist. The model must be in a local folder: nothing is fetched from a Hub\n"
    )


def test_a_file_is_no_folder(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, model / "config.json") == "error: DIR is not a folder\n"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "is missing: is DIR the folder of a model?"),
        ("{", "cannot read DIR/config.json"),
        ("[]", "DIR/config.json is not a JSON object"),
    ],
)
def test_a_configuration_that_is_none_is_refused(
    model: Path, capsys: pytest.CaptureFixture[str], config: str | None, message: str
) -> None:
    (model / "config.json").unlink()
    if config is not None:
        (model / "config.json").write_text(config)
    assert message in refused(capsys, model)


def test_code_in_the_folder_is_not_run_unless_allowed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (model / "config.json").write_text('{"auto_map": {"AutoConfig": "evil.Config"}}')
    assert "allow it with --trust-remote-code" in refused(capsys, model)
    folder.check(model, trust_remote_code=True)


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ({"a": "model.safetensors", "b": "model-2.safetensors"}, "is not complete: 1 of its files are missing"),
        ({"a": "../other.safetensors"}, "not a safetensors file in the same folder: ../other.safetensors"),
        ({"a": "pytorch_model.bin"}, "not a safetensors file in the same folder"),
    ],
)
def test_an_index_must_name_files_that_are_there(
    model: Path, capsys: pytest.CaptureFixture[str], shards: dict[str, str], message: str
) -> None:
    index = model / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    assert message in refused(capsys, model)
    index.write_text("{}")
    assert "has no weight_map" in refused(capsys, model)


def test_nothing_is_imported_for_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "/none")
    assert not {"torch", "transformers", "fastapi"} & set(sys.modules)


def mark(model: Path, **more: object) -> None:
    """Writes the downloader's marker."""
    marker = {"schema": 1, "identity": "1d", "files": [{"path": "model.safetensors", "size": 5, "sha256": ""}], **more}
    (model / ".kaigen").mkdir(exist_ok=True)
    draft = model / ".kaigen" / "model.json.new"
    draft.write_text(json.dumps(marker))
    draft.rename(model / ".kaigen" / "model.json")  # in one step, as the downloader does


def test_a_marker_is_believed_when_files_have_their_sizes(model: Path) -> None:
    assert folder.missing(model, "1d") == "there is no marker yet"
    mark(model)
    assert folder.missing(model, "1d") is None
    assert folder.missing(model, folder.ANY) is None
    assert folder.missing(model, "other") == "the marker is of another model or revision"
    (model / "model.safetensors").write_bytes(b"1234")
    assert folder.missing(model, "1d") == "model.safetensors has 4 bytes instead of 5"
    (model / "model.safetensors").unlink()
    assert folder.missing(model, "1d") == "model.safetensors is missing"
    mark(model, schema=2)
    assert folder.missing(model, "1d") == "the marker is of schema 2, which is not known here"
    mark(model, files=7)
    assert folder.missing(model, "1d") == "the marker cannot be read (TypeError)"


def test_waiting_ends_when_the_marker_comes(model: Path) -> None:
    said: list[str] = []
    writer = threading.Timer(0.05, mark, [model])
    writer.start()
    folder.wait(model, "1d", timeout=30, say=said.append, poll=0.01)
    writer.join()
    assert said == [f"waiting for {model}: there is no marker yet"]


def test_waiting_has_an_end(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotComplete, match="is not complete after 0 seconds: there is no marker yet"):
        folder.wait(model, "1d", timeout=0, say=lambda _: None)
    assert main(["--model", str(model), "--await-marker", "any", "--await-timeout", "0s"], {}) == 20
    assert "there is no marker yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "adapter_config.json is missing"),
        ({"adapter_config.json": "{"}, "cannot read"),
        ({"adapter_config.json": '{"peft_type": "IA3"}'}, "an adapter of type IA3: only LoRA"),
        (
            {"adapter_config.json": '{"peft_type": "LORA"}', "adapter_model.bin": ""},
            "has no adapter_model.safetensors. Convert",
        ),
    ],
)
def test_an_adapter_that_cannot_be_loaded_is_rejected(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BadModel, match=message):
        check_adapter(tmp_path)
