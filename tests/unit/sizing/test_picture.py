"""The picture of a plan shows every GPU once, and bars that are as long as what they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import find_preset
from kaigen.sizing.facts import Hardware, Request, facts_of, hardware_of_gpu, hardware_of_instance
from kaigen.sizing.picture import render_svg
from kaigen.sizing.plan import plan
from kaigen.sizing.result import Plan

SVG = "{http://www.w3.org/2000/svg}"


def planned(model: str, hardware: Hardware, **request: Any) -> Plan:
    preset = find_preset(model)
    assert preset is not None
    return plan(facts_of(preset), Request(**request), hardware)


def l4(count: int) -> Hardware:
    gpu = get_gpu("L4")
    assert gpu is not None
    return hardware_of_gpu(gpu, count)


def on(name: str) -> Hardware:
    instance = find_instance(name)
    assert instance is not None
    return hardware_of_instance(instance)


def texts(found: Plan) -> list[str]:
    root = ElementTree.fromstring(render_svg(found))
    return ["".join(item.itertext()) for item in root.iter(f"{SVG}text")]


def bars(found: Plan) -> dict[str, list[float]]:
    """Widths of rectangles by their class."""
    widths: dict[str, list[float]] = {}
    for item in ElementTree.fromstring(render_svg(found)).iter(f"{SVG}rect"):
        widths.setdefault(item.attrib["class"], []).append(float(item.attrib["width"]))
    return widths


def test_each_part_is_as_long_as_it_is_large() -> None:
    found = planned("phi-4", l4(4), tensor_parallel=2, data_parallel=1)
    widths = bars(found)
    memory = found.memory
    parts = {
        "weights": memory.weights,
        "cache": memory.kv_cache,
        "runtime": memory.runtime,
        "activations": memory.activations,
        "free": memory.free,
        "rest": memory.usable - memory.budget,
    }
    whole = sum(widths[name][0] for name in parts)
    for name, gib in parts.items():
        # Four GPUs and one square of the legend.
        assert len(widths[name]) == 5
        assert widths[name][0] == pytest.approx(whole * gib / memory.usable, abs=0.2)


def test_every_gpu_says_what_it_does() -> None:
    told = texts(planned("phi-4", l4(8)))
    assert [text for text in told if text.startswith("GPU ")] == [
        f"GPU {gpu}copy {gpu // 2 + 1} part {gpu % 2 + 1}" for gpu in range(8)
    ]


def test_gpus_that_are_left_to_others_are_empty() -> None:
    found = planned("phi-4", l4(8), tensor_parallel=5)
    assert [text for text in texts(found) if "not used" in text] == [
        f"GPU {gpu}not used" for gpu in (5, 6, 7)
    ]
    assert len(bars(found)["idle"]) == 3
    assert len(bars(found)["weights"]) == 5 + 1


def test_nodes_that_look_the_same_are_drawn_a_few_times() -> None:
    found = planned("deepseek-v3-0324", on("Standard_NC80adis_H100_v5"))
    told = texts(found)
    assert found.nodes == 5
    assert [text for text in told if text.startswith("node ")] == ["node 1", "node 2", "node 3", "node 4"]
    assert "and 1 node more alike" in told
    assert "GPU 1stage 4 part 2" in told


def test_a_copy_on_one_gpu_needs_no_words() -> None:
    told = texts(planned("phi-4", on("Standard_NC24ads_A100_v4"), replicas=3))
    assert "GPU 0" in told
    assert "node, 3 replicas" in told


def test_a_name_is_text_and_nothing_else() -> None:
    preset = find_preset("phi-4")
    assert preset is not None
    facts = replace(facts_of(preset), name='<script>"&')
    text = render_svg(plan(facts, Request(), on("Standard_NC24ads_A100_v4")))
    assert "<script>" not in text
    root = ElementTree.fromstring(text)
    assert root.attrib["aria-label"].startswith('<script>"& on ')
