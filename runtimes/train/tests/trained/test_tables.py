"""Samples in tables of Parquet and Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from kaigen_train.dataset import read_dataset
from kaigen_train.errors import BadInput

ROWS: list[dict[str, Any]] = [
    {"question": "a", "answer": "b", "chat": [{"role": "assistant", "content": "x"}]},
    {"question": "d", "answer": "e", "chat": [{"role": "assistant", "content": "y"}]},
]


def write(file: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows in the format of the file's name, each in a batch of its own."""
    table = pyarrow.Table.from_pylist(rows)
    if file.suffix == ".parquet":
        pyarrow.parquet.write_table(table, file, row_group_size=1)
        return file
    new = pyarrow.ipc.new_file if file.name.startswith("file") else pyarrow.ipc.new_stream
    with new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return file


@pytest.mark.parametrize("name", ["train.parquet", "file.arrow", "stream.arrow"])
def test_rows_of_tables_are_samples(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, ROWS)
    columns = {"prompt": "question", "completion": "answer"}
    for path in (tmp_path, file):
        found = read_dataset(path, columns)
        assert [sample.pair for sample in found.train] == [("a", "b"), ("d", "e")]
        assert [sample.where for sample in found.train] == [f"{name}, row 1", f"{name}, row 2"]
    talks = read_dataset(tmp_path, {"messages": "chat"}).train
    assert [sample.messages for sample in talks] == [row["chat"] for row in ROWS]
    with pytest.raises(BadInput, match="row 1 has `question`, `answer`, `chat`, and neither"):
        read_dataset(tmp_path)
    with pytest.raises(BadInput, match="has no column `reply`"):
        read_dataset(tmp_path, {"text": "reply"})
    write(file, ROWS[:1])
    assert read_dataset(tmp_path, columns).sha256 != found.sha256


@pytest.mark.parametrize(
    ("name", "message"), [("x.parquet", "x.parquet is not a Parquet file"), ("x.arrow", "x.arrow is not an Arrow file")]
)
def test_broken_tables_are_refused(tmp_path: Path, name: str, message: str) -> None:
    for content in (b"", b"no table", b"ARROW1 no table"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=message):
            read_dataset(tmp_path)
