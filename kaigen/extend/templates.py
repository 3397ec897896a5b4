"""Render a user kind's templates, read the output as YAML, and report every error at its line of the template."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import (
    SecurityError,
    TemplateNotFound,
    TemplateRuntimeError,
    TemplateSyntaxError,
    UndefinedError,
)
from msgspec import Struct
from msgspec.structs import replace

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.instrument import SOURCE_MARK
from kaigen.extend.sandbox import MAX_TEXT, Sandbox
from kaigen.extend.template_errors import LimitExceeded, TemplateFailure, UndefinedName
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

if TYPE_CHECKING:
    from kaigen.extend.definition import Definition
    from kaigen.extend.sandbox import Run
    from kaigen.yaml.document import Document


TOO_DEEP = "the template is nested too deep"


def mark_line(source: Source, line: int, word: str = "") -> Mark:
    """Return the mark of a template's line, or of a word on it where the line has that word."""
    lines = source.text.split("\n")
    text = lines[line - 1].removesuffix("\r") if 0 < line <= len(lines) else ""
    at = -1
    if word:
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        at = match.start() if match else text.find(word)
    if at < 0:
        at, word = len(text) - len(text.lstrip()), text.strip()
    return Mark(source.path, line, at + 1, max(1, len(word)), text)


def check_templates(templates: Mapping[str, Source]) -> list[Diagnostic]:
    """Return the syntax errors of some templates."""
    environment = _environment(tuple(templates.items()))
    errors = []
    for name, source in templates.items():
        try:
            environment.compile(environment.parse(source.text, name, source.path))
        except TemplateSyntaxError as error:
            errors.append(_syntax_error(source, error))
        except (RecursionError, MemoryError, SyntaxError, AssertionError):
            errors.append(
                Diagnostic("KG1004", TOO_DEEP, mark_line(source, 1), "split it into several templates")
            )
    return errors


def _syntax_error(source: Source, error: Any) -> Diagnostic:
    message = str(error.message).rstrip(".")
    unknown = re.match(r"No (filter|test) named '([^']*)'", message)
    if unknown:
        kind, name = unknown.groups()
        environment = Sandbox(lambda _: None)
        known = environment.filters if kind == "filter" else environment.tests
        hint = did_you_mean(name, known) or f"{kind}s: " + ", ".join(f"`{each}`" for each in sorted(known))
        return Diagnostic("KG1004", f"unknown {kind} `{name}`", mark_line(source, error.lineno, name), hint)
    word = re.search(r"'([^']+)'", message)
    text = message[0].lower() + message[1:].replace("'", "`")
    mark = mark_line(source, error.lineno, word[1] if word else "")
    return Diagnostic("KG1004", f"Jinja2 syntax error: {text}", mark)


@lru_cache(maxsize=16)
def _environment(templates: tuple[tuple[str, Source], ...]) -> Sandbox:
    sources = dict(templates)

    def load(name: str) -> tuple[str, str] | None:
        source = sources.get(name)
        return None if source is None else (source.text, source.path)

    return Sandbox(load)


class RenderedTemplate(Struct, frozen=True):
    """One template's output, as YAML.

    Attributes:
        template: its name.
        documents: the documents of the output.
        lines: the template lines that wrote each part of it.
    """

    template: str
    documents: list[Document]
    lines: LineMap


class LineMap:
    """Maps positions of an output to the lines of the templates that wrote them.

    Attributes:
        text: the output without its source marks.
    """

    def __init__(self, text: str, sources: Mapping[str, Source]) -> None:
        """Remove the source marks from an output and remember them.

        Args:
            text: an output with its source marks.
            sources: the templates by name.
        """
        self._sources = sources
        self._starts: list[int] = []
        self._origins: list[tuple[str, int]] = []
        parts, last, length = [], 0, 0
        for match in SOURCE_MARK.finditer(text):
            piece = text[last : match.start()]
            parts.append(piece)
            length += len(piece)
            last = match.end()
            if self._starts and self._starts[-1] == length:
                self._origins[-1] = (match[1], int(match[2]))
            else:
                self._starts.append(length)
                self._origins.append((match[1], int(match[2])))
        parts.append(text[last:])
        self.text = "".join(parts)
        self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def source_mark(self, mark: Mark) -> Mark:
        """Return the place in a template that wrote a place of the output."""
        line = min(max(mark.line, 1), len(self._lines))
        offset = self._lines[line - 1] + max(mark.column, 1) - 1
        # The last source mark before a value is that of its line: the template wrote the key on it.
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return Mark(next(iter(self._sources.values())).path)
        name, number = self._origins[index]
        word = mark.text[mark.column - 1 : mark.column - 1 + mark.length].split(": ")[0].rstrip(":")
        return mark_line(self._sources[name], number, word)


def render(
    definition: Definition, run: Run, names: Mapping[str, Any], diagnostics: Diagnostics
) -> list[RenderedTemplate]:
    """Render every template of a kind that makes objects.

    Args:
        definition: the kind.
        run: takes the tokens.
        names: the names that templates can use.
        diagnostics: collects errors, each at its line of a template.
    """
    environment = _environment(tuple(definition.templates.items()))
    environment.run = run
    outputs = []
    for name in definition.objects():
        text = _output(environment, definition, name, names, diagnostics)
        if text is None:
            continue
        lines = LineMap(text, definition.templates)
        own = Diagnostics()
        documents = parse(Source(definition.templates[name].path, lines.text), own)
        for item in own:
            mark = lines.source_mark(item.mark) if item.mark else None
            message, hint = expand_tokens(item.message, run), expand_tokens(item.hint, run)
            diagnostics.add(replace(item, message=message, hint=hint, mark=mark))
        outputs.append(RenderedTemplate(name, documents, lines))
    return outputs


def expand_tokens(text: str, run: Run) -> str:
    """Return a text with the values that its tokens replace, for messages."""

    def value_text(match: re.Match[str]) -> str:
        value = run.values[int(match[1])]
        return "{{ … }}" if isinstance(value, dict | list) else str(value)

    return re.sub(rf"{run.nonce}([0-9]+)z", value_text, text)


def _output(
    environment: Sandbox,
    definition: Definition,
    name: str,
    names: Mapping[str, Any],
    diagnostics: Diagnostics,
) -> str | None:
    """Return the text that one template writes, or None after reporting why it fails."""
    try:
        return _generate(environment, name, names)
    except TemplateSyntaxError as error:
        diagnostics.add(_syntax_error(definition.templates[error.name or name], error))
    except Exception as error:
        failure = _failure(error, definition.templates)
        if failure is None:
            raise
        source, line = _failing_line(error.__traceback__, definition.templates.values()) or (
            definition.templates[name],
            1,
        )
        mark = mark_line(source, line, failure.word)
        diagnostics.add(Diagnostic("KG1005", failure.message, mark, failure.hint))
    return None


def _generate(environment: Sandbox, name: str, names: Mapping[str, Any]) -> str:
    parts: list[str] = []
    length = 0
    for part in environment.get_template(name).generate(**names):
        length += len(part)
        if length > MAX_TEXT:
            raise LimitExceeded(f"the template produced more than {MAX_TEXT:,} characters and was stopped")
        parts.append(part)
    return "".join(parts)


def _failure(error: Exception, templates: Mapping[str, Source]) -> TemplateFailure | None:
    """Return what an exception means to the template's author; None for a bug of kaigen."""
    if isinstance(error, TemplateFailure):
        return error
    if isinstance(error, UndefinedName):
        return error.failure
    if isinstance(error, TemplateNotFound):
        missing = str(error.name)
        hint = did_you_mean(missing, templates) or "templates of this kind: " + ", ".join(
            f"`{name}`" for name in templates
        )
        return TemplateFailure(f"template `{missing}` not found", hint, missing)
    if isinstance(error, SecurityError | UndefinedError):
        return TemplateFailure(str(error).rstrip("."))
    if isinstance(error, MemoryError | SyntaxError):
        return TemplateFailure(TOO_DEEP)
    if isinstance(error, TemplateRuntimeError):
        return TemplateFailure(str(error).rstrip("."))
    if isinstance(error, RecursionError):
        return TemplateFailure("the template calls or includes itself endlessly")
    if isinstance(error, TypeError | ValueError | ArithmeticError | LookupError | AttributeError):
        return TemplateFailure(f"the template failed: {(str(error) or type(error).__name__)[:200]}")
    return None


def _failing_line(trace: TracebackType | None, sources: Iterable[Source]) -> tuple[Source, int] | None:
    """Return the innermost line of a template in a traceback."""
    files = {source.path: source for source in sources}
    innermost = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file in files:
            innermost = (files[file], trace.tb_lineno)
        trace = trace.tb_next
    return innermost
