"""A document against its kind: what pydantic found, said with places, reasons and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from kaigen.kinds import base
from kaigen.kinds.registry import KindEntry
from kaigen.load.diagnostics import Diagnostic, Mark
from kaigen.load.paths import dotted

if TYPE_CHECKING:
    from kaigen.kinds.base import Block

_MAY_HOLD_NULL = (
    ("metadata", "creationTimestamp"),  # Kubernetes' own tools write it as null.
    ("metadata", "managedFields"),
    ("status",),
    ("values",),  # In kaigen.yaml, where null takes a default away.
    ("environments", "*", "values"),
)
"""Where null is allowed. Not in parameters or Kubernetes fragments: Helm drops nulls from a chart's values."""

_MEANINGS: dict[str, str] = {
    base.QUANTITY: "a quantity such as `500m`, `2` or `8Gi`",
    base.DURATION: "a duration such as `90s`, `1h30m` or `2d`",
    base.DNS_LABEL: "lower-case letters, digits and dashes, starting and ending with a letter or digit",
    base.DNS_SUBDOMAIN: "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit",
    base.LABEL_KEY: "a label key such as `team` or `example.com/team`",
    base.LABEL_VALUE: "letters, digits, `-`, `_` and `.`, starting and ending with a letter or digit",
    base.ENV_NAME: "letters, digits and underscores, not starting with a digit",
    base.ABSOLUTE_PATH: "an absolute path such as `/output`",
}

_TYPES: dict[str, str] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


class Positioned(Protocol):
    """What validation needs of a document."""

    @property
    def data(self) -> Any:
        """The document as plain data."""

    def mark(self, path: Sequence[str | int], *, key: bool = False) -> Mark:
        """Place of a path, or of the key at its end."""

    def raw(self, path: Sequence[str | int]) -> str | None:
        """A scalar as it was written."""


def validate_document(document: Positioned, entry: KindEntry) -> tuple[Block | None, list[Diagnostic]]:
    """The document as its kind's model, or what is wrong with it.

    Args:
        document: plain data with places.
        entry: its kind.
    """
    found = [
        Diagnostic(
            "KG0209",
            f"`{_last(path)}` has no value",
            document.mark(path, key=True),
            "give it a value, or delete the line",
            path=dotted(path),
        )
        for path in (_nulls(document.data, ()) if _holds_null(document.data) else ())
    ]
    empty = {item.path for item in found}
    try:
        model = entry.model().model_validate(document.data, by_alias=True, by_name=False)
    except ValidationError as error:
        for line in error.errors(include_url=False):
            item = _explain(document, entry, line)
            if item.path not in empty:
                found.append(item)
        return None, found
    return (None, found) if found else (model, [])


def _last(path: Sequence[str | int]) -> str:
    """The end of a path that names something: `command[0]`, not `0`."""
    names = [index for index, part in enumerate(path) if isinstance(part, str)]
    return dotted(path[names[-1] :]) if names else dotted(path)


def _holds_null(node: Any) -> bool:
    if isinstance(node, dict):
        return any(map(_holds_null, node.values()))
    return any(map(_holds_null, node)) if isinstance(node, list) else node is None


def _nulls(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    general = ("environments", "*", *path[2:]) if path[:1] == ("environments",) else path
    if general in _MAY_HOLD_NULL:
        return
    if node is None:
        yield path
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _nulls(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _nulls(value, (*path, index))


def _document_path(data: Any, loc: Sequence[str | int], kind: str) -> tuple[str | int, ...]:
    """The path of a pydantic location: names of union branches and of dict keys' own errors left out."""
    path: list[str | int] = []
    here: Any = data
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if part == "[key]":
            continue
        if (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            here = here[part]  # type: ignore[index]
        elif not (last and kind == "missing"):
            continue
        path.append(part)
    return tuple(path)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"`{value}`" if len(value) <= 60 else f"`{value[:57]}…`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the number {value}"


def _explain(document: Positioned, entry: KindEntry, line: Any) -> Diagnostic:
    from kaigen.kinds.schema import field_names, json_schema, walk
    from kaigen.load.suggest import did_you_mean

    kind: str = line["type"]
    path = _document_path(document.data, line["loc"], kind)
    name = str(path[-1]) if path else ""
    context: dict[str, Any] = line.get("ctx", {})
    where = dotted(path)
    mark = document.mark(path)
    value = line["input"]

    def say(code: str, message: str, hint: str = "", at: Mark | None = None) -> Diagnostic:
        return Diagnostic(code, message, at or mark, hint, path=where)

    if kind == "extra_forbidden":
        known = field_names(json_schema(entry), path[:-1])
        listed = ", ".join(f"`{item}`" for item in known)
        hint = did_you_mean(name, known) or (f"fields here: {listed}" if listed else "")
        return say("KG0201", f"unknown field `{name}`", hint, document.mark(path, key=True))
    if kind == "missing":
        field = walk(json_schema(entry), path) or {}
        return say(
            "KG0203",
            f"`{name}` is missing",
            _first_sentence(field.get("description", "")),
            document.mark(path[:-1]),
        )
    if kind in {"none_of", "many_of"}:
        subject = f"`{name}` " if name else "the document "
        code = "KG0206" if kind == "none_of" else "KG0207"
        if kind == "none_of" and isinstance(value, dict):
            known = field_names(json_schema(entry), path)
            unknown = [key for key in value if key not in known]
            hint = next((hint for key in unknown if (hint := did_you_mean(key, known))), "")
            return say(code, subject + line["msg"], hint, document.mark(path, key=True))
        second = [*path, context["given"][-1]] if context.get("given") else path
        return say(code, subject + line["msg"], "keep one of them", document.mark(second, key=True))
    if kind == "literal_error":
        wanted = str(context.get("expected", "")).replace("'", "`")
        known = [
            item.strip("' ") for item in str(context.get("expected", "")).replace(" or ", ", ").split(",")
        ]
        hint = did_you_mean(str(value), known) or ""
        return say("KG0205", f"{_shown(value)} is not one of the values of `{name}`: {wanted}", hint)
    if kind == "string_pattern_mismatch":
        meaning = _MEANINGS.get(context["pattern"])
        subject = f"the key `{name}`" if line["loc"] and line["loc"][-1] == "[key]" else f"`{name}: {value}`"
        if meaning is None:
            examples = (walk(json_schema(entry), path) or {}).get("examples", [])
            meaning = f"something like `{examples[0]}`" if examples else f"what matches {context['pattern']}"
        at = document.mark(path, key=True) if subject.startswith("the key") else mark
        return say(
            "KG0204",
            f"{subject} is not {meaning}"
            if "such as" in meaning or "like" in meaning
            else f"{subject} may hold only {meaning}",
            at=at,
        )
    if kind in _TYPES:
        wanted = _TYPES[kind]
        raw = document.raw(path)
        hint = ""
        if kind == "string_type" and not isinstance(value, dict | list):
            hint = (
                f'quote it: `{name}: "{raw if raw is not None else value}"`'
                if isinstance(name, str)
                else "quote it"
            )
        elif kind == "list_type":
            hint = "write it as a list, one `- ` a line"
        elif isinstance(value, str) and value:
            hint = (
                "take the quotes away" if raw and value not in {"true", "false"} and raw[:1] in "\"'" else ""
            )
        return say("KG0202", f"`{name}` must be {wanted}, not {_shown(value)}", hint)
    if kind in {"string_too_long", "string_too_short", "too_long", "too_short"}:
        most, least = context.get("max_length"), context.get("min_length")
        unit = "characters" if kind.startswith("string") else "entries"
        limit = f"at most {most}" if most is not None else f"at least {least}"
        return say("KG0208", f"`{name}` has {len(value)} {unit}; it may have {limit}")
    bounds = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
    if kind in bounds:
        field_name, word = bounds[kind]
        return say("KG0208", f"`{name}` is {value}; it must be {word} {context[field_name]}")
    return say("KG0210", f"`{name}`: {line['msg'].removeprefix('Value error, ')}")


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".") if text else ""
