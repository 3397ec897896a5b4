"""Rules in CEL and defaults of custom resources, as trees that `kaigen.check.cel` evaluates.

Only what the rules of the known kinds use is read; anything else ends the program. Source of the grammar:
`doc/langdef.md` of github.com/google/cel-spec v0.25.1.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tools.schemas.files import Schema

Tree = list[Any]
"""The name of a form, followed by its parts."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<raw>r(?P<quote>\"{3}|'{3}|"|')(?P<content>.*?)(?P=quote))
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<int>[0-9]+)(?![0-9.a-zA-Z])
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||[=!<>]=|[-+!<>?:.,()\[\]]))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"\\\\": "\\", "\\'": "'", '\\"': '"', "\\n": "\n", "\\t": "\t"}
_NAMES = {"__dash__": "-", "__dot__": ".", "__slash__": "/", "__underscores__": "__"}
_CONSTANTS = {"true": True, "false": False, "null": None}
MACROS = frozenset({"all", "exists", "exists_one", "filter"})
FUNCTIONS = {
    **dict.fromkeys(("size", "int", "duration"), 0),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches", "find", "split"), 1),
}
"""The functions, with the number of their arguments in addition to the value that they are called on."""
_RULE = {"rule", "message"}


def rule_of(rule: Schema) -> tuple[Tree, str, bool]:
    """Return the tree of a rule, what it says where it fails, and whether it compares with the value before."""
    if rule.keys() - _RULE:
        sys.exit(f"a rule in CEL with fields that the checks do not know: {sorted(rule.keys() - _RULE)}")
    text = rule["rule"].strip()
    return parse(text), rule.get("message", "").strip() or f"failed rule: {text}", "oldSelf" in text


def parse(text: str) -> Tree:
    """Return the tree of an expression."""
    return _Parser(text).whole()


class _Parser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, Any]] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                self._fail(text[place:])
            place = found.end()
            self._tokens.append(_token(found))
        self._tokens.append(("end", ""))

    def _fail(self, what: object) -> NoReturn:
        sys.exit(f"a rule in CEL that the checks do not know, at {what!r}: {self._text}")

    def _next(self, *signs: str) -> str:
        """Take the next token if it is one of these; return it, or an empty text."""
        kind, value = self._tokens[0]
        if value not in signs or kind not in ("sign", "name"):
            return ""
        del self._tokens[0]
        return str(value)

    def _expect(self, sign: str) -> None:
        if not self._next(sign):
            self._fail(self._tokens[0][1])

    def whole(self) -> Tree:
        tree = self._choice()
        if self._tokens[0][0] != "end":
            self._fail(self._tokens[0][1])
        return tree

    def _choice(self) -> Tree:
        condition = self._chain(0)
        if not self._next("?"):
            return condition
        then = self._chain(0)
        self._expect(":")
        return ["if", condition, then, self._choice()]

    _LEVELS: Sequence[Sequence[str]] = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"))

    def _chain(self, level: int) -> Tree:
        """Return what operators of a level join, from the left."""
        if level == len(self._LEVELS):
            return self._unary()
        tree = self._chain(level + 1)
        while sign := self._next(*self._LEVELS[level]):
            tree = [sign, tree, self._chain(level + 1)]
        return tree

    def _unary(self) -> Tree:
        if sign := self._next("!", "-"):
            return ["not" if sign == "!" else "negative", self._unary()]
        tree = self._primary()
        while True:
            if self._next("."):
                tree = self._member(tree, str(self._take("name")))
            elif self._next("["):
                tree = ["item", tree, self._choice()]
                self._expect("]")
            else:
                return tree

    def _take(self, kind: str) -> Any:
        found, value = self._tokens.pop(0)
        if found != kind:
            self._fail(value)
        return value

    def _member(self, tree: Tree, name: str) -> Tree:
        if not self._next("("):
            return ["field", tree, _NAMES.get(name, re.sub(r"^__(\w+)__$", r"\1", name))]
        arguments = self._list(")")
        if name in MACROS:
            variable, body = arguments
            return [name, tree, variable[1], body]
        return self._call(name, [tree, *arguments])

    def _call(self, name: str, arguments: list[Tree]) -> Tree:
        if FUNCTIONS.get(name) != len(arguments) - 1:
            self._fail(name)
        if name in ("matches", "find"):
            arguments[1] = ["value", python_pattern(arguments[1][1])]
        return [name, *arguments]

    def _list(self, end: str) -> list[Tree]:
        found: list[Tree] = []
        while not self._next(end):
            found.append(self._choice())
            self._next(",")
        return found

    def _primary(self) -> Tree:
        kind, value = self._tokens.pop(0)
        if kind == "value":
            return ["value", value]
        if (kind, value) == ("sign", "("):
            tree = self._choice()
            self._expect(")")
            return tree
        if (kind, value) == ("sign", "["):
            return ["list", *self._list("]")]
        if kind != "name":
            self._fail(value)
        if value in _CONSTANTS:
            return ["value", _CONSTANTS[value]]
        if not self._next("("):
            return ["name", value]
        arguments = self._list(")")
        if value == "has":
            return ["has", *arguments[0][1:]]
        return self._call(value, arguments)


def _token(found: re.Match[str]) -> tuple[str, Any]:
    kind = found.lastgroup
    if found["raw"]:
        return "value", found["content"]
    if found["text"]:
        return "value", re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], found["text"][1:-1])
    if found["int"]:
        return "value", int(found["int"])
    assert kind is not None
    return kind, found[kind]


def python_pattern(pattern: str) -> str:
    """Return a regular expression of Go for Python, where flags are in groups and `$` is before a last newline."""
    changed = re.sub(r"^\^\(\?i\)(.*)$", r"^(?i:\1)", pattern, flags=re.DOTALL) if "(?i)" in pattern else pattern
    changed = re.sub(r"(?<!\\)\$(?=\)?$)", r"\\Z", changed)
    re.compile(changed)
    return changed


def rule_tree(schema: Schema, rules: dict[str, int]) -> Schema:
    """Return the rules and defaults of a structural schema by place.

    The API server sets the defaults before it evaluates the rules.

    Args:
        schema: the schema of a value.
        rules: the number of each rule, as JSON; new ones are added.
    """
    tree: Schema = {}
    for rule in schema.get("x-kubernetes-validations", ()):
        expression, message, compares = rule_of(rule)
        text = json.dumps([expression, message], separators=(",", ":"))
        tree.setdefault("then" if compares else "rules", []).append(rules.setdefault(text, len(rules)))
    if "default" in schema:
        tree["default"] = schema["default"]
    if schema.get("nullable"):
        tree["null"] = 1
    children = {key: rule_tree(child, rules) for key, child in schema.get("properties", {}).items()}
    if found := {key: child for key, child in children.items() if child.keys() - {"null"}}:
        tree["p"] = found
    for key, ours in (("items", "l"), ("additionalProperties", "m")):
        if isinstance(child := schema.get(key), dict) and (inner := rule_tree(child, rules)).keys() - {"null"}:
            tree[ours] = inner
    if "l" in tree:
        if keys := schema.get("x-kubernetes-list-map-keys"):
            tree["k"] = keys
        elif schema.get("x-kubernetes-list-type", "atomic") == "atomic":
            tree["whole"] = 1
    return tree


# Lists of claims in kinds with webhooks. These read and write the whole object, in which Go never leaves out the status
# of a claim. Source: `PersistentVolumeClaim` in core/v1/types.go of k8s.io/api v0.36.3.
_CLAIMS = {
    "JobSet": ("spec", "volumeClaimPolicies", "templates"),
    "LeaderWorkerSet": ("spec", "leaderWorkerTemplate", "volumeClaimTemplates"),
}


def with_webhooks(kind: str, top: Schema) -> Schema:
    """Return the schema of a kind without its status, and with what webhooks add to an object as defaults."""
    whole: Schema = copy.deepcopy(top)
    whole["properties"].pop("status", None)
    if kind in _CLAIMS:
        node = whole
        for step in _CLAIMS[kind]:
            node = node["properties"][step]
            node = node.get("items", node)
        node["properties"]["status"] = {"default": {}}
    return whole


def has_effect(tree: Schema, whole: bool = False) -> bool:
    """Return whether a tree has a rule, or a default in a list that is one value for its owner."""
    whole = whole or "whole" in tree
    inner: list[Schema] = [*tree.get("p", {}).values(), *(tree[key] for key in ("l", "m") if key in tree)]
    keys = {"rules", "then", "default"} if whole else {"rules", "then"}
    return bool(tree.keys() & keys) or any(has_effect(each, whole) for each in inner)


def rule_file(tops: dict[str, Schema], source: str, dump: Callable[[object], str]) -> bytes | None:
    """Return the data file of the rules and defaults of a group; None where none have an effect.

    Args:
        tops: the schema of each kind of the group, by `KIND.VERSION`.
        source: where they are from.
        dump: returns compact JSON.
    """
    rules: dict[str, int] = {}
    schemas = {name: with_webhooks(name.partition(".")[0], top) for name, top in sorted(tops.items())}
    trees = {name: tree for name, schema in schemas.items() if has_effect(tree := rule_tree(schema, rules))}
    if not trees:
        return None
    lines = ",\n".join(f"{dump(name)}:{dump(tree)}" for name, tree in trees.items())
    listed = ",\n".join(rules)
    return f'{{"source":{dump(source)},"kinds":{{\n{lines}\n}},"rules":[\n{listed}\n]}}\n'.encode()
