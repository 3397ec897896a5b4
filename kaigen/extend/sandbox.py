"""Jinja2 for templates that nobody has to trust: data in, text out, and nothing else of the machine.

What a template may call is listed here; whatever is not listed is out of reach. Loops, calls and texts are
counted, so that a template ends. An expression puts no text into the output but a token that stands for its
value: the value takes the token's place after the text was read as YAML, so nothing in a spec can change what
the template's YAML means.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jinja2 import FunctionLoader, StrictUndefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.instrument import Instrumented

MAX_STEPS = 200_000
"""Turns of loops, calls of macros, and pieces of 64 characters, of one template."""

MAX_TEXT = 1_000_000
"""Characters of one text."""

MAX_NUMBER = 2**53

NAMES = ("spec", "name", "release", "run", "namespace", "labels", "profile", "kubernetes", "setting")
"""What a template knows, next to `range` and `dict`."""

_DICT_METHODS = frozenset({"items", "keys", "values", "get"})
# fmt: off
_TEXT_METHODS = frozenset(
    [
        "lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "startswith",
        "endswith", "removeprefix", "removesuffix", "isdigit", "isalpha", "isalnum", "count", "find",
        "capitalize", "title",
    ]
)
# fmt: on
# fmt: off
_FILTERS = frozenset(
    [
        "abs", "capitalize", "d", "default", "dictsort", "first", "float", "int", "items", "last",
        "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "round", "select",
        "selectattr", "sort", "string", "sum", "trim", "unique", "upper",
    ]
)
# fmt: on
# fmt: off
_TESTS = frozenset(
    [
        "boolean", "defined", "divisibleby", "eq", "equalto", "even", "false", "float", "ge",
        "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan", "lower", "lt", "mapping",
        "ne", "none", "number", "odd", "sequence", "string", "true", "undefined", "upper", "==", "!=",
        ">", ">=", "<", "<=",
    ]
)
# fmt: on


class TooMuch(Exception):
    """A template runs on and on, or makes too much text."""


class Misused(Exception):
    """A value is used in a way that it does not allow.

    Attributes:
        hint: what to do instead.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Missing(StrictUndefined):
    """A name that does not exist; its message says which was probably meant, behind a NUL."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = str(self._undefined_name), self._undefined_obj
        if isinstance(owner, dict):
            known = [key for key in owner if isinstance(key, str)]
            listed = "it has " + ", ".join(f"`{key}`" for key in known[:12]) if known else "it is empty"
            return f"there is no `{name}` here\0{did_you_mean(name, known) or listed}\0{name}"
        if self._undefined_hint:
            return f"{self._undefined_hint}\0\0{name}"
        if isinstance(owner, list | tuple | str | int | float | bool):
            return f"there is no `{name}` in {_named(owner)}\0\0{name}"
        hint = did_you_mean(name, NAMES) or "a template knows " + ", ".join(f"`{known}`" for known in NAMES)
        return f"`{name}` is not defined\0{hint}\0{name}"


def _named(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "a list" if isinstance(value, list | tuple) else "a text" if isinstance(value, str) else "a number"


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """What is known only at deploy time: it can be written, alone or within text, and nothing else.

    Attributes:
        token: what is written.
        what: how messages name it.
    """

    token: str
    what: str

    def __str__(self) -> str:
        return self.token

    def __add__(self, other: object) -> str:
        return f"{self.token}{other}"

    def __radd__(self, other: object) -> str:
        return f"{other}{self.token}"

    def _refuse(self, *_: object) -> NoReturn:
        raise Misused(
            f"{self.what} is known only when it is deployed, so a template cannot look at it",
            "look at the field of `spec` that it comes from",
        )

    __bool__ = __len__ = __iter__ = __eq__ = __ne__ = __hash__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __int__ = __float__ = _refuse
    __getitem__ = __mul__ = __rmul__ = __sub__ = __mod__ = __truediv__ = __floordiv__ = _refuse


@dataclass(slots=True)
class Run:
    """One rendering.

    Attributes:
        nonce: what every token starts with; no text of the spec or the templates holds it.
        values: what tokens stand for, by their number.
        setting: makes the placeholder of a setting.
        steps: how far it has come.
    """

    nonce: str
    setting: Callable[..., Placeholder]
    values: list[Any] = field(default_factory=list)
    steps: int = 0

    def token(self, value: Any) -> str:
        """A token for a value."""
        self.values.append(value)
        return f"{self.nonce}{len(self.values) - 1}z"


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one kind's templates."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    intercepted_unops = frozenset()

    def __init__(self, load: Callable[[str], tuple[str, str] | None]) -> None:
        """Make it.

        Args:
            load: gives text and file of a template by its name; None for no such template.
        """

        def loaded(name: str) -> tuple[str, str, Callable[[], bool]] | None:
            found = load(name)
            return None if found is None else (*found, lambda: True)

        super().__init__(
            loader=FunctionLoader(loaded),
            undefined=Missing,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=True,  # What templates write is marked, what specs hold is not: see `written`.
            finalize=self._finalize,
            optimized=False,
        )
        self.run = Run("", lambda: Placeholder("", ""))
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters |= {
            "b64encode": _b64encode,
            "component": _component,
            "indent": self.indent,
            "join": self.joined,
            "replace": self.replace,
            "toJson": self.to_json,
        }
        self.tests = {name: self.tests[name] for name in _TESTS if name in self.tests}
        self.globals = {"range": self.globals["range"], "dict": dict}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        result: nodes.Template = Instrumented(name or "").visit(tree)
        return result

    def step(self, weight: int = 1) -> str:
        """One more step.

        Raises:
            TooMuch: there were too many.
        """
        self.run.steps += weight
        if self.run.steps > MAX_STEPS:
            raise TooMuch("the template runs on and on: it was stopped")
        return ""

    @pass_context  # Without one, Jinja would ask for the tokens of constants when it compiles.
    def _finalize(self, context: Any, value: Any) -> Markup:
        return self.written(value)

    def written(self, value: Any) -> Markup:
        """What an expression puts into the output: what templates wrote as it is, a token for anything else."""
        if isinstance(value, Markup):
            return value
        if isinstance(value, StrictUndefined):
            str(value)
        if isinstance(value, Placeholder):
            return Markup(value.token)
        self._count(value)
        return Markup(self.run.token(value))

    def chain(self, *parts: Any) -> str:
        """Texts, one behind the other."""
        texts = [self.text(part) for part in parts]
        self._weigh(sum(map(len, texts)))
        if any(isinstance(part, Markup) for part in parts):
            pairs = zip(parts, texts, strict=True)
            return Markup(
                "".join(t if isinstance(p, Markup | Placeholder) else self.written(p) for p, t in pairs)
            )
        return "".join(texts)

    def text(self, value: Any) -> str:
        """A value as it stands within text."""
        if isinstance(value, str | Placeholder | StrictUndefined):
            return str(value)
        return self.to_json(value)

    def to_json(self, value: Any) -> str:
        """A value as one line of JSON."""
        self._count(value)
        try:
            text = json.dumps(value, ensure_ascii=False, default=_for_json)
        except (TypeError, ValueError, RecursionError):
            raise Misused("a value that is no plain data cannot be written") from None
        self._weigh(len(text))
        return text

    def _weigh(self, length: int) -> None:
        if length > MAX_TEXT:
            raise TooMuch(f"the template makes a text of more than {MAX_TEXT:,} characters: it was stopped")
        self.step(1 + length // 64)

    def _count(self, value: Any) -> None:
        """Count the parts of a value, which may be a few that are there again and again."""
        waiting = [value]
        while waiting:
            here = waiting.pop()
            self.step(1 + len(here) // 64 if isinstance(here, str) else 1)
            if isinstance(here, Mapping):
                waiting += here.values()
            elif isinstance(here, list | tuple):
                waiting += here

    def joined(self, value: Any, separator: str = "", attribute: str | None = None) -> str:
        """The filter `join`."""
        items = [self.getattr(item, attribute) if attribute else item for item in value]
        texts = [self.text(item) for item in items]
        self._weigh(sum(map(len, texts)) + len(separator) * len(texts))
        return separator.join(texts)

    def replace(self, value: Any, old: str, new: str) -> str:
        """The filter `replace`."""
        text = self.text(value)
        self._weigh(len(text) + text.count(old) * len(new))
        return text.replace(old, new)

    def indent(self, value: Any, width: int = 4, first: bool = False) -> str:
        """The filter `indent`: of what a macro or a block wrote."""
        text = self.text(value)
        if not 0 <= width <= 200:
            raise Misused("`indent` takes 0 to 200 blanks")
        self._weigh(len(text) + text.count("\n") * width)
        lead = " " * width
        lines = [lead + line if line.strip() else line for line in text.split("\n")]
        result = "\n".join(lines) if first else "\n".join(lines)[width if lines[0].strip() else 0 :]
        return Markup(result) if isinstance(value, Markup) else result

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """An operation that can make much of little."""
        texts = (str, bytes, list, tuple, dict)
        if operator == "+":
            if isinstance(left, str | Placeholder) or isinstance(right, str | Placeholder):
                if isinstance(left, int | float) or isinstance(right, int | float):
                    raise Misused("a text and a number cannot be added", "join them with `~`")
                return self.chain(left, right)
            if isinstance(left, list | tuple) and isinstance(right, list | tuple):
                self._weigh(len(left) + len(right))
        elif operator in {"*", "**"} and (isinstance(left, texts) or isinstance(right, texts)):
            raise Misused(f"`{operator}` takes numbers")
        elif operator == "%" and isinstance(left, texts):
            raise Misused("`%` takes numbers", "join texts with `~`")
        elif operator == "**" and (abs(left) > 1000 or abs(right) > 64):
            raise TooMuch("a number grows too large")
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int | float) and abs(result) > MAX_NUMBER:
            raise TooMuch("a number grows too large")
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field of data first, whatever its name; then the few methods that data has."""
        if isinstance(attribute, str) and attribute.startswith("_"):
            raise SecurityError(f"`{attribute}` is out of a template's reach")
        if isinstance(obj, dict):
            if attribute in obj:
                return obj[attribute]
            return getattr(obj, attribute) if attribute in _DICT_METHODS else self._nothing(obj, attribute)
        if isinstance(obj, str):
            return getattr(obj, attribute) if attribute in _TEXT_METHODS else self._nothing(obj, attribute)
        if obj is None or isinstance(obj, list | tuple | int | float | Placeholder):
            return self._nothing(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An entry of data."""
        if isinstance(argument, str):
            return self.getattr(obj, argument) if not isinstance(obj, dict) else self._member(obj, argument)
        if isinstance(obj, list | tuple | str):
            try:
                return obj[argument]
            except (IndexError, TypeError):
                return self._nothing(obj, argument)
        return self._member(obj, argument) if isinstance(obj, dict) else self._nothing(obj, argument)

    def _member(self, obj: Mapping[Any, Any], key: Any) -> Any:
        return obj[key] if key in obj else self._nothing(obj, key)

    def _nothing(self, obj: Any, name: Any) -> Missing:
        return Missing(obj=obj, name=name)


def _for_json(value: object) -> object:
    if isinstance(value, Placeholder):
        return value.token
    if isinstance(value, range):
        return list(value)
    raise TypeError


def _component(labels: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The labels of one component of an app: those of another do not fit its selector."""
    if not isinstance(labels, Mapping):
        raise Misused("`component` takes labels", "for example `{{ labels | component('serve') }}`")
    return {**labels, "app.kubernetes.io/component": name}


def _b64encode(value: str) -> str:
    from base64 import b64encode

    if not isinstance(value, str):
        raise Misused("`b64encode` takes a text that is known when it is rendered")
    return b64encode(value.encode()).decode()
