"""Runs of the program: what a pod sees of them, interrupted ones, and the downloader's check of the result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import reference_writer
from kaigen_convert.cli import main
from tiny_models import LLAMA, QWEN3, Floats, random_tensors, save_model

RUNTIMES = Path(__file__).parents[2]
LARGE = {**QWEN3, "hidden_size": 512, "intermediate_size": 1024, "vocab_size": 4096}


def arguments(source: Path, dest: Path, *more: str) -> list[str]:
    """Return the arguments of a conversion."""
    return ["distributed-llama", f"--source={source}", f"--dest={dest}", "--identity=abc", *more]


def run(source: Path, dest: Path, *more: str) -> tuple[int, str]:
    """Convert a folder; return exit code and termination message."""
    log = source.parent / "termination-log"
    log.touch()
    code = main(arguments(source, dest, *more), {"KAIGEN_TERMINATION_LOG": str(log)})
    return code, log.read_text()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tiny Llama, marked complete by the downloader."""
    folder = save_model(tmp_path / "source", LLAMA, random_tensors(LLAMA))
    files = [{"path": each.name, "size": each.stat().st_size, "sha256": ""} for each in folder.iterdir()]
    marker: dict[str, Any] = {"schema": 1, "identity": "0123", "files": files}
    marker["source"] = {"type": "huggingface", "repo": "a/b", "revision": "main", "commit": "c0ffee"}
    (folder / ".kaigen").mkdir()
    (folder / ".kaigen/model.json").write_text(json.dumps(marker))
    return folder


def downloader(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run kaigen-downloader, whose gate and test read the marker."""
    env = {"PYTHONPATH": str(RUNTIMES / "downloader"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "kaigen_downloader", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)


def test_result_passes_the_gate_and_the_check_of_the_downloader(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "converted/abc"
    code, message = run(source, dest, "--source-identity=0123")
    facts = json.loads(message)
    files = {each.name: each.stat().st_size for each in dest.iterdir() if each.is_file()}
    assert code == 0
    assert set(files) == {"model.m", "tokenizer.t"}
    assert facts["bytes"] == sum(files.values())
    assert (facts["weights"], facts["version"], facts["human"][-3:]) == ("q40", "1", "KiB")
    checked = downloader("verify", f"--dest={dest}", "--identity=abc", "--full")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    waited = downloader("wait", f"--dest={dest}", "--identity=abc", "--timeout=1s")
    assert waited.returncode == 0, waited.stderr
    marker = json.loads((dest / ".kaigen/model.json").read_text())
    assert marker["source"] == {
        "type": "distributed-llama",
        "from": "huggingface",
        "repo": "a/b",
        "revision": "main",
        "weights": "q40",
        "commit": "c0ffee",
    }
    assert sorted(each.name for each in (dest / ".kaigen").iterdir()) == ["lock", "model.json"]


def test_second_run_adopts_the_result_and_a_damaged_one_is_converted_again(source: Path, tmp_path: Path) -> None:
    dest = tmp_path / "abc"
    first, again = run(source, dest), run(source, dest)
    assert first == again
    before = (dest / "model.m").stat()
    assert run(source, dest)[0] == 0
    assert (dest / "model.m").stat().st_ino == before.st_ino
    os.truncate(dest / "model.m", 100)
    assert run(source, dest)[0] == 0
    assert (dest / "model.m").stat().st_size == before.st_size


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Floats]]:
    """A model that takes long enough to kill its conversion."""
    tensors = random_tensors(LARGE)
    return save_model(tmp_path_factory.mktemp("large"), LARGE, tensors), tensors


def test_kills_at_random_points_leave_no_marker_and_the_next_run_completes(
    large: tuple[Path, dict[str, Floats]], tmp_path: Path
) -> None:
    (source, tensors), dest, chance = large, tmp_path / "abc", random.Random(17)
    program = [sys.executable, "-m", "kaigen_convert", *arguments(source, dest, "--weights=f32")]
    env = {"PYTHONPATH": str(RUNTIMES / "convert"), "PATH": os.environ["PATH"]}
    size = 4 * sum(each.size for each in tensors.values())
    part, killed = dest / ".kaigen/partial/model.m", 0
    for _ in range(5):
        least = chance.randrange(size)
        with subprocess.Popen(program, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and (not part.exists() or part.stat().st_size < least):
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
        if not (dest / ".kaigen/model.json").exists():
            killed += 1
            assert downloader("verify", f"--dest={dest}", "--identity=abc").returncode != 0
            continue
        # It was faster than the signal: start again without its result.
        (dest / ".kaigen/model.json").unlink()
    assert killed
    assert run(source, dest, "--weights=f32")[0] == 0
    assert (dest / "model.m").stat().st_size == len(reference_writer.header(LARGE, "f32")) + size
    assert sorted(each.name for each in (dest / ".kaigen").iterdir()) == ["lock", "model.json"]


@pytest.mark.parametrize("weights", ["q80", "f16"])
def test_weights_that_the_runtime_cannot_load_are_refused(source: Path, tmp_path: Path, weights: str) -> None:
    code, message = run(source, tmp_path / "abc", f"--weights={weights}")
    assert code == 2
    assert "cannot load weights in it" in message


def test_output_of_another_version_is_refused(source: Path, tmp_path: Path) -> None:
    code, message = run(source, tmp_path / "abc", "--output-version=999")
    assert (code, "writes version 1 of the output, not 999" in message) == (2, True)


def test_source_without_its_marker_or_with_a_missing_file_is_refused(source: Path, tmp_path: Path) -> None:
    code, message = run(source, tmp_path / "abc", "--source-identity=4567")
    assert (code, message.endswith("is not marked complete as 4567")) == (10, True)
    (source / "model.safetensors").unlink()
    code, message = run(source, tmp_path / "abc", "--source-identity=0123")
    assert (code, "model.safetensors is missing" in message) == (10, True)


def test_full_volume_is_reported_before_anything_is_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.statvfs(tmp_path)
    full = os.statvfs_result((found.f_bsize, found.f_frsize, found.f_blocks, 1, 1, *found[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    code, message = run(source, tmp_path / "abc")
    assert (code, "4.1 MiB are needed" in message) == (12, True), message
    assert [each.name for each in (tmp_path / "abc").iterdir()] == [".kaigen"]


def test_folder_that_cannot_be_written_is_one_line(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, message = run(source, tmp_path / "file/abc")
    assert (code, message.count("\n")) == (20, 0)
