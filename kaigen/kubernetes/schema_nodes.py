"""The types of the schema data, for type checkers only: at run time the data is plain dicts.

`kaigen.kubernetes.schemas` explains the keys.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypeAlias, TypedDict

Scalar = str | int | float | bool
Node: TypeAlias = "str | Mapping"
Condition = dict[str, str | list[Scalar]]
"""By field: `set`, `given`, `unset`, or the values that it may have, with "" for none."""


class Mapping(TypedDict, total=False):
    """A node that is more than a name; `kaigen.kubernetes.schemas` says what its keys mean."""

    p: dict[str, Node]
    r: list[str]
    open: int
    u: tuple[int, list[str]]
    rules: list[tuple[Condition, Condition]]
    m: Node
    keys: str
    l: Node  # noqa: E741
    k: list[str]
    kd: dict[str, Scalar]
    set: int
    t: str
    enum: list[Scalar]
    re: str
    min: float
    max: float
    minlen: int
    maxlen: int
    null: int
    blank: int
    one: list[Node]
    any: list[Node]
    none: Node


class RulePlace(TypedDict, total=False):
    """The rules in CEL and the default of a place of a custom kind, and of the places in it."""

    rules: list[int]
    then: list[int]
    default: Any
    null: int
    p: dict[str, RulePlace]
    m: RulePlace
    l: RulePlace  # noqa: E741
    k: list[str]
    whole: int


CustomRules = list[tuple[list[Any], str]]
"""Rules in CEL, with what each says where it fails."""


class Kind(TypedDict):
    """What the index says of one apiVersion of a kind."""

    ref: NotRequired[str]
    cluster: NotRequired[int]
    deprecated: NotRequired[int]
    rules: NotRequired[int]
    since: NotRequired[str]
    until: NotRequired[str]


class Index(TypedDict):
    """The content of `index.json`."""

    targets: list[str]
    kinds: dict[str, dict[str, Kind]]


class Shard(TypedDict):
    """The content of one other file of `data`."""

    source: str
    defs: dict[str, Node | list[tuple[str, str, Node]]]


class RuleFile(TypedDict):
    """The content of a file of rules."""

    source: str
    kinds: dict[str, RulePlace]
    rules: CustomRules
