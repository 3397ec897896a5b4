"""Merge patches mean what RFC 7396 says, and places stay known through them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diagnostics.collector import Diagnostics
from kaigen.environments.patch import Entries, FileEntry, Layer, PatchedDocument, merge, reach
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

# The table of RFC 7396, appendix A: original, patch, result.
EXAMPLES = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]

SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.sampled_from(["x", "y", "5Gi"]))
KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.one_of(st.none(), SCALARS),
    lambda inner: st.one_of(st.dictionaries(KEYS, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=3)


@pytest.mark.parametrize(("original", "patch", "result"), EXAMPLES)
def test_a_patch_follows_the_rfc(original: str, patch: str, result: str) -> None:
    assert merge(json.loads(original), json.loads(patch)) == json.loads(result)


def _by_the_rfc(target: Any, patch: Any) -> Any:
    """The pseudocode of section 2, word by word."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        for name, value in patch.items():
            if value is None:
                if name in target:
                    del target[name]
            else:
                target[name] = _by_the_rfc(target.get(name), value)
        return target
    return patch


@given(VALUES, VALUES)
def test_any_patch_follows_the_rfc_and_changes_neither_side(target: Any, patch: Any) -> None:
    before = json.dumps([target, patch])
    result = merge(target, patch)
    assert json.dumps([target, patch]) == before
    assert result == _by_the_rfc(json.loads(json.dumps(target)), patch)


def test_an_entry_of_a_list_can_be_patched_where_there_is_one() -> None:
    patch = {"roles": Entries({1: {"image": "b"}, 7: {"image": "c"}})}
    roles = [{"image": "x"}, {"image": "y", "n": 1}]
    assert merge({"roles": roles}, patch) == {"roles": [{"image": "x"}, {"image": "b", "n": 1}]}
    assert merge({"roles": "none"}, patch) == {"roles": "none"}


def document(path: str, data: Any) -> Document:
    """A document with each value on a line of its own."""
    (found,) = parse(Source(path, yaml.safe_dump(data)), Diagnostics())
    return found


def patched(folder: Path, data: Any, *patches: Any) -> PatchedDocument:
    """Return a document with patches in files of their own."""
    layers = []
    for number, patch in enumerate(patches):
        file = folder / f"{number}.yaml"
        file.write_text(yaml.safe_dump({"patch": patch}), encoding="utf-8")
        layers.append(Layer(patch, FileEntry(file, ("patch",))))
    return PatchedDocument(document("spec.yaml", data), tuple(layers), ())


def everything(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Every value of a tree, by its path."""
    found = [(path, node)]
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += everything(value, (*path, key))
    return found


@given(MAPPINGS, MAPPINGS, MAPPINGS)
def test_every_value_is_found_where_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: Any, first: Any, second: Any
) -> None:
    whole = patched(tmp_path_factory.mktemp("patches"), {"spec": data}, {"spec": first}, {"spec": second})
    for path, value in everything(whole.data):
        mark = whole.mark(path)
        layer = whole.layer(path)
        if layer is None:
            assert mark.file == "spec.yaml"
            there, steps = reach(whole.base.data, path)
        else:
            assert mark.file == str(layer.place.file)
            there, steps = reach(layer.patch, path)
        assert steps == len(path)
        # A mapping may have got members from further patches; everything else is unchanged.
        assert isinstance(value, dict) if isinstance(there, dict) else value == there


def test_a_removed_field_is_located_at_its_removal(tmp_path: Path) -> None:
    whole = patched(tmp_path, {"spec": {"a": {"b": 1}}}, {"spec": {"a": {"b": None}}})
    assert whole.data == {"spec": {"a": {}}}
    assert list(whole.removed()) == [("spec", "a", "b")]
    assert whole.mark(("spec", "a", "b")).text.strip() == "b: null"


def test_a_field_that_is_added_again_is_not_removed(tmp_path: Path) -> None:
    whole = patched(tmp_path, {"spec": {"a": 1}}, {"spec": {"a": None}}, {"spec": {"a": 2}})
    assert list(whole.removed()) == []
    assert whole.mark(("spec", "a")).file.endswith("1.yaml")
    assert whole.raw(("spec", "a")) == "2"


def test_the_inside_of_a_replaced_value_is_of_the_patch(tmp_path: Path) -> None:
    whole = patched(tmp_path, {"spec": {"a": "text", "l": [1, 2]}}, {"spec": {"a": {"b": {}}, "l": [3]}})
    for path in (("spec", "a"), ("spec", "a", "b"), ("spec", "a", "missing"), ("spec", "l", 0)):
        assert whole.mark(path).file.endswith("0.yaml"), path
    assert whole.mark(("spec", "other")).file == "spec.yaml"


def test_a_patch_whose_file_has_gone_still_names_it(tmp_path: Path) -> None:
    whole = patched(tmp_path, {"spec": {}}, {"spec": {"a": 1}})
    (tmp_path / "0.yaml").unlink()
    assert str(whole.mark(("spec", "a"))) == str(tmp_path / "0.yaml")
    assert whole.raw(("spec", "a")) is None
