"""The settings of an app are collected in linear time: a large default is compared once, not for each use."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.app import Object, collect_settings
from kaigen.compile.expressions import Item, Setting, Text


class Counted(dict[str, Any]):
    """A default that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__eq__(other)


def setting(default: Any) -> Setting:
    return Setting("params", default, "Parameters.", {})


def test_a_default_is_compared_once_however_often_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "compared", 0)
    names = [f"p{number}" for number in range(1000)]
    first, other = (setting(Counted.fromkeys(names, "x")) for _ in range(2))
    objects = [
        Object(role=role, body={"kind": "X", "env": [Text(Item(used, name), verbatim=True) for name in names]})
        for role, used in (("a", first), ("b", other))
    ]
    assert collect_settings(objects) == (first,)
    assert Counted.compared < 10


def test_two_defaults_of_one_setting_are_an_error() -> None:
    objects = [
        Object(role=role, body={"kind": "X", "env": [Text(Item(setting(default), "a"), verbatim=True)]})
        for role, default in (("a", {"a": 1}), ("b", {"a": 2}))
    ]
    with pytest.raises(AssertionError, match="two defaults for the setting params"):
        collect_settings(objects)
