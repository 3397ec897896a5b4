"""What kaigen makes of the first example of KAITO's README, run as it is, but for where the weights lie."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from served import tiny
from served.server import Server
from transformers import FalconConfig, FalconForCausalLM

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "kaito" / "falcon-7b.yaml"


@pytest.fixture
def falcon(tmp_path: Path) -> Path:
    """A model of Falcon's architecture with random weights."""
    torch.manual_seed(1)
    shape = FalconConfig(
        vocab_size=400,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        multi_query=True,
        max_position_embeddings=256,
        initializer_range=0.3,
    )
    FalconForCausalLM(shape).save_pretrained(tmp_path / "falcon")
    tiny.tokenizer().save_pretrained(tmp_path / "falcon")
    return tmp_path / "falcon"


def rendered(folder: Path) -> dict[str, dict[str, Any]]:
    """The objects of the example, by kind."""
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", "--quiet", "render", str(EXAMPLE), "--stdout", "--format", "manifests"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": "off"},
        check=True,
        stdout=subprocess.PIPE,
    )
    return {found["kind"]: found for found in yaml.safe_load_all(done.stdout)}


@pytest.mark.promise("KAITO", "`curl -X POST http://CLUSTERIP/chat` is answered by falcon-7b")
def test_the_service_of_the_quick_start_answers_a_chat(falcon: Path, tmp_path: Path) -> None:
    objects = rendered(tmp_path)
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["kaigen-chat"]
    arguments = dict(argument.split("=", 1) for argument in container["args"])
    (port,) = objects["Service"]["spec"]["ports"]
    (opened,) = container["ports"]
    assert (port["port"], port["targetPort"]) == (80, opened["name"])
    assert arguments.pop("--port") == str(opened["containerPort"])
    arguments.pop("--model")
    flags = [f"{name}={value}" for name, value in arguments.items()]
    with Server(falcon, *flags, "--threads=1") as server:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert server.status(container[probe]["httpGet"]["path"]) == 200
        status, body, _ = server.request("/chat", json.dumps({"prompt": "YOUR QUESTION HERE"}).encode())
        assert status == 200, body
        assert str(json.loads(body)["Result"]).startswith("YOUR QUESTION HERE")
        with server.client() as client:
            assert [model.id for model in client.models.list().data] == ["falcon-7b"]
