"""Samples in files: `text`, `messages`, or `prompt` and `completion`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaigen_train.errors import BadInput
from kaigen_train.rows import LINES, find_reader, read_rows

FIELDS = ("text", "prompt", "completion", "messages")
"""What a column may have: the keys of `columns`."""

_EVALUATION = ("eval", "validation", "valid", "test")
"""Beginnings of the names of files with samples for the evaluation."""

_ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample, with exactly one of three forms.

    Attributes:
        where: file and line, for messages.
        text: a text that is trained on as a whole.
        pair: a prompt, and a completion that is trained on.
        messages: a conversation, of which the messages of the assistant are trained on.
    """

    where: str
    text: str | None = None
    pair: tuple[str, str] | None = None
    messages: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """The samples of a dataset.

    Attributes:
        train: samples to train on.
        evaluation: samples of files for the evaluation.
        sha256: checksum of the files.
    """

    train: Sequence[Sample]
    evaluation: Sequence[Sample]
    sha256: str


def read_dataset(path: Path, columns: Mapping[str, str] | None = None) -> Dataset:
    """Return the samples of a folder, with its subfolders, or of one file, in the order of the names.

    Args:
        path: the folder or the file.
        columns: names of the columns, where they are not those of a sample.

    Raises:
        BadInput: there are no samples, or a row is not one.
    """
    files = _files(path)
    checksum = hashlib.sha256()
    train: list[Sample] = []
    evaluation: list[Sample] = []
    for file, kind in files:
        name = str(file.relative_to(path)) if file != path else file.name
        target = evaluation if file != path and file.name.lower().startswith(_EVALUATION) else train
        checksum.update(f"{name}\n".encode())
        rows = read_rows(file, name, kind, checksum)
        target.extend(_sample(row, where, columns or {}) for where, row in rows)
    if not train:
        raise BadInput(f"{path} has no samples to train on")
    return Dataset(train, evaluation, checksum.hexdigest())


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return the files with samples and their types.

    A file that is named itself may have any name; one of an unknown type has JSON lines.
    """
    found: dict[str, list[Path]] = {}
    others: list[Path] = []
    try:
        if not path.is_dir():
            path.stat()
            return [(path, find_reader(path.name) or LINES[0])]
        for root, folders, names in os.walk(path, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "lost+found"]
            for name in names:
                kind = "" if name.startswith(".") else find_reader(name)
                if kind:
                    found.setdefault(kind, []).append(Path(root, name))
                elif not name.startswith("."):
                    others.append(Path(root, name))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    kinds = _kinds(found, path)
    if not kinds:
        other = f"; files of another type, such as {min(others).name}, are not read" if others else ""
        raise BadInput(f"{path} has no files of JSON lines ({', '.join(LINES)}), Parquet, Arrow, CSV or JSON{other}")
    return sorted((file, kind) for kind in kinds for file in found[kind])


def _kinds(found: Mapping[str, Sequence[Path]], path: Path) -> list[str]:
    """Return the types of files that have the samples.

    Next to JSON lines, other files describe them; next to tables, JSON does.

    Raises:
        BadInput: there are tables of several types.
    """
    lines = [kind for kind in LINES if kind in found]
    tables = [kind for kind in found if kind not in (*LINES, ".json")]
    if not lines and len(tables) > 1:
        names = ", ".join(sorted(min(found[kind]).name for kind in tables))
        raise BadInput(f"{path} has files of several types, such as {names}; name one file")
    return lines or tables or [kind for kind in (".json",) if kind in found]


def _raise(error: OSError) -> None:
    raise error


def _sample(row: Mapping[str, Any], where: str, columns: Mapping[str, str]) -> Sample:
    found = _renamed(row, where, columns) if columns else row
    if "messages" in found:
        return Sample(where, messages=_messages(found["messages"], where))
    if "prompt" in found or "completion" in found:
        return Sample(where, pair=(_text(found, "prompt", where), _text(found, "completion", where)))
    if "text" in found:
        return Sample(where, text=_text(found, "text", where))
    names = ", ".join(f"`{key}`" for key in list(found)[:5]) or "nothing"
    raise BadInput(f"{where} has {names}, and neither `text`, `messages` nor `prompt` and `completion`; set `columns`")


def _renamed(row: Mapping[str, Any], where: str, columns: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the columns that are named, under the names of a sample."""
    for column in columns.values():
        if column not in row:
            names = ", ".join(f"`{key}`" for key in list(row)[:5]) or "nothing"
            raise BadInput(f"{where} has no column `{column}`, but {names}")
    return {field: row[column] for field, column in columns.items()}


def _text(found: Mapping[str, Any], key: str, where: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise BadInput(f"{where}: `{key}` {'must be text' if key in found else 'is missing'}")
    return value


def _messages(found: Any, where: str) -> list[Mapping[str, Any]]:
    if isinstance(found, str):  # A cell of CSV.
        try:
            found = json.loads(found)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}: `messages` is not JSON: {error}") from None
    if not isinstance(found, list) or not found:
        raise BadInput(f"{where}: `messages` must be a list with at least one message")
    for message in found:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise BadInput(f"{where}: a message must have `role` and `content`, both text")
        if message.get("role") not in _ROLES:
            raise BadInput(f"{where}: `role` must be one of {', '.join(_ROLES)}")
    if not any(message["role"] == "assistant" for message in found):
        raise BadInput(f"{where}: no message is from the assistant, so nothing can be learned")
    return found
