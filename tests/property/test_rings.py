"""Only rings that the program can run are accepted, by its own assertions written down once more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.sizing.distributed_llama import Shape, shape_of_config
from kaigen.sizing.ring import ring_plan, runnable_nodes, why_not

HEADS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 24, 32])
SIZES = st.one_of(st.integers(1, 4096), st.sampled_from([32, 64, 256, 1024, 3072, 4096, 11008, 14336]))


@st.composite
def configs(draw: st.DrawFn) -> dict[str, object]:
    """Configs of all types of models that the program knows."""
    kind = draw(st.sampled_from(["llama", "mistral", "qwen3", "qwen3_moe"]))
    kv_heads = draw(HEADS)
    config: dict[str, object] = {
        "model_type": kind,
        "hidden_size": draw(SIZES),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": kv_heads * draw(st.sampled_from([1, 2, 4])),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.sampled_from([8, 16, 24, 48, 64, 128])),
        "vocab_size": draw(SIZES),
        "max_position_embeddings": 4096,
        "intermediate_size": draw(SIZES),
    }
    if kind == "qwen3_moe":
        config |= {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": draw(SIZES)}
    return config


def runs(config: dict[str, object], nodes: int, weights: str) -> bool:
    """Return whether the program starts: its checks and assertions in the order of its code."""
    number = {name: value for name, value in config.items() if isinstance(value, int)}
    heads, kv_heads, width = number["num_attention_heads"], number["num_key_value_heads"], number["head_dim"]
    hidden = number.get("moe_intermediate_size", number["intermediate_size"])
    if nodes not in {2**power for power in range(20)} or nodes > kv_heads:
        return False
    for size in (kv_heads * width, heads * width, heads, hidden, number["vocab_size"]):
        if size % nodes != 0:
            return False
    if weights == "q40" and ((heads * width // nodes) % 32 != 0 or (hidden // nodes) % 32 != 0):
        return False
    whole_heads = heads % nodes == 0 and kv_heads % nodes == 0
    return whole_heads if str(config["model_type"]).startswith("qwen3") else True


@settings(max_examples=300, deadline=None)
@given(configs(), st.integers(-1, 40), st.sampled_from(["q40", "f32"]))
def test_a_ring_is_accepted_if_and_only_if_it_runs(config: dict[str, object], nodes: int, weights: str) -> None:
    shape = shape_of_config(config)  # type: ignore[arg-type]
    assert (why_not(shape, nodes, weights) == "") == runs(config, nodes, weights)
    assert runnable_nodes(shape, weights) == [n for n in range(1, 65) if runs(config, n, weights)]


@settings(max_examples=100, deadline=None)
@given(configs(), st.sampled_from(["q40", "f32"]), st.integers(1, 8192))
def test_a_longer_context_needs_more_memory_and_the_same_file(
    config: dict[str, object], weights: str, context: int
) -> None:
    shape = shape_of_config(config)  # type: ignore[arg-type]
    for nodes in runnable_nodes(shape, weights):
        plan, longer = (ring_plan(shape, weights, nodes, each) for each in (context, 2 * context))
        assert longer.root > plan.root
        assert longer.file == plan.file
        assert (plan.worker == 0) == (nodes == 1)


def llama_8b() -> Shape:
    """The shape of Llama 3.1 8B."""
    return shape_of_config(
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
            "max_position_embeddings": 131072,
        }
    )


def test_the_memory_of_a_known_model() -> None:
    """The numbers that distributed-llama's formulas give for Llama 3.1 8B on four nodes."""
    short, whole = ring_plan(llama_8b(), "q40", 4, 4096), ring_plan(llama_8b(), "q40", 4, 131072)
    assert round(short.worker / 2**30, 1) == 1.3
    assert runnable_nodes(llama_8b(), "q40") == [1, 2, 4, 8]
    # The cache alone: 32 layers, keys and values, 256 of 1024 values, 4 bytes.
    assert whole.worker - short.worker > 32 * 2 * 256 * 4 * (131072 - 4096)
    assert round(short.file / 1e9, 2) == 6.32
