"""Fields that had another name or form are read as if they had the present one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.spelling import Move, old_spellings, present_document, respell
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

MODELS = {entry.kind: entry for entry in BUILTIN_KINDS if entry.system == "kaigen"}


def spelled(kind: str, spec: dict[str, Any]) -> Any:
    data = {"spec": spec}
    return respell(data, old_spellings(data, MODELS[kind].model()))["spec"]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("Topology", {"auth": {"secret": "a"}}, {"auth": {"secret": {"name": "a"}}}),
        ("Topology", {"auth": {"key": "k", "secret": "a"}}, {"auth": {"secret": {"name": "a", "key": "k"}}}),
        ("Topology", {"route": {"tls": {"secretName": "t"}}}, {"route": {"tls": {"secret": {"name": "t"}}}}),
        ("Notebook", {"route": {"oidc": {"secret": "o"}}}, {"route": {"oidc": {"secret": {"name": "o"}}}}),
        ("Endpoint", {"keys": "k"}, {"keysSecret": {"name": "k"}}),
        (
            "Job",
            {"envFrom": [{"secret": "s"}, {"config": "c"}]},
            {"envFrom": [{"secret": {"name": "s"}}, {"config": {"name": "c"}}]},
        ),
        ("Job", {"volumes": {"v": {"secret": "s"}}}, {"volumes": {"v": {"secret": {"name": "s"}}}}),
        ("Job", {"volumes": {"v": {"configMap": "c"}}}, {"volumes": {"v": {"configMap": {"name": "c"}}}}),
        ("Job", {"imagePullSecrets": ["r"]}, {"imagePullSecrets": [{"name": "r"}]}),
        ("Job", {"image": {"ref": "i", "pullSecrets": ["r"]}}, {"image": {"ref": "i", "pullSecrets": [{"name": "r"}]}}),
        ("Job", {"build": {"pushSecret": "p"}}, {"build": {"pushSecret": {"name": "p"}}}),
        ("Model", {"source": {"oci": {"pullSecret": "p"}}}, {"source": {"oci": {"pullSecret": {"name": "p"}}}}),
    ],
)
def test_an_old_spelling_is_the_present_one(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert spelled(kind, old) == new
    assert spelled(kind, new) == new


def test_a_field_in_both_spellings_stays() -> None:
    both = {"route": {"tls": {"secretName": "a", "secret": {"name": "b"}}}}
    assert spelled("Topology", both) == both
    mixed = {"auth": {"secret": {"name": "b"}, "key": "k"}}
    assert spelled("Topology", mixed) == mixed


def test_texts_that_are_no_secrets_stay() -> None:
    job = {
        "image": "python:3.12-slim",
        "params": {"secret": "x"},
        "env": {"A": "b", "C": {"secret": {"name": "s", "key": "k"}}},
    }
    assert spelled("Job", job) == job


def test_a_value_keeps_its_position() -> None:
    text = "kind: Topology\nspec:\n  auth:\n    secret: a\n    key: k\n"
    (document,) = parse(Source("a.yaml", text), Diagnostics())
    present = present_document(document, MODELS["Topology"])
    assert old_spellings(document.data, MODELS["Topology"].model())[0] == Move(
        ("spec", "auth", "key"), ("spec", "auth", "secret", "key")
    )
    assert [present.mark(("spec", "auth", "secret", name)).line for name in ("name", "key")] == [4, 5]


def test_many_old_spellings_are_read_quickly() -> None:
    names = [f"secret-{number}" for number in range(30_000)]
    document = {"spec": {"imagePullSecrets": names}}
    began = time.monotonic()
    moves = old_spellings(document, MODELS["Job"].model())
    assert respell(document, moves)["spec"]["imagePullSecrets"] == [{"name": name} for name in names]
    assert time.monotonic() - began < 3
    assert document["spec"]["imagePullSecrets"] == names
