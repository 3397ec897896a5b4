"""Any `replicaPower` with any model gives a ring that distributed-llama can run, or an error."""

from __future__ import annotations

import io
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaigen.config.lock_file import Lock, LockedFile, LockedModel, lock_ref
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import compile_specs
from tests.unit.dialects.koldun_case import COMMIT, annotated, converted, dllama

REPO = "Qwen/Qwen3-0.6B"
REJECTED = {"KG0390", "KG0391", "KG0393", "KG0412", "KG0413"}
"""Codes of errors about a ring, its weights and the shape of the model."""


def is_runnable(config: dict[str, Any], weights: str, nodes: int) -> bool:
    """Return whether distributed-llama starts, by the assertions of its code (v0.16.4, `src/nn/nn-core.cpp`)."""
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    queries, keys = heads * config["head_dim"], kv_heads * config["head_dim"]
    width, feed_forward = config["hidden_size"], config["intermediate_size"]
    split = [heads, queries, keys, feed_forward, config["vocab_size"]]
    if config["model_type"] == "qwen3":
        split.append(kv_heads)  # Its heads are normalized, so a node needs whole ones.
    if nodes & (nodes - 1) or nodes > kv_heads or any(size % nodes for size in split):
        return False
    if weights == "f32":
        return True
    # A node's part of a row of q40 weights is whole blocks.
    return not any(size % 32 for size in (width, queries // nodes, feed_forward // nodes))


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a config.json, often of a shape that only some rings can run."""
    kv_heads = draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16]))
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": draw(st.sampled_from(["llama", "mistral", "qwen3"])),
        "hidden_size": draw(st.sampled_from([64, 96, 128, 144, 256])),
        "intermediate_size": draw(st.sampled_from([64, 96, 128, 192, 200, 512, 1024])),
        "num_hidden_layers": 2,
        "num_attention_heads": kv_heads * draw(st.sampled_from([1, 2, 3, 4])),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.sampled_from([8, 16, 24, 32, 64])),
        "vocab_size": draw(st.sampled_from([1000, 1024, 1025, 32000])),
        "max_position_embeddings": 2048,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "torch_dtype": "bfloat16",
    }


FITTING = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
}


def ring(config: dict[str, Any], weights: str, power: int, *, compat: bool) -> int | set[str]:
    """Return the number of pods of a ring, as they are rendered, or the codes of the errors."""
    file = LockedFile(size=1000, sha256="0" * 64)
    model = LockedModel(
        commit=COMMIT,
        architecture="Qwen3ForCausalLM",
        weights=1000,
        config=config,
        files=dict.fromkeys(("config.json", "tokenizer.json", "model.safetensors"), file),
    )
    settings = Config(lock=lock_ref(Lock(models={f"{REPO}@{COMMIT}": model})))
    notes = annotated(compat="true") if compat else {}
    documents = (converted({"conversion": {"weightsFloatType": weights}}), dllama(power, annotations=notes))
    text = yaml.safe_dump_all(documents)
    try:
        apps = compile_specs(["-"], settings, stdin=io.BytesIO(text.encode())).apps
    except InputError as error:
        return {item.code for item in error.diagnostics if item.severity.name == "ERROR"}
    (app,) = (item for item in apps if item.app.name == "chat")
    workload = next(item.body for item in app.objects if item.body["kind"] in {"Deployment", "LeaderWorkerSet"})
    pods: int = workload["spec"].get("leaderWorkerTemplate", {"size": 1})["size"]
    return pods


@settings(max_examples=60, deadline=None)
@given(config=configs(), weights=st.sampled_from(["q40", "f32"]), power=st.integers(-1, 8), compat=st.booleans())
@example(config=FITTING, weights="q40", power=4, compat=False)
@example(config=FITTING, weights="f32", power=8, compat=True)
@example(config=FITTING, weights="q40", power=3, compat=True)
def test_every_replica_power_is_a_ring_that_runs_or_an_error(
    config: dict[str, Any], weights: str, power: int, *, compat: bool
) -> None:
    expected = 1 if power <= 0 else 2 * power if compat else 2**power
    found = ring(config, weights, power, compat=compat)
    if isinstance(found, int):
        assert found == expected
        assert is_runnable(config, weights, found)
    else:
        assert found <= REJECTED
        assert not is_runnable(config, weights, expected)
