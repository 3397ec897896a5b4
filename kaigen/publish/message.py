"""The message of a publication's commit: a summary for people, and trailers that the next publication reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kaigen import __version__
from kaigen.core.text import shown_name
from kaigen.publish.results import TreeResult
from kaigen.publish.source import Source

SUBJECT_LENGTH = 72
MOST_APPS = 100
"""The most apps that the body lists per tree and kind of change."""

_TRAILER = re.compile(r"^[A-Za-z][A-Za-z-]*: \S")


def commit_message(source: Source, trees: Sequence[TreeResult], given: str = "") -> str:
    """Return the message of a commit.

    Args:
        source: what was rendered.
        trees: all trees, changed or not.
        given: subject and body to use instead of the generated ones.
    """
    touched = [tree for tree in trees if any(tree.files) or tree.apps.all]
    body = given.strip() or "\n\n".join([subject(touched), *(_body(tree) for tree in touched)])
    return f"{body}\n\n{trailers(source)}\n"


def subject(trees: Sequence[TreeResult]) -> str:
    """Return the first line: the environments, and as many apps as fit."""
    where = ", ".join(shown_name(tree.environment) for tree in trees if tree.environment)
    head = f"Render {where}: " if where and len(where) < 40 else f"Render {len(trees)} trees: " if where else "Render "
    apps = sorted({shown_name(app) for tree in trees for app in tree.apps.all})
    if not apps:
        return f"{head.rstrip(': ')} again" if where else "Render again"
    shown: list[str] = []
    for number, app in enumerate(apps):
        left = len(apps) - number - 1
        tail = f" and {left} more" if left else ""
        if shown and len(head + ", ".join([*shown, app]) + tail) > SUBJECT_LENGTH:
            break
        shown.append(app)
    hidden = len(apps) - len(shown)
    return head + ", ".join(shown) + (f" and {hidden} more" if hidden else "")


def _body(tree: TreeResult) -> str:
    path = shown_name(tree.path or ".")
    head = f"{shown_name(tree.environment)} ({path}):" if tree.environment else f"{path}:"
    lines = [head]
    for word, apps in (("added", tree.apps.added), ("changed", tree.apps.changed), ("removed", tree.apps.removed)):
        lines += [f"- {word} {shown_name(app)}" for app in apps[:MOST_APPS]]
        if len(apps) > MOST_APPS:
            lines.append(f"- {word} {len(apps) - MOST_APPS} more")
    if len(lines) == 1:
        lines.append("- files that belong to no app")
    return "\n".join(lines)


def trailers(source: Source) -> str:
    """Return the last paragraph, in the format of `git interpret-trailers`."""
    lines = [f"Source-Commit: {source.commit}"]
    if source.repository:
        lines.append(f"Source-Repository: {source.repository}")
    if source.folder:
        lines.append(f"Source-Folder: {shown_name(source.folder)}")
    if source.dirty:
        lines.append("Source-State: uncommitted changes")
    lines.append(f"Rendered-By: kaigen {__version__}")
    return "\n".join(lines)


def read_trailers(message: str) -> dict[str, str]:
    """Return the trailers of a message that kaigen wrote, even after a code host squashed or merged it."""
    found = {}
    for line in message.split("\n"):
        name, colon, value = line.strip().partition(": ")
        if colon and _TRAILER.match(line.strip()):
            found[name] = value.strip()
    return found
