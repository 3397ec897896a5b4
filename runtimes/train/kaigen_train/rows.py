"""Rows of files: JSON lines, JSON, CSV, Parquet and Arrow."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kaigen_train.errors import BadInput

LINES = (".jsonl", ".ndjson")
"""Ends of the names of files of JSON lines."""

_PIECE = 1 << 20
_LONGEST_CELL = 1 << 30

Row = tuple[str, Mapping[str, Any]]
"""Where a row is, for messages, and its values by column."""


def find_reader(name: str) -> str:
    """Return the type of a file by the end of its name; empty for a type that is not read."""
    lower = name.lower()
    return next((end for end in _READERS if lower.endswith(end)), "")


def read_rows(file: Path, name: str, kind: str, checksum: Any) -> Iterator[Row]:
    """Yield the rows of a file, and add its bytes to a checksum.

    Args:
        file: the file.
        name: its name in messages.
        kind: its type, one that `find_reader` returns.
        checksum: takes the bytes.

    Raises:
        BadInput: it cannot be read.
    """
    try:
        yield from _READERS[kind](file, name, checksum)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or error}") from None


def _lines(file: Path, name: str, checksum: Any) -> Iterator[Row]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            checksum.update(line)
            if line.strip():
                yield f"{name}:{number}", _parsed(line, f"{name}:{number}")


def _parsed(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput(f"{where} is not a JSON object")
    return found


def _json(file: Path, name: str, checksum: Any) -> Iterator[Row]:
    """Yield the objects of a list, or of lines: files of both kinds end in `.json`."""
    content = file.read_bytes()
    if not content.lstrip().startswith(b"["):
        yield from _lines(file, name, checksum)
        return
    checksum.update(content)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON: {error}") from None
    for number, row in enumerate(found, 1):
        where = f"{name}, object {number}"
        if not isinstance(row, dict):
            raise BadInput(f"{where} is not a JSON object")
        yield where, row


def _csv(file: Path, name: str, checksum: Any) -> Iterator[Row]:
    content = file.read_bytes()
    checksum.update(content)
    csv.field_size_limit(_LONGEST_CELL)
    try:
        text = content.decode("utf-8-sig")
        for number, row in enumerate(csv.DictReader(io.StringIO(text, newline=""), strict=True), 1):
            if None in row or None in row.values():
                raise BadInput(f"{name}, row {number} has another number of columns than the first line")
            yield f"{name}, row {number}", row
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{name} is not CSV: {error}") from None


def _parquet(file: Path, name: str, checksum: Any) -> Iterator[Row]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    _add(file, checksum)
    try:
        with ParquetFile(file) as table:
            yield from _of_batches(table.iter_batches(), name)
    except ArrowException as error:
        raise BadInput(f"{name} is not a Parquet file: {error}") from None


def _arrow(file: Path, name: str, checksum: Any) -> Iterator[Row]:
    from pyarrow import ArrowException, ipc

    _add(file, checksum)
    try:
        with file.open("rb") as opened:
            is_file = opened.read(6) == b"ARROW1"
            opened.seek(0)
            reader = ipc.open_file(opened) if is_file else ipc.open_stream(opened)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches)) if is_file else reader
            yield from _of_batches(batches, name)
    except ArrowException as error:
        raise BadInput(f"{name} is not an Arrow file: {error}") from None


def _of_batches(batches: Any, name: str) -> Iterator[Row]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield f"{name}, row {number}", row


def _add(file: Path, checksum: Any) -> None:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            checksum.update(piece)


_READERS: Mapping[str, Callable[[Path, str, Any], Iterator[Row]]] = {
    **dict.fromkeys(LINES, _lines),
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".csv": _csv,
    ".json": _json,
}
