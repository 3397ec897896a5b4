"""kaigen-classify on a GPU: the labels of a CPU, and the speed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from kaigen_classify import cli
from networks.conftest import Reference
from networks.pictures_of_tests import colours

from tests.gpu.conftest import Record

_IMAGES = 256


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures of the size that the network reads."""
    folder = tmp_path_factory.mktemp("pictures")
    for seed in range(_IMAGES):
        colours(256, 256, seed).save(folder / f"{seed:04}.png")
    return folder


def _classify(reference: Reference, source: Path, output: Path, *flags: str) -> tuple[Any, float]:
    begin = time.monotonic()
    files = [f"--weights={reference.file}", f"--input={source}", f"--output={output}"]
    assert cli.main([f"--model={reference.name}", *files, *flags], {}) == 0
    return json.loads(output.read_text()), time.monotonic() - begin


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v3_small"])
def test_a_gpu_has_the_labels_of_a_cpu(pictures: Path, tmp_path: Path, record: Record, name: str) -> None:
    reference = Reference(name, tmp_path)
    torch.set_num_threads(8)
    found: dict[str, Any] = {}
    for device, precision in (("cpu", "float32"), ("cuda", "float32"), ("cuda", "float16")):
        flags = (f"--device={device}", f"--precision={precision}", "--top-k=1000", "--batch-size=64")
        output, seconds = _classify(reference, pictures, tmp_path / f"{device}-{precision}.json", *flags)
        assert (output["classified"], output["failed"]) == (_IMAGES, 0)
        found[f"{device} {precision}"] = {
            entry["image"]: {item["index"]: item["probability"] for item in entry["top1000"]}
            for entry in output["images"]
        }
        record(
            program="kaigen-classify",
            model=name,
            device=device,
            precision=precision,
            imagesPerSecond=round(_IMAGES / seconds),
            networkMilliseconds=output["elapsed_ms"],
        )
    exact = found.pop("cpu float32")
    for kind, entries in found.items():
        worst = max(abs(exact[image][index] - one) for image, top in entries.items() for index, one in top.items())
        assert worst < (0.001 if "float32" in kind else 0.1), kind
