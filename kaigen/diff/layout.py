"""Builds the texts that the terminal and the pull-request comment share: summaries, names and field lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import takewhile

from msgspec.structs import replace

from kaigen.core.text import plural
from kaigen.diff.formatting import clean, clip, value, weight
from kaigen.diff.model import Absent, AppChange, Change, Effect, FieldChange, Level, ObjectChange

NOTHING = "No changes to the rendered objects."

MAX_FIELDS = 40
"""The most fields of one object that are printed."""

MAX_TEXT_LINES = 12
"""The most lines of one changed text that are printed."""

_MAX_VALUE = 160
_CONTEXT = 30
"""Characters before a difference of two long texts."""


def headline(change: Change) -> str:
    """Return the number of changes in one sentence, starting with `NOTHING` when no app changes."""
    parts = []
    if change.apps:
        counts = [plural(count, level) for level in ("danger", "notice") if (count := change.count(level))]
        apps = f"{plural(len(change.apps), 'app')} {'changes' if len(change.apps) == 1 else 'change'}"
        parts.append(f"{apps}: {' and '.join(counts)}." if counts else f"{apps}.")
    else:
        parts.append(NOTHING)
    if change.formatting_only:
        files = plural(change.formatting_only, "file")
        parts.append(f"{files} {'differs' if change.formatting_only == 1 else 'differ'} in formatting only.")
    if change.other_files:
        others = plural(change.other_files, "other file")
        parts.append(f"{others} {'differs' if change.other_files == 1 else 'differ'}.")
    return " ".join(parts)


def group_apps(change: Change) -> list[tuple[AppChange, str]]:
    """Return the apps with the titles to print; one that changes alike in several environments is there once.

    Its place is that of the first one. Environments are in the order of promotion.
    """
    groups: dict[str, list[AppChange]] = {}  # By text: values of fields may be lists and mappings, which have no hash.
    order = {root: number for number, root in enumerate(change.order)}
    ordered = iter(
        sorted((app for app in change.apps if app.root in order), key=lambda app: (-app.rank, order[app.root]))
    )
    for app in (next(ordered) if each.root in order else each for each in change.apps):
        objects = tuple(replace(item, namespace="", path="") for item in app.objects)
        groups.setdefault(repr(replace(app, root="", namespace="", objects=objects)), []).append(app)
    return [(apps[0], _title(apps, change.order)) for apps in groups.values()]


def _title(apps: list[AppChange], order: Sequence[str]) -> str:
    if len(apps) == 1:
        return apps[0].title
    if not set(order).issuperset(app.root for app in apps):
        return ", ".join(app.title for app in apps)
    apps = sorted(apps, key=lambda app: order.index(app.root))
    if len({app.namespace for app in apps}) > 1:
        return f"{', '.join(app.title for app in apps)} alike"
    return f"{apps[0].namespace}/{apps[0].name} in {', '.join(app.root for app in apps)} alike"


def object_name(item: ObjectChange, arrow: str) -> str:
    """Return kind and name of an object, with both names if they differ: `Job a-1234 -> a-5678`."""
    kind = item.kind or "file"
    if item.old_name and item.new_name and item.old_name != item.new_name:
        return clean(f"{kind} {item.old_name} {arrow} {item.new_name}")
    return clean(f"{kind} {item.name}")


def app_summary(app: AppChange, limit: int = 3) -> tuple[list[Effect], int]:
    """Return the most important effects on an app, each with its object, and how many are left out.

    Dangers are listed up to twice the limit; obvious effects of added and removed apps are left out.
    """
    found: dict[str, Effect] = {}
    whole = app.status in ("added", "removed")
    if whole and (app.objects or app.charts):
        objects = plural(len(app.objects), "object") if app.objects else "a chart"
        text = f"new app with {objects}" if app.status == "added" else f"removed with {objects}"
        level: Level = "info" if app.status == "added" else "notice"
        found[text] = Effect(level, text, app.status)
    ranked = sorted(app.all_effects(), key=lambda pair: -pair[1].rank)
    for item, effect in ranked:
        if (whole and effect.level == "info") or (app.status == "moved" and item and effect.rule == "moved"):
            continue
        text = effect.text
        if item is not None and f"{item.kind} {item.name}" not in text:
            text = f"{item.kind or 'file'} {item.name}: {text}"
        found.setdefault(text, Effect(effect.level, text, effect.rule))
    if app.charts and not app.objects and not whole:
        text = f"{plural(app.charts, 'file')} of its chart {'differs' if app.charts == 1 else 'differ'}"
        found[text] = Effect("info", text, "chart")
    dangers = sum(effect.level == "danger" for effect in found.values())
    count = max(limit, min(dangers, 2 * limit))
    if len(found) == count + 1:
        count += 1
    ranked_effects = sorted(found.values(), key=lambda effect: (-effect.rank, -weight(effect.text)))
    return ranked_effects[:count], max(len(ranked_effects) - count, 0)


def counts(app: AppChange) -> str:
    """Return the numbers of changed, replaced, added and removed objects and of chart files, as text."""
    parts: list[str] = []
    for status in ("changed", "replaced", "added", "removed"):
        count = sum(item.status == status for item in app.objects)
        if count:
            parts.append(f"{plural(count, 'object') if not parts else count} {status}")
    if app.charts:
        whole = app.status in ("added", "removed")
        parts.append(plural(app.charts, "chart file") + ("" if whole else " changed"))
    return ", ".join(parts)


def more(count: int, noun: str, nouns: str = "") -> str:
    """`and 3 more apps`."""
    return f"and {count} more {noun if count == 1 else nouns or noun + 's'}"


def field_lines(change: FieldChange) -> Iterator[str]:
    """Yield the lines of one field in the style of a diff: they start with `-`, `+`, `@` or a blank."""
    path = clean(change.path)
    old, new = change.old, change.new
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        yield f"@@ {path} @@"
        yield from _text_lines(old, new)
        return
    if isinstance(old, str) and isinstance(new, str):
        old, new = _from_difference(old, new)
    if not isinstance(old, Absent):
        yield f"- {path}: {value(old, _MAX_VALUE)}"
    if not isinstance(new, Absent):
        yield f"+ {path}: {value(new, _MAX_VALUE)}"


def _from_difference(old: str, new: str) -> tuple[str, str]:
    """Return two long texts from shortly before the place where they differ."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    if max(len(old), len(new)) <= _MAX_VALUE or same <= _CONTEXT:
        return old, new
    start = same - _CONTEXT
    return f"…{old[start:]}", f"…{new[start:]}"


def _text_lines(old: str, new: str) -> Iterator[str]:
    before, after = old.split("\n"), new.split("\n")
    if before[-1:] == after[-1:] == [""]:
        before, after = before[:-1], after[:-1]
    if len(before) + len(after) > 4000:
        # difflib takes quadratic time, and no one reviews a text of that size here.
        yield f"- {plural(len(before), 'line')}"
        yield f"+ {plural(len(after), 'line')}"
        return
    lines = [line for line in unified_diff(before, after, n=1, lineterm="") if not line.startswith(("---", "+++"))]
    shown = [line for line in lines if not line.startswith("@@")]
    for line in shown[:MAX_TEXT_LINES]:
        yield clip(f"{line[0]} {clean(line[1:])}", _MAX_VALUE)
    if len(shown) > MAX_TEXT_LINES:
        yield f"  ({more(len(shown) - MAX_TEXT_LINES, 'line')})"
