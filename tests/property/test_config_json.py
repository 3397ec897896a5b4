"""No content of a `config.json` ends in anything but facts that can be planned, or one readable error."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import get_gpu
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.facts import Request, hardware_of_gpu
from kaigen.sizing.plan import Plan, plan
from kaigen.sizing.problem import PlanError

KEYS = (
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "num_kv_heads",
    "multi_query",
    "head_dim",
    "hidden_size",
    "max_position_embeddings",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "sliding_window",
    "sliding_window_pattern",
    "layer_types",
    "hybrid_override_pattern",
    "full_attention_interval",
    "linear_num_value_heads",
    "linear_value_head_dim",
    "mamba_num_heads",
    "mamba_head_dim",
    "ssm_state_size",
    "vocab_size",
    "text_config",
    "quantization_config",
    "torch_dtype",
    "vision_config",
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "M*M*", "*" * 40, "float16", "fp8", "linear_attention"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=6,
)
PLAUSIBLE = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 100),
        "num_attention_heads": st.sampled_from([1, 7, 8, 28, 64]),
        "hidden_size": st.sampled_from([1, 64, 4096]),
        "max_position_embeddings": st.sampled_from([1, 2048, 10**7]),
    }
)


@given(PLAUSIBLE, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8), st.floats(1e-9, 1e30))
@settings(max_examples=300, deadline=None)
def test_any_config_is_planned_or_refused(base: dict[str, Any], more: dict[str, Any], weights: float) -> None:
    found = planned({**base, **more}, weights)
    if isinstance(found, Plan):
        assert found.memory.fits
    else:
        assert str(found)
        assert found.problem.code.startswith("KG11")


def planned(config: dict[str, Any], weights: float) -> Plan | PlanError:
    """Return the plan of a config on eight GPUs, or the error."""
    gpu = get_gpu("H100", BUILT_IN)
    assert gpu is not None
    try:
        return plan(facts_of_config(config, name="any", weights=weights), Request(), hardware_of_gpu(gpu, 8))
    except PlanError as error:
        return error
