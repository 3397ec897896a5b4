"""YAML written by kaigen reads back as the same data with both parsers of PyYAML and with the parser of Helm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaigen.compile.go_json import go_json
from kaigen.yaml.dump import dump, scalar
from tests.differences import assert_same
from tests.strategies import floats, json_values, texts

BATCH = 40
"""Documents per call of Helm: the call takes longer than reading a document."""

any_json = json_values(texts(), nulls=True, exact=False)
mappings = st.dictionaries(texts(), any_json, max_size=4)

TREES: list[Any] = [
    {},
    [],
    "",
    "text",
    "two\nlines",
    0,
    None,
    True,
    1e-5,
    [[]],
    [[[]], [{}], {}, [[1, [2]], [3]]],
    {"a": {}, "b": [], "c": [{}, [], {"d": []}]},
    [{"a": [1, {"b": 2}], "c": 3}, {"d": {"e": "f\n"}}],
    [["first\nsecond\n", "x"], ["\n"], [" \n"], ["\t\n"]],
    {"": {"": ""}, " ": " ", "a: b": "c: d", "? q": "? q", "- d": "- d", "#": "#"},
    {"yes": "no", "1": "2", "1.5": "1e3", "null": "~", "<<": "<<", "=": "=", "0x1": "0o7", "1:30": "2001-01-01"},
    {"script": '#!/bin/sh\nset -e\n\nif x; then\n  echo "{{ y }}"\nfi\n'},
    {"keep": "x\n\n\n", "strip": "x\ny", "clip": "x\ny\n", "lead": "\nx", "spaces": "  x\ny\n", "end": "x \ny"},
    {"cr": "a\rb\r\nc", "tab": "\ta\n\tb", "nel": "a\x85b\u2028c\u2029d", "bom": "\ufeff", "nul": "\0\x07\x1b\x7f"},
    {"long": "word " * 400, "wide": "カ" * 500, "narrow": [["x"] * 3] * 3},
]


def with_pure_parser(text: str) -> Any:
    return yaml.load(text, Loader=yaml.SafeLoader)


def with_libyaml(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


@pytest.mark.parametrize("parse", [with_pure_parser, with_libyaml])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: repr(tree)[:40])
def test_shapes_round_trip(tree: Any, parse: Any) -> None:
    assert_same(parse(dump(tree)), tree)


@given(tree=any_json)
def test_any_tree_round_trips(tree: Any) -> None:
    text = dump(tree)
    assert_same(with_libyaml(text), tree)
    assert_same(with_pure_parser(text), tree)


@given(tree=any_json)
def test_output_is_deterministic_utf8_without_trailing_spaces(tree: Any) -> None:
    text = dump(tree)
    assert dump(tree) == text
    assert text.encode().decode() == text
    assert text.endswith("\n")
    assert not any(line.endswith((" ", "\t")) for line in text.split("\n"))


@given(text=texts(max_size=40))
@example("a" * 300)
def test_a_scalar_is_written_on_one_line(text: str) -> None:
    assert scalar(text).splitlines() == [scalar(text)]


@given(tree=mappings)
def test_keys_keep_their_order(tree: dict[str, Any]) -> None:
    assert list(with_libyaml(dump(tree))) == list(tree)


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a chart that reads every file of its folder `in` as YAML and prints one line of JSON for each."""
    folder = tmp_path_factory.mktemp("go")
    (folder / "templates").mkdir()
    (folder / "in").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: go\nversion: 0.1.0\n")
    (folder / "templates" / "out.yaml").write_text(
        '{{ range $path, $_ := .Files.Glob "in/*" }}\n{{ $.Files.Get $path | fromYaml | toJson }}{{ end }}'
    )
    return folder


def read_by_go(chart: Path, documents: list[str]) -> list[str]:
    """Return each document as Helm reads it, in the JSON of Go."""
    for file in (chart / "in").iterdir():
        file.unlink()
    for number, document in enumerate(documents):
        (chart / "in" / f"{number:04}").write_bytes(document.encode())
    with helm_python.Chart.load(chart) as loaded:
        (output,) = loaded.render({}, name="go", namespace="default").values()
    lines = output.strip("\n").split("\n")
    assert len(lines) == len(documents)
    return lines


@settings(max_examples=15)
@given(trees=st.lists(json_values(texts(), nulls=True), min_size=BATCH, max_size=BATCH))
def test_helm_reads_the_same_data_and_writes_the_json_that_kaigen_hashes(chart: Path, trees: list[Any]) -> None:
    for tree, line in zip(trees, read_by_go(chart, [dump({"v": tree}) for tree in trees]), strict=True):
        assert line == go_json({"v": tree})


def test_helm_reads_shapes_as_the_same_data(chart: Path) -> None:
    for tree, line in zip(TREES, read_by_go(chart, [dump({"v": tree}) for tree in TREES]), strict=True):
        assert line == go_json({"v": tree})


@settings(max_examples=5)
@given(numbers=st.lists(floats() | st.integers(-(2**63), 2**63 - 1), min_size=200, max_size=200))
def test_numbers_are_formatted_as_in_go(chart: Path, numbers: list[float]) -> None:
    (line,) = read_by_go(chart, [dump({"v": numbers})])
    assert json.loads(line)["v"] == pytest.approx(list(map(float, numbers)), rel=0, abs=0)
    assert line == go_json({"v": numbers})


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_values_outside_json_are_rejected(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        go_json([value])
    with pytest.raises(TypeError):
        go_json({"a": {1, 2}})
    with pytest.raises(TypeError):
        dump({"a": {1, 2}})
