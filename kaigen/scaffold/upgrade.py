"""`kaigen upgrade`: schemas, hooks, pipelines and pinned images of a repository, for the installed version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from kaigen.catalog.images import default_images
from kaigen.scaffold.changes import FileChange, add_lines, read_text
from kaigen.scaffold.place import find_place
from kaigen.scaffold.templates import ATTRIBUTES, CONFIG, GITLAB, HOOKS, IGNORED, TAG, Choices, root_files, schema_files

_PINS = (
    r"(repo: \S*kaigen-dev/kaigen(?:\.git)?[ \t]*\n(?:[ \t]*#.*\n)*[ \t]+rev:[ \t]*)([^\s#]+)",
    r"(kaigen-dev/kaigen/gitops/github-(?:action|comment)@)([^\s#]+)",
    r"(kaigen-dev/kaigen/)([^/\s]+)(?=/gitops/)",
    r"(kaigen\.gitlab-ci\.yml[ \t]*\n[ \t]+inputs:[ \t]*\{version:[ \t]*)([^\s,}]+)",
)
"""Where pipelines and hooks name the version of kaigen: the text before it, and the version."""


def plan_upgrade(root: Path, *, images: bool = True) -> list[FileChange]:
    """Return the changes of a repository that the installed version needs, by path.

    Args:
        root: folder of kaigen.yaml.
        images: change the pinned images, too, which starts Jobs again.
    """
    place = find_place(root)
    lines = root_files(Choices(), place)
    changes = [FileChange(root / path, read_text(root / path), text) for path, text in schema_files().items()]
    for path in (IGNORED, ATTRIBUTES):
        old = read_text(root / path)
        changes.append(FileChange(root / path, old, add_lines(old or "", lines[path])))
    workflows = place.top / ".github" / "workflows"
    for file in (place.top / HOOKS, place.top / GITLAB, *sorted(workflows.glob("*.y*ml"))):
        text = read_text(file)
        if text is not None:
            changes.append(FileChange(file, text, _with_version(text)))
    config = read_text(root / CONFIG)
    if config is not None and images:
        changes.append(FileChange(root / CONFIG, config, _with_images(config, default_images())))
    return sorted(changes, key=lambda change: change.path)


def _with_version(text: str) -> str:
    for pattern in _PINS:
        text = re.sub(pattern, lambda match: match[1] + _newer(match[2]), text)
    return text


def _newer(pinned: str) -> str:
    """Return the installed version in the form of a pinned one; the pinned one if it is newer, or is a commit."""
    own = TAG if pinned.startswith("v") else TAG[1:]
    return own if _is_older(pinned, own) else pinned


def _with_images(text: str, images: Mapping[str, str]) -> str:
    """Return kaigen.yaml with newer tags of kaigen's own images. A digest, or an image of a mirror, stays."""
    for reference in images.values():
        name, _, tag = reference.rpartition(":")

        def tagged(match: re.Match[str], tag: str = tag) -> str:
            return match[1] + (tag if _is_older(match[2], tag) else match[2])

        text = re.sub(rf"(:[ \t]*[\"']?{re.escape(name)}:)([\w.-]+)(?![\w.@-])", tagged, text)
    return text


def _is_older(pinned: str, own: str) -> bool:
    numbers = list(_numbers((pinned, own)))
    return len(numbers) == 2 and numbers[0] < numbers[1]


def _numbers(versions: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    for version in versions:
        found = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", version)
        if found:
            yield tuple(map(int, found.groups()))
