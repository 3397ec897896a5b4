"""Arguments, the images of a shard, and the files of results: what needs no PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kaigen_classify import cli, inputs, results
from kaigen_classify.errors import BadSettings, NotFound, NotWritten
from kaigen_classify.machine import cpus
from kaigen_classify.settings import Settings, read

NEEDED = ("--weights=w", "--input=i.jpg", "--output=o.json")


def settings(*arguments: str, **env: str) -> Settings:
    return read([*NEEDED, *arguments], env, has_gpu=lambda: False)


def test_defaults_are_those_of_torchvision() -> None:
    assert [
        (found.version, found.resize)
        for found in (settings(), settings("--weights-version=IMAGENET1K_V1"), settings("--model=mobilenet_v3_small"))
    ] == [("IMAGENET1K_V2", 232), ("IMAGENET1K_V1", 256), ("IMAGENET1K_V1", 256)]


@pytest.mark.parametrize(
    ("has_gpu", "arguments", "expected"),
    [
        (True, (), ("cuda", "float16")),
        (False, (), ("cpu", "float32")),
        (True, ("--device=cpu",), ("cpu", "float32")),
        (True, ("--precision=bfloat16",), ("cuda", "bfloat16")),
    ],
)
def test_device_and_precision_follow_the_machine(
    has_gpu: bool, arguments: tuple[str, ...], expected: tuple[str, str]
) -> None:
    found = read([*NEEDED, *arguments], {}, has_gpu=lambda: has_gpu)
    assert (found.device, found.precision) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input=a"], "--weights, --output"),
        ([*NEEDED, "--top-k=0"], "not a number from 1 to 1000: '0'"),
        ([*NEEDED, "--top-k=1001"], "not a number from 1 to 1000: '1001'"),
        ([*NEEDED, "--model=vgg16"], "invalid choice: 'vgg16'"),
        ([*NEEDED, "--model=mobilenet_v3_small", "--weights-version=IMAGENET1K_V2"], "has no weights"),
        ([*NEEDED, "--weights-sha256=0"], "not 64 hex digits: '0'"),
        ([*NEEDED, "--weight=x"], "unrecognized arguments"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments, {}) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("env", [{"SHARDS": "2", "JOB_COMPLETION_INDEX": "2"}, {"SHARDS": "two"}])
def test_wrong_numbers_of_shards_are_rejected(env: dict[str, str]) -> None:
    with pytest.raises(BadSettings):
        settings(**env)


def test_shards_have_results_of_their_own() -> None:
    names = [str(settings(SHARDS="3", JOB_COMPLETION_INDEX=str(number)).result) for number in range(3)]
    assert names == ["o-0-of-3.json", "o-1-of-3.json", "o-2-of-3.json"]
    assert str(settings(SHARDS="1", JOB_COMPLETION_INDEX="0").result) == "o.json"


def folder_of_images(folder: Path) -> Path:
    """Create a folder with images and files that are none."""
    names = ("b.jpg", "a/c.PNG", "a/a.webp", "notes.txt", ".hidden.jpg", ".git/x.jpg", "output.json")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def found_in(path: Path, **env: str) -> list[str]:
    made = settings(f"--input={path}", **env)
    return [str(item.relative_to(path if path.is_dir() else path.parent)) for item in inputs.find_images(made)]


def test_a_folder_has_the_images_of_its_subfolders_in_order(tmp_path: Path) -> None:
    assert found_in(folder_of_images(tmp_path)) == ["a/a.webp", "a/c.PNG", "b.jpg"]


def test_shards_share_all_images(tmp_path: Path) -> None:
    folder_of_images(tmp_path)
    parts = [found_in(tmp_path, SHARDS="2", JOB_COMPLETION_INDEX=number) for number in "01"]
    assert parts == [["a/a.webp", "b.jpg"], ["a/c.PNG"]]


def test_a_list_has_paths_next_to_it_and_absolute_ones(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("x/é 1.jpg\r\n\n  /data/y.jpg\n", encoding="utf-8")
    found = inputs.find_images(settings(f"--input={tmp_path}/list.txt"))
    assert found == [tmp_path / "x/é 1.jpg", Path("/data/y.jpg")]


@pytest.mark.parametrize("name", ["missing.jpg", "missing", "empty.txt", "empty", "binary.txt"])
def test_no_images_is_an_error_with_a_code(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(NotFound, match=name):
        inputs.find_images(settings(f"--input={tmp_path / name}"))


def test_a_result_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new/output.json"
    results.write_object(path, {"a": 1})
    with pytest.raises(TypeError, match="JSON"):
        results.write_object(path, {"a": 2, "b": {1, 2}})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [item.name for item in path.parent.iterdir()] == ["output.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritten, match="cannot be written"):
        results.write_object(tmp_path / "file/output.json", {})


@pytest.mark.parametrize("count", [0, 1, 3])
def test_many_results_are_one_object_or_lines(tmp_path: Path, count: int) -> None:
    head: dict[str, Any] = {"model": "m", "device": "cpu"}
    entries = [{"image": f"{number}.jpg"} for number in range(count)]
    for name in ("all.json", "all.jsonl"):
        with results.written(tmp_path / name) as file:
            images = results.Images(file, head, lines=name.endswith("l"))
            for entry in entries:
                images.add(entry)
            images.end({"classified": count})
    whole = json.loads((tmp_path / "all.json").read_text())
    assert whole == {**head, "images": entries, "classified": count}
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{**head, **entry} for entry in entries]


@pytest.mark.parametrize(
    ("text", "most"), [("max 100000", None), ("100000 100000", 1), ("150000 100000", 2), ("", None)]
)
def test_threads_follow_the_cpu_limit(tmp_path: Path, text: str, most: int | None) -> None:
    (tmp_path / "cpu.max").write_text(text)
    allowed = cpus(tmp_path / "missing")
    assert cpus(tmp_path / "cpu.max") == (allowed if most is None else min(most, allowed))


def test_the_program_starts_without_pytorch() -> None:
    code = "import sys, kaigen_classify.cli; sys.exit('torch' in sys.modules or 'PIL' in sys.modules)"
    package = Path(__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=package, check=False).returncode == 0
