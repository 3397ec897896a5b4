"""Parquet for `generate.py`, which loads this file when an input or the results are Parquet. Needs pyarrow."""

import base64
import contextlib
import datetime
import decimal
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

ROWS = 1000
"""Rows that are read together."""
GROUP = 10_000
"""Results in a row group."""
USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")


class Broken(Exception):
    """A file is not a table that can be read."""


class Table:
    """A Parquet file.

    Attributes:
        count: the number of rows.
        schema: its columns.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with _reading(path):
            self._file = parquet.ParquetFile(path)
            self.count: int = self._file.metadata.num_rows
            self.schema = self._file.schema_arrow

    def batches(self, first: int, end: int) -> Iterator[tuple[int, Any]]:
        """Yield the rows from one to before another, with the number of the first. Other row groups are not read."""
        at = 0
        for group in range(self._file.num_row_groups):
            count = self._file.metadata.row_group(group).num_rows
            if at < end and at + count > first:
                yield from self._batches(group, at, first, end)
            at += count

    def _batches(self, group: int, at: int, first: int, end: int) -> Iterator[tuple[int, Any]]:
        reader = self._file.iter_batches(ROWS, row_groups=[group])
        while True:
            with _reading(self._path):
                batch = next(reader, None)
            if batch is None:
                return
            begin, stop = max(first, at), min(end, at + batch.num_rows)
            if begin < stop:
                yield begin, batch.slice(begin - at, stop - begin)
            at += batch.num_rows

    def lines(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the rows from one to before another as lines of JSON."""
        for _, batch in self.batches(first, end):
            for row in batch.to_pylist():
                yield json.dumps(plain(row), ensure_ascii=False).encode("utf-8", "replace")


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """Raise `Broken` for what pyarrow raises about the content of a file; errors of the disk stay what they are."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise Broken(f"{path} cannot be read as Parquet: {error}") from error


def plain(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601, bytes as text or base64, and null for what is no number."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return value if value is None or isinstance(value, bool | int | str) else str(value)


class Source(NamedTuple):
    """A file of the input: its name in the results, its path, and whether it is a table."""

    name: str
    path: str
    is_table: bool


def write_results(path: str, sources: Sequence[Source], results: Iterable[bytes]) -> None:
    """Write results to a Parquet file.

    The column `row` has the types of the input if all of its files are tables with the same columns; else it is JSON.

    Args:
        path: of the file.
        sources: the files of the input, in order.
        results: the lines of `results.jsonl`.
    """
    tables = {each.name: Table(each.path) for each in sources if each.is_table}
    schemas = [table.schema.remove_metadata() for table in tables.values()]
    typed = len(tables) == len(sources) and all(schema.equals(schemas[0]) for schema in schemas)
    writer = None
    try:
        for found in _groups(results):
            rows = _rows(found, tables) if typed else pa.array([_json(each["row"]) for each in found], pa.string())
            if writer is None:
                schema = _schema(found, rows.type)
                writer = parquet.ParquetWriter(path, schema, compression="zstd")
            columns = {name: [_value(each, name) for each in found] for name in schema.names if name != "row"}
            arrays = [
                rows if name == "row" else pa.array(columns[name], schema.field(name).type) for name in schema.names
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    finally:
        if writer is not None:
            writer.close()


def _groups(results: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
    """Yield results in groups: of one file each, so that its rows are read once."""
    kept: list[dict[str, Any]] = []
    for line in results:
        found = json.loads(line)
        if kept and (len(kept) >= GROUP or kept[-1]["file"] != found["file"]):
            yield kept
            kept = []
        kept.append(found)
    if kept:
        yield kept


def _rows(found: Sequence[Mapping[str, Any]], tables: Mapping[str, Table]) -> Any:
    """Return the rows of results of one file, as the table has them."""
    numbers = [each["line"] - 1 for each in found]
    pieces, at = [], 0
    for first, batch in tables[found[0]["file"]].batches(numbers[0], numbers[-1] + 1):
        begin = at
        while at < len(numbers) and numbers[at] < first + batch.num_rows:
            at += 1
        taken = pa.array([number - first for number in numbers[begin:at]], pa.int64())
        pieces.append(batch.to_struct_array().take(taken))
    return pa.concat_arrays(pieces)


def _schema(found: Sequence[Mapping[str, Any]], row: Any) -> Any:
    """Return the columns of the results, by the first of them."""
    first = found[0]
    fields = [pa.field("line", pa.int64()), pa.field("file", pa.string()), pa.field("row", row)]
    fields.append(pa.field("output", _type(first["output"])))
    if "finishReason" in first:
        fields.append(pa.field("finishReason", _type(first["finishReason"])))
    if "probabilities" in first:
        fields.append(pa.field("probabilities", pa.list_(pa.float32())))
    fields.append(pa.field("usage", pa.struct([(name, pa.int64()) for name in USAGE])))
    return pa.schema(fields)


def _type(value: Any) -> Any:
    """Return the type of an answer: texts, or a vector of the engine's 32-bit numbers."""
    if not isinstance(value, list):
        return pa.string()
    numbers = bool(value) and all(isinstance(each, int | float) for each in value)
    return pa.list_(pa.float32() if numbers else pa.string())


def _value(found: Mapping[str, Any], name: str) -> Any:
    value = found.get(name)
    if name == "usage" and isinstance(value, Mapping):
        return {each: value.get(each) for each in USAGE}
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
