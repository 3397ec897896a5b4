"""The picture of a plan shows every GPU once, and the length of its bars matches their values."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import find_preset, preset_names
from kaigen.sizing.facts import Hardware, Request, facts_of, hardware_of_gpu, hardware_of_instance
from kaigen.sizing.picture import render_svg
from kaigen.sizing.plan import Plan, plan

SVG = "{http://www.w3.org/2000/svg}"


def planned(model: str, hardware: Hardware, **request: Any) -> Plan:
    preset = find_preset(model, BUILT_IN)
    assert preset is not None
    return plan(facts_of(preset), Request(**request), hardware)


def l4(count: int) -> Hardware:
    gpu = get_gpu("L4", BUILT_IN)
    assert gpu is not None
    return hardware_of_gpu(gpu, count)


def on(name: str) -> Hardware:
    instance = find_instance(name, BUILT_IN)
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


def test_every_gpu_has_a_label_with_its_role() -> None:
    labels = texts(planned("phi-4", l4(8)))
    assert [text for text in labels if text.startswith("GPU ")] == [
        f"GPU {gpu}copy {gpu // 2 + 1} part {gpu % 2 + 1}" for gpu in range(8)
    ]


def test_gpus_that_are_left_to_others_are_empty() -> None:
    found = planned("phi-4", l4(8), tensor_parallel=5)
    assert [text for text in texts(found) if "not used" in text] == [f"GPU {gpu}not used" for gpu in (5, 6, 7)]
    assert len(bars(found)["idle"]) == 3
    assert len(bars(found)["weights"]) == 5 + 1


def test_nodes_that_look_the_same_are_drawn_a_few_times() -> None:
    found = planned("deepseek-v3-0324", on("Standard_NC80adis_H100_v5"))
    labels = texts(found)
    assert found.nodes == 5
    assert [text for text in labels if text.startswith("node ")] == ["node 1", "node 2", "node 3", "node 4"]
    assert "and 1 node more alike" in labels
    assert "GPU 1stage 4 part 2" in labels


def test_a_copy_on_one_gpu_needs_no_words() -> None:
    labels = texts(planned("phi-4", on("Standard_NC24ads_A100_v4"), replicas=3))
    assert "GPU 0" in labels
    assert "node" in labels
    assert "1 sequence of 16384 tokens at once, of 13 that would fit, in each of 3 replicas" in labels


def test_a_slice_of_a_gpu_is_called_one() -> None:
    gpu = get_gpu("H100", BUILT_IN)
    assert gpu is not None
    labels = texts(planned("phi-4", hardware_of_gpu(gpu, 1, "4g.40gb")))
    assert "slice 0" in labels
    assert "the fullest slice; dashed: its budget, 35.1 of 39.0 GiB" in labels


@pytest.mark.parametrize("usable", [4.6, 10.0, 19.5, 20.1, 22.0, 79.1, 100.2, 139.8, 275.0])
def test_no_two_numbers_of_the_axis_touch(usable: float) -> None:
    found = planned("phi-4", l4(8))
    found = replace(found, memory=replace(found.memory, usable=usable))
    ends = [188 - 20.0]
    numbers = [
        item
        for item in ElementTree.fromstring(render_svg(found)).iter(f"{SVG}text")
        if re.fullmatch(r"[0-9.]+", item.text or "")
    ]
    assert [numbers[0].text, numbers[-1].text] == ["0", f"{usable:.1f}"]
    for item in numbers:
        # Seven units a digit are a little more than what they take.
        text, width = item.text or "", 7 * len(item.text or "")
        left = float(item.attrib["x"]) - (width if "right" in item.attrib["class"] else width / 2)
        assert left >= ends[-1] + 4, f"{text} touches the number before it"
        ends.append(left + width)
    assert ends[-1] <= 760


def test_a_label_of_three_words_fits_next_to_its_bar() -> None:
    request = {"tensor_parallel": 2, "pipeline_parallel": 2, "data_parallel": 2}
    root = ElementTree.fromstring(render_svg(planned("phi-4", l4(8), **request)))
    assert "GPU 7copy 2 stage 2 part 2" in ["".join(item.itertext()) for item in root.iter(f"{SVG}text")]
    start = min(float(item.attrib["x"]) for item in root.iter(f"{SVG}rect") if item.get("height") == "18")
    assert start >= 32 + 7 * len("GPU 7 copy 2 stage 2 part 2")


def test_a_name_that_is_too_long_keeps_both_ends() -> None:
    preset = find_preset("phi-4", BUILT_IN)
    assert preset is not None
    name = "/models/of/a/company/whose/" + "name-is-long-" * 20_000 + "/Phi-4-tuned/config.json"
    found = plan(replace(facts_of(preset), name=name), Request(), on("Standard_NC24ads_A100_v4"))
    title = texts(found)[0]
    assert title.startswith("/models/of/a/")
    assert title.endswith("/Phi-4-tuned/config.json")
    assert 50 < len(title) < 80
    assert name in ElementTree.fromstring(render_svg(found)).attrib["aria-label"]


@pytest.mark.parametrize("name", preset_names(BUILT_IN))
def test_no_name_of_a_preset_is_shortened(name: str) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    found = planned("phi-4", on("Standard_NC24ads_A100_v4"))
    assert texts(replace(found, facts=facts_of(preset)))[0] == name


def test_a_name_is_text_and_nothing_else() -> None:
    preset = find_preset("phi-4", BUILT_IN)
    assert preset is not None
    facts = replace(facts_of(preset), name='<script>"&')
    text = render_svg(plan(facts, Request(), on("Standard_NC24ads_A100_v4")))
    assert "<script>" not in text
    root = ElementTree.fromstring(text)
    assert root.attrib["aria-label"].startswith('<script>"& on ')


def test_letters_that_no_file_can_hold_are_replaced() -> None:
    preset = find_preset("phi-4", BUILT_IN)
    assert preset is not None
    facts = replace(facts_of(preset), name="a\x00b\ud800c\x1b[31m")
    found = plan(facts, Request(), on("Standard_NC24ads_A100_v4"))
    assert texts(found)[0] == "a\ufffdb\ufffdc\ufffd[31m"
    render_svg(found).encode()
