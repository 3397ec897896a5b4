"""The JSON Schema in an editor and the models in kaigen accept and reject the same documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.schema import json_schema
from kaigen.kinds.validate import validate_document
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

ROOT = Path(__file__).parents[2]

JUNK: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 64, 65, 2**40, 0.5, -0.5, 1e30),
    *("", "x", "X", "a b", " x", "x\n", "x-", "-x", "x.y", "x_y", "é", "5", "8Gi", "8 Gi", "0.5", "-1", "1e3", ".5Ki"),
    *("1h", "1h30m", "h1", "/p", "/p:q", "p/q", "p//q", "http://h", "https://u@h", "ftp://h", "Always", "restricted"),
    *("ReadWriteMany", "1g.10gb", "true", "kaigen.dev/v1alpha1", "Job", "x" * 54, "x" * 64, "x" * 254, "x" * 2000),
    *([], {}, [1], ["x"], [[]], [{}], {"x": "y"}, {"name": "x"}, {"secret": {"name": "a", "key": "b"}}),
    *({"huggingFace": {"repo": "a/b"}}, {"volume": {"size": 1}}, {"name": "x", "source": {}}, {"profile": "1g.5gb"}),
    {"secret": {"name": "a", "key": "b"}, "config": {"name": "a", "key": "b"}},
]

KEYS = ["x", "name", "spec", "metadata", "source", "volume", "gpus", "image", "huggingFace", "hugging_face", "PARAM"]


def kaigen_accepts(entry: KindEntry, data: Any) -> bool:
    (document,) = parse(Source("spec.json", json.dumps(data)), Diagnostics())
    if find_kind(document.apiVersion, document.kind) is not entry:
        return False
    model, found = validate_document(document, entry)
    assert (model is None) == bool(found)
    return model is not None


def _pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    # In JSON Schema `$` matches only the end of the text; in Python also before a final newline.
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError("pattern")


def _is_integer(_: object, value: object) -> bool:
    # In JSON Schema 2.0 is an integer. YAML and JSON texts distinguish the two, and so does kaigen.
    return isinstance(value, int) and not isinstance(value, bool)


@cache
def _validator(entry: KindEntry) -> Any:
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    strict = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=checker)  # type: ignore[no-untyped-call]
    return strict(json_schema(entry))


def schema_accepts(entry: KindEntry, data: Any) -> bool:
    return bool(_validator(entry).is_valid(data))


@cache
def documents(entry: KindEntry) -> list[Any]:
    """Return every valid document of a kind in the repository."""
    files = [*(ROOT / "tests/chart/specs").rglob("*.yaml"), *(ROOT / "examples").rglob("specs/*.yaml")]
    files.append(ROOT / "tests/property/refused.yaml")
    return [
        document.data
        for file in sorted(files)
        for document in parse(Source(str(file), file.read_text()), Diagnostics())
        if (document.apiVersion, document.kind) == (entry.api_version, entry.kind)
    ]


def nulls(entry: KindEntry, node: Any, path: tuple[str, ...] = ()) -> bool:
    """Whether a field has no value, except in those where the kind allows null."""
    allowed_here = entry.nullable + (entry.empty if node is None else ())
    if any(
        len(allowed) == len(path) and all(step in ("*", own) for step, own in zip(allowed, path, strict=True))
        for allowed in allowed_here
    ):
        return False
    if isinstance(node, dict):
        return any(nulls(entry, value, (*path, key)) for key, value in node.items())
    if isinstance(node, list):
        return any(nulls(entry, value, (*path, "*")) for value in node)
    return node is None


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return the path of every mapping and list."""
    if isinstance(node, dict | list):
        yield path
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(value, (*path, key))


@st.composite
def mutated(draw: st.DrawFn, entry: KindEntry) -> dict[str, Any]:
    """Return a valid document with some fields deleted, renamed, added or changed."""
    document: dict[str, Any] = deepcopy(draw(st.sampled_from(documents(entry))))
    for _ in range(draw(st.integers(1, 3))):
        here: Any = document
        path: tuple[str | int, ...] = draw(st.sampled_from(list(places(document))))
        for step in path:
            here = here[step]
        junk = deepcopy(draw(st.sampled_from(JUNK)))
        if isinstance(here, list):
            if here and draw(st.sampled_from([True, False])):
                here[draw(st.integers(0, len(here) - 1))] = junk
            else:
                here.append(junk)
            continue
        how = draw(st.sampled_from(["delete", "rename", "replace", "replace", "replace", "add"]))
        if how == "add" or not here:
            here[draw(st.sampled_from(KEYS))] = junk
            continue
        key = draw(st.sampled_from(list(here)))
        if how == "replace":
            here[key] = junk
        else:
            value = here.pop(key)
            if how == "rename":
                snake = re.sub("([A-Z])", lambda match: "_" + match[1].lower(), key)
                here[draw(st.sampled_from([f"{key}s", key[1:], key.upper(), snake, *KEYS]))] = value
    return document


kinds = pytest.mark.parametrize("entry", own_kinds(), ids=lambda entry: entry.key)


@kinds
def test_both_accept_valid_documents(entry: KindEntry) -> None:
    found = documents(entry)
    assert found
    for document in found:
        assert kaigen_accepts(entry, document)
        assert schema_accepts(entry, document)


def test_both_accept_the_null_timestamp_of_clusters() -> None:
    entry = next(entry for entry in own_kinds() if entry.system == "ai-operator")
    metadata = {"name": "a", "creationTimestamp": None}
    document = {"apiVersion": entry.api_version, "kind": entry.kind, "metadata": metadata, "spec": {}}
    assert kaigen_accepts(entry, document)
    assert schema_accepts(entry, document)


@pytest.mark.parametrize("entry", [each for each in own_kinds() if each.empty], ids=lambda entry: entry.key)
def test_both_accept_a_block_that_a_system_writes_without_a_value(entry: KindEntry) -> None:
    (path,) = entry.empty
    document = deepcopy(next(each for each in documents(entry) if path[-1] not in each["spec"]))
    assert path == ("spec", path[-1])
    document["spec"][path[-1]] = None
    assert kaigen_accepts(entry, document)
    assert schema_accepts(entry, document)


@kinds
@given(data=st.data())
def test_both_agree_on_mutated_documents(entry: KindEntry, data: st.DataObject) -> None:
    document = data.draw(mutated(entry))
    accepted = kaigen_accepts(entry, document)
    if nulls(entry, document):
        assert not accepted  # A field without a value; the schema of free-form fields allows it.
    else:
        assert accepted == schema_accepts(entry, document)
