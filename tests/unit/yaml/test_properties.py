"""Properties of every text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kaigen.core.json_types import Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.report import render_report
from kaigen.yaml.compose import compose, compose_parts
from kaigen.yaml.document import Document, parse
from kaigen.yaml.document_secrets import find_secrets
from kaigen.yaml.sources import read_sources
from tests.unit.yaml.texts import SPEC, read

# Everything that JSON can hold and kaigen takes: no characters that kustomize loses, no integers beyond 64 bits, finite
# numbers.
_LOST = "\0\x7f\ufffe\uffff" + "".join(map(chr, range(0x80, 0xA0)))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_LOST), max_size=20)
WORDS = st.sampled_from(
    ["yes", "No", "null", "~", "<<", "1e3", "0o7", "0123", "12:30", "- a", "a: b", "#", "'", '"', "\t", "|"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | WORDS
)
JSON = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXT | WORDS, below, max_size=4), max_leaves=12
)

# What texts of YAML are made of, to be put together at random.
PIECES = st.sampled_from(
    [
        *" \n\t:-?,[]{}#|>'\"%@`ab01~\\=/é😀\x85\u2028",
        *("  ", "\n  ", "\n    ", "\r\n", ": ", "- ", "? ", " # ", "&a ", "*a", "|-\n", "key: ", ".5", "yes"),
        *("\\n", "\\u0041", "---\n", "...\n", "{{ x }}", "<<: *a"),
    ]
)
YAMLISH = st.lists(PIECES, max_size=14).map("".join)


class Dumper(yaml.SafeDumper):
    """PyYAML's, which quotes what YAML 1.1 would misread; here also what YAML 1.2 would."""


def represent_text(dumper: Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if text[:1] in "0123456789+-." else None)


Dumper.add_representer(str, represent_text)


def dump(data: Json, flow: bool | None, unicode: bool, width: int) -> str:
    """YAML by PyYAML, which folds YAML 1.1's own line breaks away unless they are escaped."""
    unicode = unicode and not any(char in json.dumps(data, ensure_ascii=False) for char in "\x85\u2028\u2029")
    text: str = yaml.dump(data, Dumper=Dumper, default_flow_style=flow, allow_unicode=unicode, width=width)
    return text


@st.composite
def mutated_specs(draw: st.DrawFn) -> bytes:
    """A good spec with a few bytes put in, taken out or replaced."""
    data = bytearray(SPEC.encode())
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 6)))
        data[start:stop] = draw(st.binary(max_size=4) | PIECES.map(str.encode))
    return bytes(data)


def leaves(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))


@given(st.binary(max_size=200) | mutated_specs() | YAMLISH.map(str.encode), st.sampled_from(["a.yaml", "a.json"]))
def test_no_input_raises_an_exception(data: bytes, name: str) -> None:
    sources, found = read_sources(["-"], root=Path(), stdin=io.BytesIO(data))
    for source in sources:
        named = type(source)(name, source.text)
        for document in parse(named, found):
            found.extend(find_secrets(document))
            for path, _ in leaves(document.data):
                document.mark(path, key=True)
    for output in ("text", "json", "sarif", "github", "junit"):
        render_report(found, output).encode()


def exact(value: Json) -> str:
    """Return a value as text that differs for 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True)


@given(JSON, st.sampled_from([None, False, True]), st.booleans(), st.sampled_from([10, 80, 100_000]))
def test_parsing_reverses_dumping(data: Json, flow: bool | None, unicode: bool, width: int) -> None:
    text = dump(data, flow, unicode, width)
    documents, found = read(text)
    assert found == []
    assert [exact(document.data) for document in documents] == [exact(data)]


@given(JSON, st.sampled_from([None, False, True]), st.booleans())
def test_every_mark_covers_the_text_of_its_value(data: Json, flow: bool | None, unicode: bool) -> None:
    text = dump(data, flow, unicode, 100_000)
    (document,), _ = read(text)
    lines = text.split("\n")
    for path, value in leaves(document.data):
        for key in (False, True):
            mark = document.mark(path, key=key)
            assert mark.text == lines[mark.line - 1]
            shown = mark.text[mark.column - 1 : mark.column - 1 + mark.length]
            meant = path[-1] if key and path and isinstance(path[-1], str) else value
            if isinstance(meant, dict | list) or "\n" in str(meant):
                assert shown.strip()
            else:
                assert read(f"- {shown}\n")[0][0].data in ([meant], [str(meant)])


@given(st.lists(YAMLISH, max_size=4))
def test_composing_document_by_document_gives_the_same_trees(texts: list[str]) -> None:
    text = "---\n".join(texts)
    found = Diagnostics()
    try:
        whole = [tree(node) for node in compose(text)]
    except Exception:
        return
    parts = [tree(node) for _, _, nodes in compose_parts(text) if isinstance(nodes, list) for node in nodes]
    assert [part for part in parts if part != empty(part)] == [part for part in whole if part != empty(part)]
    assert len(found) == 0


def empty(part: object) -> object:
    return part if isinstance(part, tuple) and part[1] == "" and part[2] == part[3] else None


def tree(node: yaml.Node) -> object:
    """Return a tree as plain values: tags, values and positions."""
    seen: set[int] = set()

    def plain(node: yaml.Node) -> object:
        if id(node) in seen:
            return node.start_mark.index
        seen.add(id(node))
        value = node.value
        if isinstance(node, yaml.MappingNode):
            value = [(plain(key), plain(item)) for key, item in node.value]
        elif isinstance(node, yaml.SequenceNode):
            value = [plain(item) for item in node.value]
        end = node.end_mark.index if isinstance(node, yaml.ScalarNode) else 0
        return (node.tag, value, node.start_mark.index, end, node.start_mark.line)

    return plain(node)


def test_the_repr_of_a_document_omits_its_tree() -> None:
    documents, _ = read(SPEC)
    assert isinstance(documents[0], Document)
    assert "ScalarNode" not in repr(documents[0])
