"""JSON files of a model: small, and not trusted."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TypeAlias

from kaigen_convert.errors import NotConvertible, NotFound

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Document: TypeAlias = "dict[str, Json]"

LARGEST = 128 << 20
"""Bytes; the largest tokenizer.json of the Hub has 33 MB."""


def read_bytes(path: Path, limit: int = LARGEST) -> bytes | None:
    """Return the content of a file; None if there is none.

    Raises:
        NotConvertible: it is too large, or no regular file.
        NotFound: it cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # Opening a pipe would wait for its writer.
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror or error}") from None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise NotConvertible(f"{path} is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise NotConvertible(f"{path} is larger than {limit >> 20} MiB")
    return data


def read_document(path: Path) -> Document | None:
    """Return the content of a file with a JSON object; None if there is no such file.

    Raises:
        NotConvertible: it is something else, or too large.
    """
    data = read_bytes(path)
    if data is None:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotConvertible(f"{path} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotConvertible(f"{path} is not a JSON object")
    return found


def required(path: Path) -> Document:
    """Return the content of a file with a JSON object.

    Raises:
        NotFound: there is no such file.
        NotConvertible: it is something else, or too large.
    """
    found = read_document(path)
    if found is None:
        raise NotFound(f"{path.parent} has no {path.name}; do not exclude it from the download")
    return found
