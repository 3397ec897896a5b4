"""A user kind's templates: rendered, read as YAML, and every problem told at its line of the template."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.yaml.sources import Source

if TYPE_CHECKING:
    from kaigen.extend.definition import Definition
    from kaigen.extend.sandbox import Run, Sandbox
    from kaigen.yaml.document import Document


def place_in(source: Source, line: int, word: str = "") -> Mark:
    """A line of a template, or a word on it where it has that word."""
    lines = source.text.split("\n")
    text = lines[line - 1].removesuffix("\r") if 0 < line <= len(lines) else ""
    at = -1
    if word:
        found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        at = found.start() if found else text.find(word)
    if at < 0:
        at, word = len(text) - len(text.lstrip()), text.strip()
    return Mark(source.path, line, at + 1, max(1, len(word)), text)


def check_templates(templates: Mapping[str, Source]) -> list[Diagnostic]:
    """What no template engine could read."""
    from jinja2.exceptions import TemplateSyntaxError

    environment = _environment(tuple(templates.items()))
    found = []
    for name, source in templates.items():
        try:
            environment.compile(environment.parse(source.text, name, source.path))
        except TemplateSyntaxError as error:
            found.append(_syntax(source, error))
    return found


def _syntax(source: Source, error: Any) -> Diagnostic:
    message = str(error.message).rstrip(".")
    unknown = re.match(r"No (filter|test) named '([^']*)'", message)
    if unknown:
        from kaigen.extend.sandbox import Sandbox

        environment = Sandbox(lambda _: None)
        known = environment.filters if unknown[1] == "filter" else environment.tests
        hint = did_you_mean(unknown[2], known) or "there are " + ", ".join(
            f"`{name}`" for name in sorted(known)
        )
        return Diagnostic(
            "KG1004", f"no {unknown[1]} `{unknown[2]}`", place_in(source, error.lineno, unknown[2]), hint
        )
    word = re.search(r"'([^']+)'", message)
    text = message[0].lower() + message[1:].replace("'", "`")
    mark = place_in(source, error.lineno, word[1] if word else "")
    return Diagnostic("KG1004", f"this is no Jinja2: {text}", mark)


@lru_cache(maxsize=16)
def _environment(templates: tuple[tuple[str, Source], ...]) -> Sandbox:
    from kaigen.extend.sandbox import Sandbox

    sources = dict(templates)

    def load(name: str) -> tuple[str, str] | None:
        source = sources.get(name)
        return None if source is None else (source.text, source.path)

    return Sandbox(load)


@dataclass(frozen=True, slots=True)
class Rendered:
    """One template's output, as YAML.

    Attributes:
        template: its name.
        documents: what it holds.
        lines: where each part of it comes from.
    """

    template: str
    documents: list[Document]
    lines: LineMap


class LineMap:
    """From places of an output to places of the templates that made it."""

    def __init__(self, text: str, sources: Mapping[str, Source]) -> None:
        """Take the marks out of a text.

        Args:
            text: an output with its marks.
            sources: the templates by name.
        """
        from kaigen.extend.instrument import PLACE

        self._sources = sources
        self._starts: list[int] = []
        self._places: list[tuple[str, int]] = []
        parts, last, length = [], 0, 0
        for match in PLACE.finditer(text):
            piece = text[last : match.start()]
            parts.append(piece)
            length += len(piece)
            last = match.end()
            if self._starts and self._starts[-1] == length:
                self._places[-1] = (match[1], int(match[2]))
            else:
                self._starts.append(length)
                self._places.append((match[1], int(match[2])))
        parts.append(text[last:])
        self.text = "".join(parts)
        self._lines = [0, *(found.end() for found in re.finditer("\n", self.text))]

    def place(self, mark: Mark) -> Mark:
        """The template's place of a place of the output."""
        line = min(max(mark.line, 1), len(self._lines))
        start = self._lines[line - 1]
        offset = start + max(mark.column, 1) - 1
        # A value's place is that of its line: what stands before the value was written by the template.
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return Mark(next(iter(self._sources.values())).path)
        name, number = self._places[index]
        word = mark.text[mark.column - 1 : mark.column - 1 + mark.length].split(": ")[0].rstrip(":")
        return place_in(self._sources[name], number, word)


def render(definition: Definition, run: Run, names: Mapping[str, Any], found: Diagnostics) -> list[Rendered]:
    """Render every template of a kind that makes objects.

    Args:
        definition: the kind.
        run: takes the tokens.
        names: what templates know.
        found: takes what is wrong, at its place in a template.
    """
    from kaigen.yaml.document import parse

    environment = _environment(tuple(definition.templates.items()))
    environment.run = run
    made = []
    for name in definition.objects():
        text = _text(environment, definition, name, names, found)
        if text is None:
            continue
        source = definition.templates[name]
        lines = LineMap(text, definition.templates)
        told = Diagnostics()
        documents = parse(Source(source.path, lines.text), told)
        for item in told:
            mark = lines.place(item.mark) if item.mark else None
            message, hint = shown_tokens(item.message, run), shown_tokens(item.hint, run)
            found.add(replace(item, message=message, hint=hint, mark=mark))
        made.append(Rendered(name, documents, lines))
    return made


def shown_tokens(text: str, run: Run) -> str:
    """A text with what its tokens stand for."""

    def shown(match: re.Match[str]) -> str:
        value = run.values[int(match[1])]
        return (
            value if isinstance(value, str) else "{{ … }}" if isinstance(value, dict | list) else str(value)
        )

    return re.sub(rf"{run.nonce}([0-9]+)z", shown, text)


def _text(
    environment: Sandbox, definition: Definition, name: str, names: Mapping[str, Any], found: Diagnostics
) -> str | None:
    from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateSyntaxError, UndefinedError

    from kaigen.extend.sandbox import MAX_TEXT, Misused, TooMuch

    def tell(error: BaseException, message: str, hint: str = "", word: str = "") -> None:
        source, line = _where(error.__traceback__, definition.templates.values()) or (
            definition.templates[name],
            1,
        )
        found.add(Diagnostic("KG1005", message, place_in(source, line, word), hint))

    parts: list[str] = []
    length = 0
    try:
        for part in environment.get_template(name).generate(**names):
            length += len(part)
            if length > MAX_TEXT:
                raise TooMuch(f"the template makes more than {MAX_TEXT:,} characters: it was stopped")
            parts.append(part)
        return "".join(parts)
    except TemplateSyntaxError as error:
        found.add(_syntax(definition.templates[error.name or name], error))
    except TemplateNotFound as error:
        wanted = str(error.name)
        hint = did_you_mean(wanted, definition.templates) or (
            "a template includes only templates of its own kind: " + ", ".join(definition.templates)
        )
        tell(error, f"no template `{wanted}`", hint, wanted)
    except UndefinedError as error:
        message, _, rest = str(error.message).partition("\0")
        hint, _, word = rest.partition("\0")
        tell(error, message, hint, word)
    except SecurityError as error:
        tell(error, str(error).rstrip("."))
    except Misused as error:
        tell(error, str(error), error.hint)
    except TooMuch as error:
        tell(error, str(error), "bound what it goes through, for example by `maxItems` in the schema")
    except RecursionError as error:
        tell(error, "the template calls or includes itself without end")
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        text = str(error) or type(error).__name__
        tell(error, f"the template fails: {text[:200]}")
    return None


def _where(trace: TracebackType | None, sources: Any) -> tuple[Source, int] | None:
    """The innermost line of a template in a traceback."""
    files = {source.path: source for source in sources}
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in files:
            found = (files[file], trace.tb_lineno)
        trace = trace.tb_next
    return found
