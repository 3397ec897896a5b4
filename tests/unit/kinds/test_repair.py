"""Documents without what is wrong with them, and what may be said about these."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.dialects.registry import own_kinds
from kaigen.kinds.repair import Repaired, repair
from kaigen.yaml.document import Document, parse
from kaigen.yaml.dump import dump
from kaigen.yaml.sources import Source

KINDS = {kind.key: kind for kind in own_kinds()}


def document(kind: str, spec: object, metadata: object = None) -> Document:
    data = {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": metadata or {"name": "a"}, "spec": spec}
    (found,) = parse(Source("a.yaml", dump(data)), Diagnostics())
    return found


def repaired(kind: str, spec: object, metadata: object = None) -> Repaired | None:
    written = document(kind, spec, metadata)
    block, found = KINDS[kind].validate(written)
    assert block is None
    made = repair(written, KINDS[kind], found)
    return None if made is None else made[1]


@pytest.mark.parametrize(
    ("spec", "left", "dropped"),
    [
        ({"image": "a:1", "adress": "x"}, {"image": "a:1"}, [("spec", "adress")]),
        ({"image": "a:1", "retries": -1}, {"image": "a:1"}, [("spec", "retries")]),
        ({"image": "a:1", "env": {"A": None, "B": "b"}}, {"image": "a:1", "env": {"B": "b"}}, [("spec", "env", "A")]),
        ({"image": "a:1", "args": ["a", 1]}, {"image": "a:1"}, [("spec", "args")]),
        (
            {"image": "a:1", "output": {"volume": {"mountPath": "/o"}}},
            {"image": "a:1"},
            [("spec", "output", "volume"), ("spec", "output")],
        ),
        ({"imag": "a:1", "model": "m"}, {"image": "a:1", "model": "m"}, []),
    ],
)
def test_wrong_fields_are_left_out_or_renamed(
    spec: dict[str, Any], left: dict[str, Any], dropped: list[tuple[str, ...]]
) -> None:
    found = repaired("Job", spec)
    assert found is not None
    assert found.data["spec"] == left
    assert [*found.dropped] == dropped


def test_a_renamed_field_has_the_place_of_the_one_that_was_written() -> None:
    found = repaired("Job", {"imag": "a:1"})
    assert found is not None
    mark = found.mark(("spec", "image"), key=True)
    assert (mark.line, mark.text.strip()) == (6, "imag: a:1")
    assert found.raw(("spec", "image")) == "a:1"


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        ({"image": "a:1", "gpus": 1}, None),
        ({"retries": 1}, {"name": "Not A Name"}),
        ({"model": "m"}, {"labels": {}}),
        ("a text", None),
    ],
)
def test_a_document_that_means_something_else_is_not_repaired(spec: object, metadata: object) -> None:
    assert repaired("Job", spec, metadata) is None


def test_only_what_does_not_depend_on_a_missing_field_is_said() -> None:
    found = repaired("Job", {"image": "a:1", "resources": {"memory": "16Gib", "gpus": 1}})
    assert found is not None
    sound = Diagnostic("KG0301", "unknown Model `m`", path="spec.model")
    others = [
        Diagnostic("KG0320", "too small", path="spec.resources.memory"),
        Diagnostic("KG0320", "no limit", path="spec.resources"),
        Diagnostic("KG0320", "no limit of memory", path="spec.image"),
        Diagnostic("KG0320", "no limit", hint="set `resources.memory`", path="spec.image"),
        Diagnostic("KG0320", "somewhere"),
    ]
    assert found.sound([sound, *others]) == [sound]
