"""Replace the tokens in a template's output with their values and expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.compile.expressions import Expr, Joined, Setting, Text, Tree
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError, dotted_path
from kaigen.extend.build import RUN, join_parts
from kaigen.extend.tokens import MAX_STEPS, Placeholder, Run

if TYPE_CHECKING:
    from kaigen.yaml.document import Document

OUTPUT_ERROR = "KG1006"


class TokenTree:
    """Turns the documents of a template's output into objects with expressions.

    Attributes:
        used: paths of the settings that an object contains.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._token = re.compile(rf"{run.nonce}([0-9]{{1,9}})z")
        self._steps = 0
        self.used: set[str] = set()

    def read(self, document: Document) -> Tree:
        """Return a document's data with values and expressions in place of tokens.

        Raises:
            ProblemError: for data that cannot be part of an object.
        """
        try:
            return self._tree(document.data, document, ())
        except RecursionError:
            raise ProblemError(OUTPUT_ERROR, "the object is nested too deep") from None

    def _tree(self, node: object, document: Document, path: FieldPath) -> Tree:
        if isinstance(node, dict):
            result: dict[str, Tree] = {}
            for key, value in node.items():
                name = self._key(key, (*path, key))
                if name in result:
                    raise ProblemError(OUTPUT_ERROR, f"duplicate key `{name}`", (*path, key))
                result[name] = self._tree(value, document, (*path, key))
            return result
        if isinstance(node, list):
            return [self._tree(value, document, (*path, index)) for index, value in enumerate(node)]
        if isinstance(node, str):
            return self._string(node, document, path)
        if node is None:
            raise ProblemError(
                OUTPUT_ERROR,
                f"`{dotted_path(path)}` has no value",
                path,
                "set a value, or omit the line with `{% if %}`",
            )
        return node  # type: ignore[return-value]

    def _key(self, key: str, path: FieldPath) -> str:
        name = self._joined(key, path)
        if isinstance(name, Expr):
            raise ProblemError(OUTPUT_ERROR, "a key must be known at render time", path)
        return name

    def _string(self, text: str, document: Document, path: FieldPath) -> Tree:
        if self._run.nonce not in text.lower():
            return text
        whole = self._token.fullmatch(text)
        if whole is None:
            return self._joined(text, path)
        value = self._stored(whole, path)
        if value == RUN and path == ("metadata", "name"):
            return RUN
        mark = document.mark(path)
        if mark.text[mark.column - 1 : mark.column] in {'"', "'", "|", ">"}:
            return self._joined(text, path)
        tree = self._value(value, path)
        if tree == RUN:
            raise _misplaced_run(path)
        return tree

    def _value(self, value: Any, path: FieldPath) -> Tree:
        """Return the value of an expression in a template as part of an object."""
        self._step(path)
        if isinstance(value, Placeholder):
            match = self._token.fullmatch(value.token)
            return self._value(self._stored(match, path) if match else None, path)
        if isinstance(value, Setting):
            self.used.add(value.path)
            return value
        if isinstance(value, Expr | bool | int | float):
            return value
        if isinstance(value, str):
            return self._joined(str(value), path)
        if isinstance(value, Mapping):
            return {self._key(str(key), path): self._value(item, path) for key, item in value.items()}
        if isinstance(value, Sequence | range) or type(value).__name__ in {"dict_keys", "dict_values"}:
            return [self._value(item, path) for item in value]
        raise ProblemError(
            OUTPUT_ERROR, "the expression has no value" if value is None else "the expression is not plain data", path
        )

    def _step(self, path: FieldPath, size: int = 0) -> None:
        """Count a value: tokens may refer to values with tokens, and so stand for far more than was sent."""
        self._steps += 1 + size // 64
        if self._steps > MAX_STEPS:
            message = f"the object has more than {MAX_STEPS:,} values or blocks of 64 characters"
            raise ProblemError(OUTPUT_ERROR, message, path, "make it smaller")

    def _stored(self, token: re.Match[str], path: FieldPath) -> Any:
        """Return the value that a token replaces."""
        number = int(token[1])
        if number >= len(self._run.values):
            raise ProblemError(OUTPUT_ERROR, "the expression has no value", path)
        return self._run.values[number]

    def _joined(self, text: str, path: FieldPath) -> str | Expr:
        """Return a string with its tokens replaced by their values."""
        parts: list[str | Expr] = []
        last = 0
        for match in self._token.finditer(text):
            parts.append(text[last : match.start()])
            last = match.end()
            parts.append(self._piece(self._value(self._stored(match, path), path), path))
        parts.append(text[last:])
        if any(isinstance(part, str) and self._run.nonce in part.lower() for part in parts):
            raise ProblemError(
                OUTPUT_ERROR,
                "a filter cannot change a value that is known only at deploy time",
                path,
                "remove the filter",
            )
        return join_parts(parts)

    def _piece(self, value: Tree, path: FieldPath) -> str | Expr:
        """Return a value as part of a string."""
        if value == RUN:
            raise _misplaced_run(path)
        piece: str | Expr
        if isinstance(value, Setting):
            piece = value if value.schema.get("type") == "string" else Text(value)
        elif isinstance(value, Expr | str):
            piece = value
        else:
            piece = _json(value, path) if isinstance(value, dict | list) else json.dumps(value)
        self._step(path, _size(piece))
        return piece


def _size(value: object) -> int:
    """Return the characters of a text, and of the texts in a joined one."""
    parts = value.parts if isinstance(value, Joined) else (value,)
    return sum(len(part) for part in parts if isinstance(part, str))


def _misplaced_run(path: FieldPath) -> ProblemError:
    return ProblemError(OUTPUT_ERROR, "`run` can only be the whole name of an object", path)


def _json(value: object, path: FieldPath) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        message = "a mapping or list inside a string cannot contain a setting"
        raise ProblemError(OUTPUT_ERROR, message, path) from None
