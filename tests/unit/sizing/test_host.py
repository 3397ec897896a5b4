"""Memory of the node that flags of vLLM reserve."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.sizing.host import host_parts, in_gib

_GIB = 2**30
_OFFLOADING: dict[str, Any] = {
    "kv_connector": "OffloadingConnector",
    "kv_role": "kv_both",
    "kv_connector_extra_config": {"cpu_bytes_to_use": 20 * _GIB, "block_size": 64},
}
_NIXL: dict[str, Any] = {"kv_connector": "NixlConnector"}
_SIMPLE: dict[str, Any] = {"kv_connector": "SimpleCPUOffloadConnector"}


@pytest.mark.parametrize(
    ("flags", "memory", "shared"),
    [
        ({}, 0, 0),
        ({"kv-offloading-size": 20}, 20, 20),
        ({"kv-offloading-size": "20.5"}, 21, 21),
        ({"kv-offloading-size": 20, "kv-offloading-backend": "lmcache"}, 20, 0),
        ({"kv-transfer-config": _OFFLOADING}, 20, 20),
        ({"kv-transfer-config": '{"kv_connector": "OffloadingConnector"}'}, 0, 0),
        (
            {
                "kv-transfer-config.kv_connector": "OffloadingConnector",
                "kv-transfer-config.kv-connector-extra-config.cpu_bytes_to_use": str(3 * _GIB),
            },
            3,
            3,
        ),
        ({"kv-transfer-config": _SIMPLE}, 8, 0),
        (
            {
                "kv-transfer-config": {
                    "kv_connector": "MultiConnector",
                    "kv_connector_extra_config": {
                        "connectors": [{"kv_connector": "NixlConnector"}, _OFFLOADING, _SIMPLE]
                    },
                }
            },
            28,
            20,
        ),
        ({"cpu-offload-gb": 10}, 40, 0),
        ({"swap-space": 16}, 0, 0),
        ({"kv-offloading-size": "much", "kv-transfer-config": "{", "cpu-offload-gb": True}, 0, 0),
    ],
)
def test_flags_reserve_memory_of_the_node(flags: dict[str, Any], memory: int, shared: int) -> None:
    parts = host_parts(flags, gpus=4, engines=1)
    assert in_gib(parts) == memory
    assert in_gib(part for part in parts if part.shared) == shared


def test_each_copy_of_the_model_has_a_cache_of_its_own() -> None:
    assert in_gib(host_parts({"kv-offloading-size": 20}, gpus=4, engines=2)) == 40
