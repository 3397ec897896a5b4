"""Samples in files of JSON lines: `text`, `messages`, or `prompt` and `completion`."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaigen_train.errors import BadInput

SUFFIXES = (".jsonl", ".ndjson")
"""Ends of the names of files in a dataset folder. A file that is named itself may have any name."""

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


def read_dataset(path: Path) -> Dataset:
    """Return the samples of a folder, with its subfolders, or of one file, in the order of the names.

    Raises:
        BadInput: there are no samples, or a line is not one.
    """
    files = _files(path)
    checksum = hashlib.sha256()
    train: list[Sample] = []
    evaluation: list[Sample] = []
    for file in files:
        name = str(file.relative_to(path)) if file != path else file.name
        target = evaluation if file != path and file.name.lower().startswith(_EVALUATION) else train
        checksum.update(f"{name}\n".encode())
        target.extend(_samples(file, name, checksum))
    if not train:
        raise BadInput(f"{path} has no samples to train on")
    return Dataset(train, evaluation, checksum.hexdigest())


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            path.stat()
            return [path]
        found: list[Path] = []
        others: list[Path] = []
        for root, folders, names in os.walk(path, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "lost+found"]
            for name in names:
                if not name.startswith("."):
                    (found if name.lower().endswith(SUFFIXES) else others).append(Path(root, name))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    if not found:
        other = f"; files of another type, such as {min(others).name}, are not read" if others else ""
        raise BadInput(f"{path} has no files of JSON lines ({', '.join(SUFFIXES)}){other}")
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error


def _samples(file: Path, name: str, checksum: Any) -> Iterator[Sample]:
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                checksum.update(line)
                if line.strip():
                    yield _sample(line, f"{name}:{number}")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None


def _sample(line: bytes, where: str) -> Sample:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{where} is not a JSON object")
    if "messages" in found:
        return Sample(where, messages=_messages(found["messages"], where))
    if "prompt" in found or "completion" in found:
        return Sample(where, pair=(_text(found, "prompt", where), _text(found, "completion", where)))
    if "text" in found:
        return Sample(where, text=_text(found, "text", where))
    names = ", ".join(f"`{key}`" for key in list(found)[:5]) or "nothing"
    raise BadInput(f"{where} has {names}, and neither `text`, `messages` nor `prompt` and `completion`")


def _text(found: Mapping[str, Any], key: str, where: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise BadInput(f"{where}: `{key}` {'must be text' if key in found else 'is missing'}")
    return value


def _messages(found: Any, where: str) -> list[Mapping[str, Any]]:
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
