"""Rules in CEL: how they are read, and their values."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.cel import CelError, evaluate
from tools.schemas.cel import parse

SELF: dict[str, Any] = {
    "name": "a/b",
    "count": 3,
    "empty": None,
    "namespace": "n",
    "items": [{"key": "x", "value": 1}, {"key": "y"}],
    "labels": {"a": "1", "b": "2"},
}


def value_of(text: str, **names: object) -> object:
    return evaluate(parse(text), {"self": SELF, **names})


@pytest.mark.parametrize(
    "text",
    [
        "self.count == 3 && self.count != 4",
        "self.count > 2 && self.count >= 3 && self.count < 4 && self.count <= 3",
        "self.count - 1 == 1 + 1 && -1 < 0",
        "!(1 == 2) || false",
        "true ? 1 == 1 : self.missing",
        "false ? self.missing : 1 == 1 ? true : false",
        "has(self.name) && !has(self.missing) && !has(self.empty)",
        "self.__namespace__ == 'n'",
        "size(self.items) == 2 && self.labels.size() == 2 && size('äb') == 2",
        "self.items[1].key == \"y\" && self.labels['b'] == '2'",
        "'a' in self.labels && !('c' in self.labels) && 'x' in ['x', 'y']",
        "self.items.all(x, x.key != 'z') && !self.items.all(x, has(x.value))",
        "self.items.exists(x, x.key == 'y') && !self.items.exists(x, x.key == 'z')",
        "self.items.exists_one(x, has(x.value)) && !self.items.exists_one(x, true)",
        "self.items.filter(x, has(x.value)).size() == 1",
        "self.labels.all(k, self.labels[k] in ['1', '2'])",
        "self.name.split('/')[1] == 'b' && self.name.split('-').size() == 1",
        "self.name.find('^[^/]+') == 'a' && self.name.find('[0-9]') == ''",
        "self.name.matches(r'''^[a-z]/\\w$''') && !self.name.matches('^b')",
        "self.name.startsWith('a') && self.name.endsWith('b') && self.name.contains('/')",
        "int('12') == 12 && duration('1h30m') > duration('89m59.5s') && duration('0') == duration('0s')",
        "[1, 2] == [1, 2] && ['a'] != ['b']",
        "!([true] == [1])",
        "self.items == self.items && self.items[0] != self.items[1]",
    ],
)
def test_a_rule_that_is_met_is_true(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "self.missing == 1",
        "self.items.all(x, x.value == 1)",
        "self.items[2].key == 'x'",
        "self.name.split('/')[2] == ''",
        "int(self.name) > 1",
        "duration(self.name) > duration('1s')",
        "self.name < 1",
        "self.count.startsWith('a')",
        "self.missing == 1 || false",
        "self.count.all(x, true)",
    ],
)
def test_a_rule_without_a_value_is_an_error(text: str) -> None:
    with pytest.raises(CelError):
        value_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.missing == 1 || true", True),
        ("self.missing == 1 && false", False),
        ("self.items.exists(x, x.value == 1)", True),
        ("self.items.all(x, x.value == 2)", False),
    ],
)
def test_an_error_does_not_count_where_the_rest_decides(text: str, value: bool) -> None:
    assert value_of(text) is value


def test_a_dollar_is_the_end_and_flags_apply_as_in_go() -> None:
    assert value_of("name.matches('^a$')", name="a\n") is False
    assert value_of("name.matches(r'''^(?i)a+(b)*$''')", name="AAB") is True


@pytest.mark.parametrize("text", ["self.foo(1)", "self.a.map(x, x)", "1 +", "a b", "{'a': 1}", "size(1, 2)", "1.5 > 1"])
def test_what_the_checks_do_not_know_ends_the_generator(text: str) -> None:
    with pytest.raises(SystemExit, match="a rule in CEL that the checks do not know"):
        parse(text)
