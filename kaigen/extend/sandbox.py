"""A Jinja2 environment for untrusted templates: data in, text out, no access to the machine.

Own code on top of Jinja's sandbox, which does not limit how long a template runs and lets a value change the meaning of
the YAML around it. A template can call only what is listed here. Loops, calls and text are counted, so every template
ends. An expression writes a token instead of its value; the value replaces the token after the text was parsed as YAML.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, nodes, pass_context
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.filters import do_round
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from markupsafe import Markup

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.instrument import InstrumentedTemplate
from kaigen.extend.tokens import (
    MAX_STEPS,
    MAX_TEXT,
    NAMES,
    LimitExceeded,
    MisusedValue,
    Placeholder,
    Run,
    TemplateFailure,
)
from kaigen.extend.wire import plain

_MOST_LISTED = 12

MAX_NUMBER = 2**53

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


class Sandbox(ImmutableSandboxedEnvironment):
    """The Jinja2 environment of one kind's templates."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    intercepted_unops = frozenset()

    def __init__(self, load: Callable[[str], tuple[str, str] | None]) -> None:
        """Make the environment.

        Args:
            load: returns text and file of a template by its name, or None where there is no such template.
        """

        def loaded(name: str) -> tuple[str, str, Callable[[], bool]] | None:
            found = load(name)
            return None if found is None else (*found, lambda: True)

        super().__init__(
            loader=FunctionLoader(loaded),
            undefined=Undefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=True,  # Markup is what templates write; anything else is a value: see `written`.
            finalize=self._finalize,
            optimized=False,
        )
        self.run = Run("")
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters = {name: self._counting(filter_) for name, filter_ in self.filters.items()}
        self.filters |= {
            "round": self.round,
            "sum": self.sum,
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
        result: nodes.Template = InstrumentedTemplate(name or "").visit(tree)
        return result

    def forget_modules(self) -> None:
        """Forget the variables of imported templates, which contain the tokens of the last rendering."""
        for template in () if self.cache is None else self.cache.values():
            template._module = None

    def step(self, weight: int = 1) -> str:
        """Count one more step.

        Raises:
            LimitExceeded: after `MAX_STEPS` steps.
        """
        self.run.steps += weight
        if self.run.steps > MAX_STEPS:
            raise LimitExceeded(f"the template ran more than {MAX_STEPS:,} steps and was stopped")
        return ""

    @pass_context  # Without one, Jinja would ask for the tokens of constants when it compiles.
    def _finalize(self, context: Any, value: Any) -> Markup:
        return self.written(value)

    def written(self, value: Any) -> Markup:
        """Return what an expression writes: text of a template unchanged, a token for anything else."""
        if isinstance(value, Markup):
            return value
        if isinstance(value, StrictUndefined):
            str(value)
        if isinstance(value, Placeholder):
            return Markup(value.token)
        self._count(value)
        return Markup(self.run.token(plain(value)))

    def chain(self, *parts: Any) -> str:
        """Return values concatenated as text."""
        texts = [self.text(part) for part in parts]
        self._weigh(sum(map(len, texts)))
        if any(isinstance(part, Markup) for part in parts):
            pairs = zip(parts, texts, strict=True)
            return Markup("".join(t if isinstance(p, Markup | Placeholder) else self.written(p) for p, t in pairs))
        return "".join(texts)

    def text(self, value: Any) -> str:
        """Return a value as text."""
        if isinstance(value, str | Placeholder | StrictUndefined):
            return str(value)
        return self.to_json(value)

    def to_json(self, value: Any) -> str:
        """Return a value as one line of JSON."""
        self._count(value)
        try:
            text = json.dumps(value, ensure_ascii=False, default=_for_json)
        except (TypeError, ValueError, RecursionError):
            raise MisusedValue("only plain data can be written") from None
        self._weigh(len(text))
        return text

    def _weigh(self, length: int) -> None:
        if length > MAX_TEXT:
            raise LimitExceeded(f"the template produced more than {MAX_TEXT:,} characters of text and was stopped")
        self.step(1 + length // 64)

    def _count(self, value: Any) -> None:
        """Count every part of a value, shared parts as often as they occur."""
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
        """The filter `indent`, for the output of a macro or a block."""
        text = self.text(value)
        if not 0 <= width <= 200:
            raise MisusedValue("`indent` accepts a width of 0 to 200")
        self._weigh(len(text) + text.count("\n") * width)
        lead = " " * width
        lines = [lead + line if line.strip() else line for line in text.split("\n")]
        result = "\n".join(lines) if first else "\n".join(lines)[width if lines[0].strip() else 0 :]
        return Markup(result) if isinstance(value, Markup) else result

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter that counts the length of what it gets, or of what its arguments are, as steps."""

        @wraps(function)
        def counted(*arguments: Any, **options: Any) -> Any:
            for value in arguments:
                if isinstance(value, list | tuple | dict | range):
                    self.step(1 + len(value))
                elif isinstance(value, str):
                    self.step(1 + len(value) // 64)
            return function(*arguments, **options)

        return counted

    def round(self, value: Any, precision: int = 0, method: str = "common") -> float:
        """The filter `round`."""
        if not isinstance(precision, int) or not -15 <= precision <= 15:
            raise MisusedValue("`round` accepts a precision of -15 to 15")
        return do_round(value, precision, method)  # type: ignore[arg-type]

    def sum(self, value: Any, attribute: str | None = None, start: int = 0) -> Any:
        """The filter `sum`, of numbers."""
        total: Any = start
        for item in value:
            self.step()
            total = total + (self.getattr(item, attribute) if attribute else item)
            if not isinstance(total, int | float):
                raise MisusedValue("`sum` works on numbers only", "join lists with `+`")
        return total

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Evaluate an operation whose result may be large."""
        texts = (str, bytes, list, tuple, dict)
        if operator == "+":
            if isinstance(left, str | Placeholder) or isinstance(right, str | Placeholder):
                if isinstance(left, int | float) or isinstance(right, int | float):
                    raise MisusedValue("a string and a number cannot be added", "join them with `~`")
                return self.chain(left, right)
            if isinstance(left, list | tuple) and isinstance(right, list | tuple):
                self._weigh(len(left) + len(right))
        elif operator in {"*", "**"} and (isinstance(left, texts) or isinstance(right, texts)):
            raise MisusedValue(f"`{operator}` works on numbers only")
        elif operator == "%" and isinstance(left, texts):
            raise MisusedValue("`%` works on numbers only", "join strings with `~`")
        elif operator == "**" and (abs(left) > 1000 or abs(right) > 64):
            raise LimitExceeded("a number exceeds 2^53")
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int | float) and abs(result) > MAX_NUMBER:
            raise LimitExceeded("a number exceeds 2^53")
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a field of a mapping, or one of the few methods that templates may call."""
        if isinstance(attribute, str) and attribute.startswith("_"):
            raise SecurityError(f"a template cannot access `{attribute}`")
        if isinstance(obj, dict):
            if attribute in obj:
                return obj[attribute]
            return getattr(obj, attribute) if attribute in _DICT_METHODS else self._undefined(obj, attribute)
        if isinstance(obj, str):
            return getattr(obj, attribute) if attribute in _TEXT_METHODS else self._undefined(obj, attribute)
        if obj is None or isinstance(obj, list | tuple | int | float | Placeholder):
            return self._undefined(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an entry of a mapping or list."""
        if isinstance(argument, str):
            return self.getattr(obj, argument) if not isinstance(obj, dict) else self._member(obj, argument)
        if isinstance(obj, list | tuple | str):
            try:
                return obj[argument]
            except (IndexError, TypeError):
                return self._undefined(obj, argument)
        return self._member(obj, argument) if isinstance(obj, dict) else self._undefined(obj, argument)

    def _member(self, obj: Mapping[Any, Any], key: Any) -> Any:
        return obj[key] if key in obj else self._undefined(obj, key)

    def _undefined(self, obj: Any, name: Any) -> Undefined:
        return Undefined(obj=obj, name=name)


def _for_json(value: object) -> object:
    if isinstance(value, Placeholder):
        return value.token
    if isinstance(value, range):
        return list(value)
    raise TypeError


def _component(labels: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The filter `component`: return labels that select only one component of an app."""
    if not isinstance(labels, Mapping):
        raise MisusedValue("`component` must be applied to labels", "for example `{{ labels | component('serve') }}`")
    return {**labels, "app.kubernetes.io/component": name}


def _b64encode(value: str) -> str:
    if not isinstance(value, str):
        raise MisusedValue("`b64encode` requires a string that is known at render time")
    return b64encode(value.encode()).decode()


class UndefinedName(UndefinedError):
    """A template uses a name that does not exist.

    Attributes:
        failure: the error.
    """

    def __init__(self, failure: TemplateFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Undefined(StrictUndefined):
    """A name that does not exist; its error suggests the one that was probably meant."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = missing,
        name: str | None = None,
        exc: Callable[[TemplateFailure], Exception] = UndefinedName,
    ) -> None:
        super().__init__(hint, obj, name, exc)  # type: ignore[arg-type]

    @property
    def _undefined_message(self) -> TemplateFailure:  # type: ignore[override]
        """The error; Jinja passes it to the exception."""
        name, owner = str(self._undefined_name), self._undefined_obj
        if isinstance(owner, dict):
            known = [key for key in owner if isinstance(key, str)]
            hint = did_you_mean(name, known) or _listed("fields here", known) or "the mapping is empty"
            return TemplateFailure(f"unknown field `{name}`", hint, name)
        if self._undefined_hint:
            return TemplateFailure(self._undefined_hint, word=name)
        if isinstance(owner, list | tuple | str | int | float | bool):
            return TemplateFailure(f"{_type_name(owner)} has no `{name}`", word=name)
        return TemplateFailure(
            f"`{name}` is not defined", did_you_mean(name, NAMES) or _listed("available names", NAMES), name
        )


def _listed(title: str, names: Sequence[str]) -> str:
    return f"{title}: " + ", ".join(f"`{name}`" for name in names[:_MOST_LISTED]) if names else ""


def _type_name(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a list" if isinstance(value, list | tuple) else "a string" if isinstance(value, str) else "a number"
