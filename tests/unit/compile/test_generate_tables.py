"""Parquet of the workload `generate`: real files in and out, in shards, killed and broken."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kaigen.catalog.images import default_images
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from kaigen.programs import generate
from tests.unit.compile.generating import BAD, StandIn, finish, found, stand_in, start
from tests.unit.compile.specs import context, model, pod

SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}

NESTED: list[dict[str, Any]] = [
    {
        "author": {"name": f"n{number}", "tags": [{"of": "x"}, None]},
        "when": datetime(2026, 11, 27, 12, number, tzinfo=UTC),
        "price": Decimal("1.50"),
        "score": float("nan") if number == 1 else 0.5,
        "data": b"\xff\x00" if number == 1 else "ü".encode(),
        "empty": None,
    }
    for number in range(3)
]


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """The stand-in for vLLM."""
    with stand_in() as serving:
        yield serving


def write(folder: Path, name: str, rows: Sequence[dict[str, Any]], group: int = 1000, **options: Any) -> Path:
    """Write rows to a file of the input, in row groups."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    path = folder / "in" / name
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=group, **options)
    return path


def numbered(first: int, count: int) -> list[dict[str, Any]]:
    return [{"prompt": f"row {number}", "n": number} for number in range(first, first + count)]


def run_shards(folder: Path, server: StandIn, shards: int, **changed: Any) -> dict[str, Any]:
    """Run every shard, and return the message of the last."""
    for shard in range(shards):
        code, message = finish(start(folder, server, shard, shards, **changed))
        assert code == 0, message
    return message


def test_nested_columns_are_fields_of_the_prompt(tmp_path: Path, server: StandIn) -> None:
    write(tmp_path, "a.parquet", NESTED)
    run_shards(tmp_path, server, 1, prompt="{author.name} {author.tags} {when} {price} {score} {data}")
    first, second, third = found(tmp_path, "results.jsonl")
    assert first["output"] == 'n0 [{"of": "x"}, null] 2026-11-27T12:00:00+00:00 1.50 0.5 ü'
    assert (second["row"]["score"], second["row"]["data"]) == (None, "/wA=")
    assert third["row"]["author"] == {"name": "n2", "tags": [{"of": "x"}, None]}
    assert (third["line"], third["file"], third["row"]["empty"]) == (3, "a.parquet", None)


@pytest.mark.parametrize("shards", [1, 3, 4])
def test_shards_split_files_and_row_groups(tmp_path: Path, server: StandIn, shards: int) -> None:
    write(tmp_path, "a.parquet", numbered(0, 25), group=7)
    write(tmp_path, "b-c.parquet", numbered(25, 1))
    write(tmp_path, "d.parquet", [], group=7)
    (tmp_path / "in" / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in numbered(26, 5)))
    message = run_shards(tmp_path, server, shards)
    assert message["results"] == 31
    answers = found(tmp_path, "results.jsonl")
    assert [answer["output"] for answer in answers] == [f"row {number}" for number in range(31)]
    assert [answer["line"] for answer in answers] == [*range(1, 26), 1, *range(1, 6)]
    assert {answer["file"] for answer in answers} == {"a.parquet", "b-c.parquet", "e.jsonl"}


def test_a_killed_pod_goes_on_inside_a_shard(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", numbered(0, 400), group=64)
    with stand_in(most=180) as server:
        first = start(tmp_path, server, 1, 2, checkpointLines=20)
        assert server.awaited.wait(30)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        message = run_shards(tmp_path, server, 2, checkpointLines=20)
        # What was asked again is at most a part and the window of requests.
        assert server.asked.total() - 400 <= 20 + 2 * 4 + 20
    assert message["results"] == 400
    assert [answer["row"]["n"] for answer in found(tmp_path, "results.jsonl")] == [*range(400)]


def test_a_file_that_is_not_parquet_fails_at_once(tmp_path: Path, server: StandIn) -> None:
    whole = write(tmp_path, "a.parquet", numbered(0, 50)).read_bytes()
    for content in (b"", b"PAR1", b"not a table at all", whole[:-20], whole[: len(whole) // 2]):
        (tmp_path / "in" / "a.parquet").write_bytes(content)
        code, message = finish(start(tmp_path, server, 0, 1))
        assert (code, "a.parquet cannot be read as Parquet" in message["error"]) == (generate.WRONG_INPUT, True)


def test_a_broken_row_group_fails_the_shard_that_reads_it(tmp_path: Path, server: StandIn) -> None:
    path = write(tmp_path, "a.parquet", numbered(0, 40), group=10, use_dictionary=False, compression="zstd")
    column = parquet.ParquetFile(path).metadata.row_group(3).column(0)
    content = bytearray(path.read_bytes())
    begin = column.data_page_offset
    content[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    assert finish(start(tmp_path, server, 0, 2))[0] == 0
    code, message = finish(start(tmp_path, server, 1, 2))
    assert (code, "a.parquet cannot be read as Parquet" in message["error"]) == (generate.WRONG_INPUT, True)


def test_a_pod_without_pyarrow_says_what_to_set(
    tmp_path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.parquet", numbered(0, 1))
    (tmp_path / "pyarrow.py").write_text("raise ImportError(\"No module named 'pyarrow'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, message = finish(start(tmp_path, server, 0, 1))
    assert (code, "set `generate.parquet: true`" in message["error"]) == (generate.WRONG_INPUT, True)


def test_pyarrow_is_found_in_the_folder_of_the_version_of_python(
    tmp_path: Path, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.parquet", numbered(0, 1))
    folder = tmp_path / "copied" / ".".join(map(str, sys.version_info[:2]))
    folder.mkdir(parents=True)
    (folder / "only_in_this_folder.py").write_text("FOUND = True\n")
    tables = Path(generate.__file__).with_name("kaigen_tables.py").read_text()
    (tmp_path / "tables.py").write_text(f"from only_in_this_folder import FOUND\n{tables}")
    monkeypatch.setenv("KAIGEN_TABLES", str(tmp_path / "tables.py"))
    assert finish(start(tmp_path, server, 0, 1))[0] == generate.WRONG_INPUT
    monkeypatch.setenv("KAIGEN_PYARROW", str(tmp_path / "copied"))
    assert finish(start(tmp_path, server, 0, 1))[0] == 0


@pytest.mark.parametrize(
    ("block", "has"),
    [
        ({"results": "parquet"}, True),
        ({"input": "/output/a.parquet"}, True),
        ({"parquet": True}, True),
        ({}, False),
        ({"results": "parquet", "parquet": False}, False),
    ],
)
def test_pods_that_read_or_write_tables_copy_pyarrow(block: dict[str, Any], has: bool) -> None:
    spec = {"workload": "generate", "model": "weights", "output": SHARED}
    written = {"metadata": {"name": "j"}, "spec": {**spec, "generate": {"input": "/output/in", **block}}}
    made = pod(read_block(Job, written), context(models={"weights": model(store=SHARED)}))
    (engine,) = made["containers"]
    found = [each for each in made["initContainers"] if each["name"] == "pyarrow"]
    assert [each["image"] for each in found] == [default_images()["pyarrow"]] * has
    assert ({"name": "KAIGEN_PYARROW", "value": "/tmp/pyarrow"} in engine["env"]) is has
    for each in found:
        assert each["command"] == ["cp", "-r", "-T", "/opt/pyarrow", "/tmp/pyarrow"]
        assert each["volumeMounts"] == [mount for mount in engine["volumeMounts"] if mount["mountPath"] == "/tmp"]


@pytest.mark.parametrize("shards", [1, 3])
def test_results_are_a_table_with_the_types_of_the_input(tmp_path: Path, server: StandIn, shards: int) -> None:
    rows = [{**NESTED[0], "text": BAD if number in (4, 11) else f"t{number}"} for number in range(30)]
    write(tmp_path, "a.parquet", rows[:20], group=6)
    path = write(tmp_path, "b.parquet", rows[20:], group=6)
    run_shards(tmp_path, server, shards, results="parquet", prompt="{text}")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {
        *("results.parquet", "failures.jsonl", "results.json")
    }
    table = parquet.read_table(tmp_path / "out" / "results.parquet")
    assert table.schema.field("row").type == pa.struct(list(parquet.read_schema(path)))
    answers = table.to_pylist()
    kept = [number for number in range(30) if number not in (4, 11)]
    assert [answer["output"] for answer in answers] == [f"t{number}" for number in kept]
    assert [answer["row"] for answer in answers] == [rows[number] for number in kept]
    assert [(answer["file"], answer["line"]) for answer in answers] == [
        ("a.parquet", number + 1) if number < 20 else ("b.parquet", number - 19) for number in kept
    ]
    assert answers[0]["usage"] == {"prompt_tokens": None, "completion_tokens": None, "total_tokens": 2}
    assert answers[0]["finishReason"] == "stop"
    assert [failure["line"] for failure in found(tmp_path, "failures.jsonl")] == [5, 12]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("embed", {"output": (pa.list_(pa.float32()), [0.5, 5.0])}),
        ("classify", {"output": (pa.string(), "long"), "probabilities": (pa.list_(pa.float32()), None)}),
        ("complete", {"output": (pa.string(), "row 0"), "finishReason": (pa.string(), "stop")}),
    ],
)
def test_each_task_has_its_columns(tmp_path: Path, server: StandIn, task: str, expected: dict[str, Any]) -> None:
    write(tmp_path, "a.parquet", numbered(0, 2))
    (tmp_path / "in" / "b.jsonl").write_text('{"prompt": "row 2", "other": [1]}\n')
    run_shards(tmp_path, server, 1, results="parquet", task=task)
    table = parquet.read_table(tmp_path / "out" / "results.parquet")
    assert table.column_names == ["line", "file", "row", *expected, "usage"]
    for name, (type_, value) in expected.items():
        assert table.schema.field(name).type == type_
        assert value is None or table.column(name)[0].as_py() == value
    # Files with other columns, such as JSON lines, have no common type.
    assert [json.loads(row) for row in table.column("row").to_pylist()] == [
        *numbered(0, 2),
        {"prompt": "row 2", "other": [1]},
    ]


def test_another_form_of_results_replaces_the_first(tmp_path: Path, server: StandIn) -> None:
    write(tmp_path, "a.parquet", numbered(0, 3))
    for results in ("jsonl", "parquet"):
        run_shards(tmp_path, server, 1, results=results)
        names = {each.name for each in (tmp_path / "out").iterdir()}
        assert names == {"failures.jsonl", "results.json", f"results.{results}"}
    asked = server.asked.total()
    run_shards(tmp_path, server, 1, results="parquet")
    assert server.asked.total() == asked
