"""`python -m benchmarks.classify`: compare kaigen-classify with a process of torchvision for each image, on a CPU."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision.models import get_model

_RUNTIME = Path(__file__).parent.parent / "runtimes" / "classify"
_NAIVE = """
import json, sys, torch
from PIL import Image
from safetensors.torch import load_file
from torchvision.models import get_model, get_model_weights
name, weights, source, result = sys.argv[1:]
network = get_model(name)
network.load_state_dict(load_file(weights))
network.eval()
about = get_model_weights(name).DEFAULT
with torch.inference_mode():
    image = about.transforms()(Image.open(source).convert("RGB")).unsqueeze(0)
    found = torch.softmax(network(image), 1)[0].topk(5)
top = [{"label": about.meta["categories"][i], "probability": p} for p, i in zip(*map(torch.Tensor.tolist, found))]
json.dump({"model": name, "top5": top}, open(result, "w"))
"""
"""What the seed's inference script does, without its faults."""


def _images(folder: Path, count: int) -> list[Path]:
    """Write photos of a usual size."""
    generator = torch.Generator().manual_seed(1)
    folder.mkdir()
    for number in range(count):
        coarse = torch.rand((1, 3, 12, 16), generator=generator)
        pixels = torch.nn.functional.interpolate(coarse, (768, 1024), mode="bicubic")[0].clamp(0, 1)
        content = pixels.mul(255).to(torch.uint8).permute(1, 2, 0).contiguous().numpy().tobytes()
        Image.frombytes("RGB", (1024, 768), content).save(folder / f"{number:04}.jpg")
    return sorted(folder.iterdir())


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _run(*command: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(_RUNTIME)}
    subprocess.run([sys.executable, *command], env=env, check=True, stdout=subprocess.DEVNULL)


def main(argv: Sequence[str]) -> int:
    """Print one line for each way to classify the images."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classify", description=__doc__)
    parser.add_argument("--model", choices=("resnet50", "mobilenet_v3_small"), default="resnet50")
    parser.add_argument("--images", type=int, default=100, metavar="N")
    parser.add_argument("--naive", type=int, default=5, metavar="N", help="images of the naive way (5)")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = folder / "weights.safetensors"
        save_file(get_model(given.model).state_dict(), weights)
        images = _images(folder / "images", given.images)
        program = ["-m", "kaigen_classify", f"--model={given.model}", f"--weights={weights}", "--device=cpu"]
        output = f"--output={folder / 'all.jsonl'}"

        def naive() -> None:
            for path in images[: given.naive]:
                _run("-c", _NAIVE, given.model, str(weights), str(path), str(folder / "one.json"))

        naive()  # The first start of PyTorch reads gigabytes.
        times = {
            "torchvision, a process for each image": _seconds(naive) / min(given.naive, len(images)),
            "kaigen-classify, one image": _seconds(lambda: _run(*program, f"--input={images[0]}", output)),
            f"kaigen-classify, {len(images)} images": _seconds(
                lambda: _run(*program, f"--input={images[0].parent}", output)
            )
            / len(images),
        }
    ruler = next(iter(times.values()))
    print(f"{given.model} on {os.cpu_count()} processors, time for an image:")
    for what, taken in times.items():
        print(f"{what:42} {taken:8.3f} s  {ruler / taken:6.1f} x as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
