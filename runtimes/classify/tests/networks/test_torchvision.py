"""kaigen-classify computes what torchvision computes, for every kind of image, and reports files that are none."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from kaigen_classify import cli
from kaigen_classify.classify import labels
from kaigen_classify.settings import VERSIONS
from networks.conftest import Reference
from networks.pictures_of_tests import broken, colours
from safetensors.torch import load_file, save_file
from torchvision.models import get_model_weights

Pictures = tuple[Path, dict[str, Any]]


def run(reference: Reference, source: Path, output: Path, *arguments: str, **env: str) -> int:
    """Run the program on a CPU."""
    wanted = [f"--model={reference.name}", f"--weights={reference.file}", "--device=cpu"]
    return cli.main([*wanted, f"--input={source}", f"--output={output}", *arguments], env)


@pytest.mark.promise("Ephemeral GPU", "`model: mobilenet_v3_small`")
def test_a_file_of_pytorch_is_read_with_its_checksum_and_for_tensors_only(
    small: Reference, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, file = tmp_path / "a.png", tmp_path / "w.pth"
    colours(96, 96, 3).save(image)
    results = []
    for number, content in enumerate((small.network.state_dict(), {"a": small}, [torch.zeros(1)])):
        torch.save(content, file)
        checksum = f"--weights-sha256={hashlib.sha256(file.read_bytes()).hexdigest()}"
        results.append(run(small, image, tmp_path / f"{number}.json", f"--weights={file}", checksum))
    assert results == [0, 12, 12]
    assert capsys.readouterr().err.count("something else than tensors") == 2
    labelled = json.loads((tmp_path / "0.json").read_text())
    assert run(small, image, tmp_path / "same.json") == 0
    assert labelled["top5"] == json.loads((tmp_path / "same.json").read_text())["top5"]
    assert run(small, image, tmp_path / "none.json", f"--weights={file}") == 12
    assert "needs a checksum" in capsys.readouterr().err


def test_labels_and_sizes_are_torchvisions() -> None:
    for name, versions in VERSIONS.items():
        known = get_model_weights(name)
        assert list(versions) == [item.name for item in known]
        assert list(versions)[-1] == known.DEFAULT.name
        for version, resize in versions.items():
            assert labels() == known[version].meta["categories"]
            assert [resize] == known[version].transforms().resize_size


def test_ten_images_have_the_labels_of_torchvision(reference: Reference, pictures: Pictures, tmp_path: Path) -> None:
    folder, shown = pictures
    assert run(reference, folder, tmp_path / "all.json", "--batch-size=4") == 0
    found = json.loads((tmp_path / "all.json").read_text())
    assert (found["classified"], found["failed"]) == (10, 0)
    entries = {Path(entry["image"]).name: entry["top5"] for entry in found["images"]}
    assert entries.keys() == shown.keys()
    for name, image in shown.items():
        check_equal(entries[name], reference.probabilities(image, found["weights"]["version"]))
    # Weights that give every image the same label would show nothing.
    assert len({top[0]["index"] for top in entries.values()}) > 3


def test_the_first_version_of_the_weights_has_a_size_of_its_own(
    reference: Reference, pictures: Pictures, tmp_path: Path
) -> None:
    version, source = "IMAGENET1K_V1", pictures[0] / "rotated.png"
    assert run(reference, source, tmp_path / "o.json", f"--weights-version={version}") == 0
    found = json.loads((tmp_path / "o.json").read_text())
    check_equal(found["top5"], reference.probabilities(pictures[1]["rotated.png"], version))


def check_equal(top: list[dict[str, Any]], expected: Any) -> None:
    """Compare five labels with the probabilities of all.

    The tolerance is for processors and batch sizes that sum in a different order.
    """
    assert [item["index"] for item in top] == expected.topk(5).indices.tolist()
    for item in top:
        assert item["probability"] == pytest.approx(expected[item["index"]].item(), abs=1e-4)
        assert item["label"] == labels()[item["index"]]


@pytest.mark.promise("Ephemeral GPU", "Output JSON with `model`, `top5`, `elapsed_ms`, `device`, `timestamp`")
def test_one_image_has_the_result_of_the_seed(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    source, output, message = pictures[0] / "cmyk.jpg", tmp_path / "new/output.json", tmp_path / "message"
    message.write_text("")
    started = time.time()
    assert run(small, source, output, KAIGEN_TERMINATION_LOG=str(message)) == 0
    found = json.loads(output.read_text())
    assert list(found) == [*("model", "top5", "elapsed_ms", "device", "precision", "weights", "timestamp", "image")]
    assert (found["model"], found["device"], found["image"]) == (small.name, "cpu", str(source))
    assert found["weights"]["sha256"] == hashlib.sha256(small.file.read_bytes()).hexdigest()
    assert 0 < found["elapsed_ms"] < 1000 * (time.time() - started)
    assert found["timestamp"].endswith("Z")
    probabilities = [item["probability"] for item in found["top5"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert json.loads(message.read_text())["classified"] == 1
    assert run(small, source, tmp_path / "line.jsonl", "--top-k=2") == 0
    (line,) = (tmp_path / "line.jsonl").read_text().splitlines()
    assert json.loads(line)["top2"] == found["top5"][:2]


def test_shards_have_all_images_once(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    folder, shown = pictures
    for number in "012":
        env = {"SHARDS": "3", "JOB_COMPLETION_INDEX": number}
        assert run(small, folder, tmp_path / "all.jsonl", **env) == 0
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"all-{number}-of-3.jsonl" for number in range(3)]
    lines = [json.loads(line) for name in files for line in (tmp_path / name).read_text().splitlines()]
    assert sorted(Path(line["image"]).name for line in lines) == sorted(shown)
    assert {line["model"] for line in lines} == {small.name}


def test_broken_files_are_reported_one_by_one(small: Reference, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    reasons = broken(folder)
    message = tmp_path / "message"
    message.write_text("")
    assert run(small, folder, tmp_path / "o.json", KAIGEN_TERMINATION_LOG=str(message)) == 11
    assert message.read_text().startswith("error: none of 6 images could be read")
    colours(300, 300, 1).save(folder / "good.png")
    (tmp_path / "list.txt").write_text("".join(f"images/{name}\n" for name in [*reasons, "none.jpg", "good.png"]))
    assert run(small, tmp_path / "list.txt", tmp_path / "o.json", "--batch-size=2") == 0
    found = json.loads((tmp_path / "o.json").read_text())
    assert (found["classified"], found["failed"]) == (1, 7)
    errors = {Path(entry["image"]).name: entry["error"] for entry in found["images"] if "error" in entry}
    assert {error["reason"] for error in errors.values()} == {"BadImage"}
    for name, reason in {**reasons, "none.jpg": "No such file"}.items():
        assert reason in errors[name]["message"], name
        assert str(folder / name) in errors[name]["message"]


def test_one_broken_image_is_an_error_in_place_of_the_result(small: Reference, tmp_path: Path) -> None:
    (tmp_path / "input.jpg").write_bytes(b"no image")
    output = tmp_path / "output.json"
    output.write_text("the result of an earlier run")
    assert run(small, tmp_path / "input.jpg", output) == 11
    assert json.loads(output.read_text())["error"]["reason"] == "BadImage"
    assert run(small, tmp_path / "none.jpg", output) == 10
    assert json.loads(output.read_text())["error"]["code"] == 10


def test_files_over_the_limit_are_not_read(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    for limit in ("--max-pixels=1000", "--max-bytes=1000"):
        assert run(small, pictures[0] / "plain.jpg", tmp_path / "o.json", limit) == 11
        assert "the limit is 1000" in json.loads((tmp_path / "o.json").read_text())["error"]["message"]


def test_weights_that_do_not_fit_are_explained(pictures: Pictures, small: Reference, tmp_path: Path) -> None:
    tensors = load_file(small.file)
    first = "features.0.0.weight"
    conv, fewer = ({"new.weight": torch.zeros(1)}, {key: value for key, value in tensors.items() if key != first})
    wrong = {
        "missing": (fewer, f"no tensor `{first}`"),
        "more": ({**tensors, **conv}, "tensors of another network, such as `new.weight`"),
        "shape": ({**tensors, first: torch.zeros(2, 3)}, "has the shape (2, 3), expected"),
    }
    output = tmp_path / "o.json"
    for name, (content, message) in wrong.items():
        save_file(content, tmp_path / name)
        assert run(small, pictures[0], output, f"--weights={tmp_path / name}") == 12
        assert message in json.loads(output.read_text())["error"]["message"]
    (tmp_path / "pickle").write_bytes(b"\x80\x02}q\x00.")
    others = {
        f"--weights={tmp_path / 'pickle'}": "is not a safetensors file",
        f"--weights={tmp_path / 'none'}": "No such file",
        f"--weights-sha256={'0' * 64}": "expected 0000",
    }
    for argument, message in others.items():
        assert run(small, pictures[0], output, argument) == 12
        assert message in json.loads(output.read_text())["error"]["message"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_an_error(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    assert run(small, pictures[0], tmp_path / "o.json", "--device=cuda") == 13


def test_half_precision_is_close(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    source = pictures[0] / "plain.jpg"
    for precision in ("float32", "bfloat16"):
        assert run(small, source, tmp_path / precision, f"--precision={precision}", "--top-k=1000") == 0
    exact, rough = (
        {item["index"]: item["probability"] for item in json.loads((tmp_path / name).read_text())["top1000"]}
        for name in ("float32", "bfloat16")
    )
    assert max(abs(exact[index] - rough[index]) for index in exact) < 0.1


def test_sigterm_leaves_no_draft(small: Reference, pictures: Pictures, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{pictures[0] / 'plain.jpg'}\n" * 5000)
    results = tmp_path / "results"
    command = [sys.executable, "-m", "kaigen_classify", f"--model={small.name}", "--device=cpu"]
    files = [f"--weights={small.file}", f"--input={tmp_path / 'list.txt'}", f"--output={results / 'o.json'}"]
    package = str(Path(cli.__file__).parent.parent)
    with subprocess.Popen([*command, *files], env={**os.environ, "PYTHONPATH": package}) as process:
        while not (results.is_dir() and any(results.iterdir())):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert list(results.iterdir()) == []
