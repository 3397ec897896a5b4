"""Run a network over images in batches, and write the labels."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from kaigen_classify.errors import BadImage, NoDevice, NoneRead
from kaigen_classify.inputs import find_images, is_single
from kaigen_classify.machine import cpus
from kaigen_classify.networks import build
from kaigen_classify.pictures import CROP, read_picture
from kaigen_classify.results import Images, timestamp, write_object, written
from kaigen_classify.settings import Settings
from kaigen_classify.weights import Tensors, read_weights

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
"""Of ImageNet (source: torchvision's presets of the weights)."""

_MOST_READERS = 8


def labels() -> list[str]:
    """Return the 1,000 labels, by index."""
    text = files("kaigen_classify").joinpath("labels.json").read_text("utf-8")
    return list(json.loads(text)["labels"])


class Classifier:
    """A network with its weights on a device.

    Attributes:
        sha256: checksum of the weights.
    """

    def __init__(self, settings: Settings) -> None:
        """Load the weights.

        Raises:
            BadWeights: they cannot be used.
            NoDevice: there is no GPU.
        """
        if settings.device == "cuda" and not torch.cuda.is_available():
            raise NoDevice("there is no GPU that PyTorch can use; on a CPU, use --device=cpu")
        if settings.precision == "float32":
            # On a GPU, PyTorch computes convolutions of float32 with the 10 bits of TF32 unless TF32 is off.
            torch.backends.cudnn.conv.fp32_precision = "ieee"
        tensors, self.sha256 = read_weights(settings.weights, settings.sha256)
        self._settings = settings
        self._dtype = getattr(torch, settings.precision)
        self._network = build(settings.model, Tensors(tensors, settings.device, self._dtype))
        shape = (1, 3, 1, 1)
        self._mean = torch.tensor(MEAN, device=settings.device).reshape(shape)
        self._std = torch.tensor(STD, device=settings.device).reshape(shape)
        self._labels = labels()
        if settings.device == "cuda":
            # The first pass selects kernels; it would count as time of the first image.
            self.run([bytes(CROP * CROP * 3)] * settings.batch_size)

    def run(self, pixels: Sequence[bytes]) -> tuple[list[list[dict[str, Any]]], float]:
        """Return the labels of images, best first, and the time of the pass in milliseconds.

        The time includes the transfer to the device and ends when the device is done.

        Args:
            pixels: see `resize_and_crop`.

        Raises:
            NoDevice: the batch does not fit in the memory of the GPU.
        """
        raw = torch.frombuffer(bytearray().join(pixels), dtype=torch.uint8)
        raw = raw.reshape(len(pixels), CROP, CROP, 3).permute(0, 3, 1, 2)
        # A permuted tensor is in channels-last layout, which GPUs prefer.
        layout = torch.contiguous_format if self._settings.device == "cpu" else torch.channels_last
        begin = time.perf_counter()
        try:
            with torch.inference_mode():
                images = raw.to(self._settings.device, memory_format=layout).float().div_(255)
                images = images.sub_(self._mean).div_(self._std).to(self._dtype)
                found = torch.softmax(self._network(images), 1).topk(self._settings.top_k)
                # Copies to the host wait for the device.
                probabilities, indices = found.values.tolist(), found.indices.tolist()
        except torch.OutOfMemoryError:
            message = f"{len(pixels)} images do not fit in the memory of the GPU; use a smaller --batch-size"
            raise NoDevice(message) from None
        elapsed = (time.perf_counter() - begin) * 1000
        return [
            [
                {"label": self._labels[index], "probability": probability, "index": index}
                for index, probability in zip(*row, strict=True)
            ]
            for row in zip(indices, probabilities, strict=True)
        ], elapsed


@dataclass(frozen=True, slots=True)
class Summary:
    """The outcome of a run.

    Attributes:
        classified: number of images with labels.
        failed: number of images that could not be read.
        elapsed_ms: time of the network.
        result: the file.
    """

    classified: int
    failed: int
    elapsed_ms: float
    result: Path


def classify(settings: Settings) -> Summary:
    """Classify the images of this shard and write the result.

    Raises:
        Failure: there is no result, or none for any image.
    """
    torch.set_num_threads(cpus())
    paths = find_images(settings)
    classifier = Classifier(settings)
    common = {"model": settings.model}
    about = {
        "device": settings.device,
        "precision": settings.precision,
        "weights": {"version": settings.version, "sha256": classifier.sha256},
    }
    if is_single(settings) and settings.shards == 1:
        pixels = read_picture(paths[0], settings)
        (top,), elapsed = classifier.run([pixels])
        image = {f"top{settings.top_k}": top, "elapsed_ms": round(elapsed, 2)}
        content = {**common, **image, **about, "timestamp": timestamp(), "image": str(paths[0])}
        write_object(settings.result, content)
        return Summary(1, 0, elapsed, settings.result)
    lines = settings.result.suffix == ".jsonl"
    with written(settings.result) as file:
        images = Images(file, {**common, **(about if lines else {})}, lines=lines)
        summary = _classify_all(paths, classifier, settings, images)
        counts = {
            "classified": summary.classified,
            "failed": summary.failed,
            "elapsed_ms": round(summary.elapsed_ms, 2),
        }
        images.end({**counts, **about, "timestamp": timestamp()})
    if summary.failed and not summary.classified:
        raise NoneRead(f"none of {summary.failed} images could be read; {summary.result} has the reasons")
    return summary


def _classify_all(paths: Sequence[Path], classifier: Classifier, settings: Settings, images: Images) -> Summary:
    classified, failed, total = 0, 0, 0.0
    for batch in _read_ahead(paths, settings):
        pixels = [found for _, found in batch if isinstance(found, bytes)]
        tops, elapsed = classifier.run(pixels) if pixels else ([], 0.0)
        total += elapsed
        made = iter(tops)
        for path, found in batch:
            entry: dict[str, Any] = {"image": str(path)}
            if isinstance(found, BadImage):
                failed += 1
                entry["error"] = {"reason": found.reason, "message": str(found)}
            else:
                classified += 1
                entry[f"top{settings.top_k}"] = next(made)
                entry["elapsed_ms"] = round(elapsed / len(pixels), 2)
            images.add({**entry, "timestamp": timestamp()})
    return Summary(classified, failed, total, settings.result)


def _read_ahead(paths: Sequence[Path], settings: Settings) -> Iterator[list[tuple[Path, bytes | BadImage]]]:
    """Return batches of images; while one is classified, threads read the next."""

    def read(path: Path) -> tuple[Path, bytes | BadImage]:
        try:
            return path, read_picture(path, settings)
        except BadImage as error:
            return path, error

    with ThreadPoolExecutor(min(cpus(), _MOST_READERS)) as readers:
        ahead = None
        for begin in range(0, len(paths), settings.batch_size):
            reading = [readers.submit(read, path) for path in paths[begin : begin + settings.batch_size]]
            if ahead is not None:
                yield [done.result() for done in ahead]
            ahead = reading
        if ahead is not None:
            yield [done.result() for done in ahead]
