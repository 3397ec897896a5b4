"""Changes of files that are shown before they are written, all or none, and lines added to files that exist."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.files import read_regular
from kaigen.system.limits import GENERATED_FILE_BYTES

Action = Literal["add", "change", "keep"]
_MARK = "\ufeff"


class FileChange(Struct, frozen=True):
    """What happens to one file.

    Attributes:
        path: the file.
        old: its content; None if it does not exist.
        new: its content afterwards.
        note: why it is kept, or what to do by hand; may be empty.
    """

    path: Path
    old: str | None
    new: str
    note: str = ""

    @property
    def action(self) -> Action:
        """What happens to the file."""
        if self.old is None:
            return "add"
        return "keep" if self.old == self.new else "change"

    def diff(self) -> Iterator[str]:
        """Return the lines of a unified diff."""
        name = self.path.as_posix()
        old, new = (self.old or "").splitlines(), self.new.splitlines()
        return difflib.unified_diff(old, new, name, name, n=2, lineterm="")


def mark_of(path: Path) -> str:
    """Return the byte order mark that a file starts with; empty for none. Texts of specs are without it."""
    with path.open("rb") as file:
        return _MARK if file.read(len(_MARK.encode())) == _MARK.encode() else ""


def read_text(path: Path) -> str | None:
    """Return the content of a file; None if it does not exist.

    Raises:
        SystemFailure: it cannot be read.
    """
    try:
        return read_regular(path, GENERATED_FILE_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SystemFailure(f"{path}: {reason}") from error


def write_changes(changes: Sequence[FileChange]) -> None:
    """Write every file that changes, or none.

    Raises:
        SystemFailure: a file cannot be written; those before it are as they were.
    """
    done: list[FileChange] = []
    try:
        for change in changes:
            if change.action == "keep":
                continue
            change.path.parent.mkdir(parents=True, exist_ok=True)
            done.append(change)
            change.path.write_text(change.new, encoding="utf-8", newline="\n")
    except OSError as error:
        for change in done:
            if change.old is None:
                change.path.unlink(missing_ok=True)
            else:
                change.path.write_text(change.old, encoding="utf-8", newline="\n")
        raise SystemFailure(f"{error.filename}: {error.strerror}") from error


def add_lines(text: str, wanted: str) -> str:
    """Return a text with the lines that it lacks at its end, such as those of `.gitignore`."""
    there = {line.strip() for line in text.splitlines()}
    rules = [line for line in wanted.splitlines() if not line.startswith("#") and line not in there]
    if not rules:
        return text
    missing = [line for line in wanted.splitlines() if line.startswith("#") or line in rules]
    return _ended(text) + ("\n" if text else "") + "\n".join(missing) + "\n"


def add_settings(text: str, wanted: str) -> str | None:
    """Return a JSON object with the entries of another one added; None if it cannot be read, or has other values."""
    try:
        old, new = json.loads(text), json.loads(wanted)
    except ValueError:
        return None  # It may have comments, which editors allow.
    merged = _merged(old, new)
    if merged is None:
        return None
    return text if merged == old else json.dumps(merged, indent=2, ensure_ascii=False) + "\n"


def add_entry(text: str, wanted: str, name: str) -> str | None:
    """Return a YAML file with the entry of a list in another file added at its end; None if that is not possible.

    Args:
        text: the file.
        wanted: the other file, with a list of one entry under `name`.
        name: the list's key.
    """
    try:
        node, old, new = yaml.compose(text), yaml.safe_load(text), yaml.safe_load(wanted)
    except yaml.YAMLError:
        return None
    if old is None:
        return _ended(text) + wanted
    if not (isinstance(old, dict) and isinstance(node, yaml.MappingNode)):
        return None
    if name not in old:
        merged = _ended(text) + wanted
    else:
        items = next((value for key, value in node.value if key.value == name), None)
        if not isinstance(items, yaml.SequenceNode) or items.flow_style or not items.value:
            return None
        entry = textwrap.dedent(wanted.split("\n", 1)[1])
        lines = _ended(text).splitlines(keepends=True)
        lines.insert(last_line(items) + 1, textwrap.indent(entry, " " * items.start_mark.column))
        merged = "".join(lines)
    try:
        found = yaml.safe_load(merged)
    except yaml.YAMLError:
        return None
    return merged if found == {**old, name: [*(old.get(name) or []), *new[name]]} else None


def last_line(node: yaml.Node) -> int:
    """Return the line on which a value ends, without the comments and blank lines after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return last_line(last[1] if isinstance(last, tuple) else last)
    end: yaml.Mark = node.end_mark
    return end.line if end.column else max(end.line - 1, node.start_mark.line)


def _merged(old: Any, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a mapping with the entries of another one; None if an entry has another value."""
    if not isinstance(old, dict):
        return None
    merged = dict(old)
    for key, value in new.items():
        if key not in merged:
            merged[key] = value
        elif isinstance(value, dict):
            inner = _merged(merged[key], value)
            if inner is None:
                return None
            merged[key] = inner
        elif merged[key] != value:
            return None
    return merged


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
