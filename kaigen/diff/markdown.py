"""Prints a change as a pull-request comment for GitHub, GitLab and Gitea."""

from __future__ import annotations

import re

from kaigen.config.settings import LOCK_NAME
from kaigen.core.text import plural
from kaigen.diff.formatting import clean
from kaigen.diff.layout import MAX_FIELDS, app_summary, counts, field_lines, group_apps, headline, more, object_name
from kaigen.diff.model import AppChange, Change, Effect, ObjectChange

MARKER = "<!-- kaigen diff -->"
"""The first line, which identifies the comment when a pipeline updates it."""

MIN_CHARS = 500
"""The minimum length of a useful comment."""
MAX_CHARS = 60_000
"""Default length of the text; GitHub allows 65,536 characters."""

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
# A zero-width space keeps `@name`, `#12`, GitLab's `!12` and `owner/repo@sha` from becoming mentions and references.
_MENTION = re.compile(r"([@#!])(?=[\w-])")
_TICKS = re.compile("`+")
_MAX_OBJECTS = 50


def render_markdown(change: Change, max_chars: int = MAX_CHARS) -> str:
    """Return a change as Markdown, ending in a newline: a table of apps, then folded details of each.

    Args:
        change: the result of `compare`.
        max_chars: maximum length of the text, at least 500.
            Details that do not fit are omitted from the end, where the least important apps are, and counted.
    """
    head = escape(headline(change))
    if not change.apps:
        return f"{MARKER}\n{head}\n{_lock(change, max_chars // 4)}"
    budget = max(max_chars, MIN_CHARS)
    text = f"{MARKER}\n**{head}**\n{_lock(change, budget // 4)}"
    text += _table(change, min(budget // 2, budget - len(text)))
    omitted = 0
    reserve = len(_omitted(len(change.apps)))
    for app, title in group_apps(change):
        details = _details(app, title, budget - len(text) - reserve)
        text += details
        omitted += not details
    return text + (_omitted(omitted) if omitted else "")


def _lock(change: Change, limit: int) -> str:
    """Return what a changed lock means as a list, about `limit` characters."""
    text = ""
    for number, line in enumerate(change.lock):
        item = f"- {escape(line)}\n"
        if len(text) + len(item) > limit:
            return f"{text}- _and {plural(len(change.lock) - number, 'entry', 'entries')} more_\n"
        text = text or f"\nWhat `{LOCK_NAME}` stands for:\n\n"
        text += item
    return text


def _omitted(count: int) -> str:
    return f"\n_The details of {plural(count, 'app')} do not fit here._\n"


def _table(change: Change, limit: int) -> str:
    """Return the table, at most `limit` characters."""
    text = "\n| App | What happens |\n|---|---|\n"
    groups = group_apps(change)
    for number, (app, title) in enumerate(groups):
        left = len(groups) - number
        last = f"| … | {more(left, 'app')} |\n"
        room = limit - len(text) - (len(last) if left > 1 else 0)
        row = _row(app, title, 3)
        if len(row) > room:
            row = _row(app, title, 1)
        if len(row) > room:
            return text + last
        text += row
    return text


def _row(app: AppChange, title: str, limit: int) -> str:
    effects, rest = app_summary(app, limit)
    parts = [_effect(effect) for effect in effects]
    if rest:
        parts.append(more(rest, "effect"))
    return f"| {code_span(title)} | {'<br>'.join(parts)} |\n"


def _effect(effect: Effect) -> str:
    text = escape(effect.text)
    return text if effect.level == "info" else f"**{effect.level}:** {text}"


def _details(app: AppChange, title: str, rest: int) -> str:
    """Return the app's details, without fields if these do not fit; empty if nothing fits."""
    short = _whole(app, title, with_fields=False)
    if len(short) > rest:
        return ""
    full = _whole(app, title, with_fields=True)
    return full if len(full) <= rest else short


def _whole(app: AppChange, title: str, *, with_fields: bool) -> str:
    detail = counts(app)
    head = f"{title} ({app.summary}){': ' + detail if detail else ''}"
    text = f"\n<details><summary>{_html(head)}</summary>\n\n"
    for effect in app.effects:
        text += f"- {_effect(effect)}\n"
    for item in app.objects[:_MAX_OBJECTS]:
        text += _object(item, with_fields=with_fields)
    if len(app.objects) > _MAX_OBJECTS:
        text += f"- {more(len(app.objects) - _MAX_OBJECTS, 'object')}\n"
    if not with_fields and any(item.fields for item in app.objects):
        text += "\n_Its fields do not fit here._\n"
    return text.rstrip("\n") + "\n\n</details>\n"


def _object(item: ObjectChange, *, with_fields: bool) -> str:
    text = f"- {code_span(object_name(item, '→'))} {item.status}\n"
    for effect in item.effects:
        text += f"  - {_effect(effect)}\n"
    if not with_fields or not item.fields:
        return text
    lines = [line for field in item.fields[:MAX_FIELDS] for line in field_lines(field)]
    if len(item.fields) > MAX_FIELDS:
        lines.append(f"  ({more(len(item.fields) - MAX_FIELDS, 'field')})")
    fence = "`" * max(3, 1 + max((len(run) for line in lines for run in _TICKS.findall(line)), default=0))
    body = "".join(f"  {line}\n" for line in lines)
    return f"{text}\n  {fence}diff\n{body}  {fence}\n\n"


def escape(text: str) -> str:
    """Return text on one line, escaped for Markdown, HTML and table cells."""
    return _MENTION.sub("\\1\u200b", _SPECIAL.sub(r"\\\1", clean(text)))


def _html(text: str) -> str:
    escaped = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub("\\1\u200b", escaped)


def code_span(text: str) -> str:
    """Return a code span on one line that is safe with backticks in the text and in table cells."""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    body = clean(text).replace("|", "\\|")
    return f"{fence}{pad}{body}{pad}{fence}"
