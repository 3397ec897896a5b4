"""KAITO's own estimate comes out as KAITO's code computes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import Preset, find_preset
from kaigen.dialects.kaito.estimate import KaitoNode, estimate, estimate_preset, node_of, utilization
from kaigen.sizing.problem import PlanError

VECTORS = json.loads((Path(__file__).parent / "kaito_v0_12.json").read_text(encoding="utf-8"))
SHAPES = {
    "a10x1_24": KaitoNode(24, 1, "A10"),
    "a100x1_80": KaitoNode(80, 1, "A100-80GB-PCIe"),
    "a100x2_160": KaitoNode(160, 2, "A100-80GB-PCIe"),
    "a100x4_320": KaitoNode(320, 4, "A100-80GB-PCIe"),
    "a100x8_640": KaitoNode(640, 8, "A100-80GB"),
    "h100nvlx1_94": KaitoNode(94, 1, "H100-NVL"),
    "h100nvlx2_188": KaitoNode(188, 2, "H100-NVL"),
    "h200x8_1128": KaitoNode(1128, 8, "H200"),
}


def preset(name: str) -> Preset:
    found = find_preset(name, BUILT_IN)
    assert found is not None
    return found


@pytest.mark.parametrize("name", VECTORS["presets"])
def test_the_estimate_of_v0_12_is_kaitos_on_every_shape(name: str) -> None:
    for shape, expected in zip(VECTORS["shapes"], VECTORS["presets"][name], strict=True):
        if expected is None:
            with pytest.raises(PlanError):
                estimate_preset(preset(name), SHAPES[shape])
            continue
        found = estimate_preset(preset(name), SHAPES[shape])
        assert [found.min_gpus, found.nodes, found.tp, found.pp, found.dp] == expected, shape


def test_there_are_vectors_of_the_whole_catalogue() -> None:
    assert len(VECTORS["presets"]) == 60
    assert list(SHAPES) == VECTORS["shapes"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3.1-8b-instruct", [(1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]),
        ("phi-4", [(2, 2), (1, 1), (1, 1), (1, 1), (1, 1)]),
        ("qwen2.5-coder-32b-instruct", [(4, 4), (2, 2), (1, 1), (2, 1), (1, 1)]),
        ("gpt-oss-20b", [(2, 2), (1, 1), (1, 1), (1, 1), (1, 1)]),
        ("gpt-oss-120b", [(8, 8), (3, 3), (2, 1), (3, 1), (2, 1)]),
        ("llama-3.3-70b-instruct", [(9, 9), (3, 3), (2, 1), (3, 1), (2, 1)]),
        ("deepseek-v3-0324", [(39, 39), (11, 11), (9, 5), (11, 2), (6, 1)]),
    ],
)
def test_worked_results_of_v0_12(name: str, expected: list[tuple[int, int]]) -> None:
    sizes = (
        "Standard_NV36ads_A10_v5",
        "Standard_NC24ads_A100_v4",
        "Standard_NC80adis_H100_v5",
        "Standard_ND96isr_H100_v5",
        "Standard_ND96isr_H200_v5",
    )
    for size, wanted in zip(sizes, expected, strict=True):
        instance = find_instance(size, BUILT_IN)
        assert instance is not None
        node = node_of(instance)
        assert node is not None
        found = estimate_preset(preset(name), node)
        assert (found.min_gpus, found.nodes) == wanted, size


def test_later_constants_put_gpt_oss_120b_on_one_node_of_two() -> None:
    node = SHAPES["a100x2_160"]
    assert estimate_preset(preset("gpt-oss-120b"), node).nodes == 2
    assert estimate_preset(preset("gpt-oss-120b"), node, version="v0.12+2302").nodes == 1
    assert (utilization("A10"), utilization("A10", "v0.12+2302"), utilization("L4", "v0.12+2302")) == (0.84, 0.82, 0.92)


def test_later_constants_count_the_state_of_layers_without_attention() -> None:
    node = KaitoNode(24, 1)
    small = estimate(60, 1000, node, version="v0.12+2302")
    assert estimate(60, 1000, node, state=8, version="v0.12+2302").min_gpus > small.min_gpus
    assert estimate(60, 1000, node, state=8) == estimate(60, 1000, node)


def test_a_context_that_leaves_no_room_is_refused_with_the_sum() -> None:
    with pytest.raises(PlanError) as caught:
        estimate(10, 400_000, KaitoNode(24, 1), context=131_072)
    assert caught.value.problem.code == "KG1105"
    assert "51.13 GiB of 20.16" in caught.value.hint


def test_a_preset_from_before_the_estimate_has_none() -> None:
    with pytest.raises(PlanError, match="no numbers for its estimate of llama-2-70b"):
        estimate_preset(preset("llama-2-70b"), SHAPES["a100x8_640"])
    with pytest.raises(PlanError, match="unknown version"):
        estimate_preset(preset("phi-4"), SHAPES["a100x8_640"], version="v0.13")
    nameless = find_instance("g2-standard-4", BUILT_IN)
    assert nameless is not None
    assert node_of(nameless) is None
