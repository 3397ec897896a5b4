"""Blocks of models whose layers keep a state, with and without layers that have attention."""

from __future__ import annotations

import pytest

from kaigen.sizing.engine import blocks_of
from kaigen.sizing.facts import ModelFacts

STATE_BYTES = 64 << 20


@pytest.mark.parametrize("token", [0.0, 1e-9, 512.0])
def test_states_without_attention_take_their_bytes(token: float) -> None:
    facts = ModelFacts(
        name="any",
        weights=1,
        layers=64,
        heads=1,
        kv_heads=1,
        head_dim=1,
        hidden_size=64,
        max_context=4096,
        kv_layers=0,
        state_layers=64,
        state_mib=64,
    )
    blocks = blocks_of(facts, token, 1, 1)
    assert blocks is not None
    assert (blocks.attention, blocks.states) == (0, 1)
    assert STATE_BYTES <= blocks.bytes <= 1.05 * STATE_BYTES
