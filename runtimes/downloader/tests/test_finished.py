"""`fetch s3 --if-complete`: the results of a run that a bucket has are fetched, and the run is not repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import ID, Runner, content, files, sha256
from s3 import S3

FILES = {"adapter/weights.m": content((6 << 20) + 5, 7), "metrics.json": b"{}", "empty": b""}
OTHER = "2e" * 16


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with the results of a run."""
    root = tmp_path / "results"
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


@pytest.fixture
def stored(results: Path, s3: S3, run: Runner) -> S3:
    """A bucket with the results, uploaded by `put`."""
    done = run("put", str(results), "--dest", f"s3://{s3.bucket}/out/{ID}", "--identity", ID, "--s3-endpoint", s3.url)
    assert done.code == 0, done.err
    return s3


def restore(s3: S3, dest: Path, note: Path, identity: str = ID) -> list[str]:
    """Return the command line."""
    where = ["--uri", f"s3://{s3.bucket}/out/{ID}", "--endpoint", s3.url]
    return ["fetch", "s3", *where, "--dest", str(dest), "--identity", identity, "--if-complete", str(note)]


def test_results_are_restored_and_the_note_is_written(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    note = tmp_path / "note"
    done = run(*restore(stored, dest, note))
    assert done.code == 0, done.err
    assert {path: (dest / path).read_bytes() for path in files(dest)} == FILES
    line = f"already complete: s3://{stored.bucket}/out/{ID}, 3 files"
    assert note.read_text() == f"{line}\n"
    assert line in done.err
    # What is uploaded after it is what is there.
    put = ["put", str(dest), "--dest", f"s3://{stored.bucket}/out/{ID}", "--identity", ID, "--s3-endpoint", stored.url]
    assert "already complete" in run(*put).err


def test_a_run_starts_if_the_bucket_has_nothing(s3: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    done = run(*restore(s3, dest, tmp_path / "note"))
    assert (done.code, (tmp_path / "note").exists(), dest.exists()) == (0, False, False)
    assert "not complete: s3://" in done.err
    assert "has no marker" in done.err


def test_a_run_starts_if_the_results_are_those_of_another(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    done = run(*restore(stored, dest, tmp_path / "note", OTHER))
    assert (done.code, (tmp_path / "note").exists(), dest.exists()) == (0, False, False)
    assert "the marker of another run" in done.err


@pytest.mark.parametrize("data", [None, b"shorter"])
def test_a_run_starts_if_a_file_is_missing_or_has_another_size(
    stored: S3, dest: Path, tmp_path: Path, run: Runner, data: bytes | None
) -> None:
    key = f"out/{ID}/metrics.json"
    if data is None:
        stored.client.delete_object(Bucket=stored.bucket, Key=key)
    else:
        stored.put(key, data)
    done = run(*restore(stored, dest, tmp_path / "note"))
    assert (done.code, (tmp_path / "note").exists(), dest.exists()) == (0, False, False)
    assert "lacks metrics.json of 3 files" in done.err


def test_a_file_with_other_content_is_an_error(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    stored.put(f"out/{ID}/metrics.json", b"[]")
    done = run(*restore(stored, dest, tmp_path / "note"))
    assert (done.code, (tmp_path / "note").exists()) == (11, False), done.err
    assert "differs" in done.err


def test_files_of_others_in_the_folder_do_not_count(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    stored.put(f"out/{ID}/README", b"notes")
    done = run(*restore(stored, dest, tmp_path / "note"))
    assert done.code == 0, done.err
    assert files(dest) == FILES.keys()


def test_only_the_first_of_several_pods_fetches(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    done = run(*restore(stored, dest, tmp_path / "note"), JOB_COMPLETION_INDEX="1")
    assert (done.code, (tmp_path / "note").exists(), dest.exists()) == (0, True, False)
    assert run(*restore(stored, dest, tmp_path / "note"), JOB_COMPLETION_INDEX="0").code == 0
    assert files(dest) == FILES.keys()


def test_a_file_makes_every_command_do_nothing(stored: S3, dest: Path, tmp_path: Path, run: Runner) -> None:
    note = tmp_path / "note"
    wait = ["--skip-if", str(note), "wait", "--dest", str(dest), "--identity", ID, "--timeout", "1s"]
    assert run(*wait).code == 20
    note.write_text("done")
    assert run(*wait).code == 0
    assert run("--skip-if", str(note), *restore(stored, dest, tmp_path / "other")).code == 0
    assert not dest.exists()


def test_the_marker_names_each_file_with_its_checksum(stored: S3) -> None:
    found = json.loads(stored.get(f"out/{ID}/.kaigen/model.json") or b"")
    assert {file["path"]: file["sha256"] for file in found["files"]} == {
        path: sha256(data) for path, data in FILES.items()
    }
