"""Render a user kind's templates in another process, read the output as YAML, and report errors at their lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.extend import process
from kaigen.extend.tokens import FIRST_TOKENS, SOURCE_MARK, MisusedValue
from kaigen.extend.wire import (
    LIMIT,
    Check,
    Failure,
    Locate,
    Output,
    Render,
    Rendered,
    SettingCall,
    SettingPath,
    TemplateRequest,
    decode,
    encode,
    plain,
)
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

if TYPE_CHECKING:
    from kaigen.compile.expressions import Setting
    from kaigen.extend.defined_kind import Definition
    from kaigen.extend.tokens import Run
    from kaigen.yaml.document import Document

T = TypeVar("T")


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
    request = TemplateRequest(check=Check({name: source.text for name, source in templates.items()}))
    try:
        failures = _ask(request, list[Failure])
    except process.Stopped as stopped:
        return [_stopped(stopped, templates, list(templates))]
    return [_diagnostic(failure, templates) for failure in failures if failure.template in templates]


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
            if match[1] not in sources:
                continue
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
    definition: Definition,
    run: Run,
    names: Mapping[str, Any],
    add_setting: Callable[[SettingCall], Setting],
    diagnostics: Diagnostics,
) -> list[RenderedTemplate]:
    """Render every template of a kind that makes objects.

    Args:
        definition: the kind.
        run: receives the values of the tokens.
        names: the names that templates can use and that have no tokens.
        add_setting: returns the setting of a call, or raises `MisusedValue`.
        diagnostics: collects errors, each at its line of a template.
    """
    try:
        answer = _rendered(definition, run, names)
    except process.Stopped as stopped:
        diagnostics.add(_stopped(stopped, definition.templates, definition.objects()))
        return []
    settings: dict[str, Setting] = {}
    outputs = [output for output in answer.outputs if output.template in definition.templates]
    outputs = [
        output for output in outputs if _is_usable(output, definition.templates, settings, add_setting, diagnostics)
    ]
    values = (settings.get(value.path) if isinstance(value, SettingPath) else value for value in answer.values)
    run.values += values
    return [_read(output, definition.templates, run, diagnostics) for output in outputs]


def _rendered(definition: Definition, run: Run, names: Mapping[str, Any]) -> Rendered:
    assert len(run.values) == len(FIRST_TOKENS)
    request = Render(_texts(definition), tuple(definition.objects()), definition.signature, run.nonce, plain(names))
    return _ask(TemplateRequest(render=request), Rendered)


@lru_cache(maxsize=16)
def _texts(definition: Definition) -> msgspec.Raw:
    return msgspec.Raw(encode({name: source.text for name, source in definition.templates.items()}))


def _ask(request: TemplateRequest, type_: type[T]) -> T:
    answer = process.ask(process.TEMPLATES, encode(request))
    try:
        return decode(answer, type_)
    except ValueError as error:
        process.forget(process.TEMPLATES)
        raise process.unreadable(error) from None


def _is_usable(
    output: Output,
    templates: Mapping[str, Source],
    settings: dict[str, Setting],
    add_setting: Callable[[SettingCall], Setting],
    diagnostics: Diagnostics,
) -> bool:
    """Return whether an output has no error, after reporting it; add its settings."""
    for call in output.settings:
        try:
            settings[call.path] = add_setting(call)
        except MisusedValue as error:
            place = call.template if call.template in templates else output.template
            failure = Failure(place, call.line, error.message, error.hint, error.word)
            diagnostics.add(_diagnostic(failure, templates))
            return False
    if output.failure is not None and output.failure.template in templates:
        diagnostics.add(_diagnostic(output.failure, templates))
    return output.failure is None


def _diagnostic(failure: Failure, templates: Mapping[str, Source]) -> Diagnostic:
    mark = mark_line(templates[failure.template], failure.line, failure.word)
    if failure.code == LIMIT:
        process.forget(process.TEMPLATES)  # what is left of its memory may not be enough
        stopped = process.out_of_memory(0)
        return Diagnostic(LIMIT, f"the template {stopped.message}", mark, stopped.hint)
    return Diagnostic(failure.code, failure.message, mark, failure.hint)


def _stopped(stopped: process.Stopped, templates: Mapping[str, Source], names: Sequence[str]) -> Diagnostic:
    """Return the diagnostic of templates whose process ended, at the line that was running where it is known."""
    name, line = names[min(stopped.place, len(names) - 1)], 1
    every = list(templates)
    if stopped.line is not None and stopped.line[0] < len(every):
        name, code_line = every[stopped.line[0]], stopped.line[1]
        texts = {each: source.text for each, source in templates.items()}
        with suppress(process.Stopped, ValueError):
            line = _ask(TemplateRequest(locate=Locate(texts, name, code_line)), int)
    return Diagnostic(LIMIT, f"the template {stopped.message}", mark_line(templates[name], line), stopped.hint)


def _read(output: Output, templates: Mapping[str, Source], run: Run, diagnostics: Diagnostics) -> RenderedTemplate:
    lines = LineMap(output.text, templates)
    own = Diagnostics()
    documents = parse(Source(templates[output.template].path, lines.text), own)
    for item in own:
        mark = lines.source_mark(item.mark) if item.mark else None
        message, hint = expand_tokens(item.message, run), expand_tokens(item.hint, run)
        diagnostics.add(replace(item, message=message, hint=hint, mark=mark))
    return RenderedTemplate(output.template, documents, lines)


def expand_tokens(text: str, run: Run) -> str:
    """Return a text with the values that its tokens replace, for messages."""

    def value_text(match: re.Match[str]) -> str:
        number = int(match[1])
        value = run.values[number] if number < len(run.values) else None
        return "{{ … }}" if isinstance(value, dict | list) else str(value)

    return re.sub(rf"{run.nonce}([0-9]{{1,9}})z", value_text, text)
