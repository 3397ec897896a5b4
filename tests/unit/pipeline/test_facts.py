"""The `config.json` that a spec names: found next to the spec, and refused when it is hostile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import Run

CONFIG: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
}

FACTS = {"config": CONFIG, "weights": "14.2Gi"}


def write(root: Path, config: Any, weights: str = "14.2Gi") -> str:
    """Write a spec that names a config; return its path."""
    hub = {"repo": "acme/tuned", "revision": "a" * 40}
    spec = {
        "model": {"huggingFace": hub, "facts": {"config": config, "weights": weights}},
        "resources": {"gpuType": "L4"},
    }
    document = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Topology", "metadata": {"name": "chat"}, "spec": spec}
    folder = root / "specs"
    folder.mkdir(exist_ok=True)
    path = folder / "chat.yaml"
    path.write_text(json.dumps(document))
    return str(path)


def problems(root: Path, path: str) -> list[Diagnostic]:
    """Return the errors of rendering a spec."""
    config = Config(root=root)
    run = Run.load([path], config, use_cache=False)
    if run.load_diagnostics:
        return list(run.load_diagnostics)
    try:
        return [item for item in run.compilation().diagnostics if item.code == "KG1103"]
    except InputError as error:
        return [item for item in error.diagnostics if item.severity is Severity.ERROR]


def problem(root: Path, path: str) -> str:
    ((code, message),) = [(item.code, item.message) for item in problems(root, path)]
    assert code == "KG1103"
    return message


def test_the_file_is_relative_to_the_spec(tmp_path: Path) -> None:
    path = write(tmp_path, "tuned/config.json")
    (tmp_path / "specs" / "tuned").mkdir()
    (tmp_path / "specs" / "tuned" / "config.json").write_text(json.dumps(CONFIG))
    assert problems(tmp_path, path) == []
    # The folder of the specs contains a file that is not a spec.
    config = Config(root=tmp_path)
    assert Run.load([str(tmp_path / "specs")], config, use_cache=False).load_diagnostics == ()


def test_the_content_may_be_in_the_spec(tmp_path: Path) -> None:
    path = write(tmp_path, {**CONFIG, "rope_scaling": None, "text_config": {"head_dim": None}})
    # A null in the copied content means that the model has no such thing.
    messages = [item.message for item in problems(tmp_path, path)]
    assert messages == ["the config has no layers"]
    path = write(tmp_path, {**CONFIG, "rope_scaling": None})
    assert problems(tmp_path, path) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.json", "no such file or directory"),
        ("folder.json", "is a directory"),
        ("pipe.json", "not a regular file"),
        ("link.json", "is outside of the repository"),
        ("../../outside.json", "is outside of the repository"),
        ("/etc/hostname.json", "is outside of the repository"),
        ("config.yaml", "does not end in .json"),
        ("large.json", "is larger than 2 MiB"),
        ("bytes.json", "not a config.json: "),
        ("deep.json", "not a config.json: it is nested too deeply"),
        ("digits.json", "not a config.json: "),
        ("list.json", "not a config.json: it is not a mapping"),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    path = write(root, name)
    folder = root / "specs"
    (tmp_path / "outside.json").write_text(json.dumps(CONFIG))
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "large.json").write_text(json.dumps({**CONFIG, "more": "x" * 2**21}))
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00\xd8")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "digits.json").write_text('{"num_hidden_layers": 1' + "0" * 5000 + "}")
    (folder / "list.json").write_text("[]")
    assert message in problem(root, path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 10**10}, "`num_hidden_layers` of the config is 10000000000, and not"),
        ({"num_hidden_layers": True}, "`num_hidden_layers` of the config is true, and not"),
        ({"hidden_size": 3}, "which do not match"),
        ({"num_hidden_layers": 2, "hybrid_override_pattern": "***"}, "which do not match"),
        ({"num_key_value_heads": 3}, "28 attention heads and 3 KV heads"),
    ],
)
def test_impossible_numbers_are_an_error(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert message in problem(tmp_path, write(tmp_path, {**CONFIG, **changes}))


def test_weights_without_a_size_are_an_error(tmp_path: Path) -> None:
    assert problem(tmp_path, write(tmp_path, CONFIG, "0")) == "the weights have 0 bytes"


def test_facts_have_no_effect_on_a_container(tmp_path: Path) -> None:
    path = Path(write(tmp_path, CONFIG))
    document = json.loads(path.read_text())
    document["spec"] |= {"engine": "container", "image": "own/server:1", "model": {"folder": "/w", "facts": FACTS}}
    path.write_text(json.dumps(document))
    (found,) = problems(tmp_path, str(path))
    assert (found.code, found.message) == ("KG0340", "`facts` has no effect on engine `container`")
