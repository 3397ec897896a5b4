"""The settings: arguments of the command line, and the variables of an Indexed Job."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kaigen_classify.errors import BadSettings

VERSIONS = {"resnet50": {"IMAGENET1K_V1": 256, "IMAGENET1K_V2": 232}, "mobilenet_v3_small": {"IMAGENET1K_V1": 256}}
"""torchvision's weights of each network, the default last, with the length of an image's shorter edge after resizing.

Source: the `transforms` of the weights in torchvision/models/resnet.py and mobilenetv3.py.
"""

MAX_PIXELS = 89_478_485
"""Pillow's limit: a quarter of a gigabyte for three bytes per pixel."""

MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run reads, computes and writes.

    Attributes:
        model: name of the network.
        weights: the safetensors file.
        version: torchvision's name of the weights.
        sha256: checksum that the file must have; None for any.
        input: an image, a folder or a list of images.
        output: file for the result, without the number of the shard.
        top_k: number of labels for each image.
        batch_size: images in one pass.
        precision: `float32`, `float16` or `bfloat16`.
        device: `cpu` or `cuda`.
        max_pixels: largest number of pixels of an image.
        max_bytes: largest size of an image file.
        shard: number of this shard, from 0.
        shards: number of shards.
    """

    model: str
    weights: Path
    version: str
    sha256: str | None
    input: Path
    output: Path
    top_k: int
    batch_size: int
    precision: str
    device: str
    max_pixels: int
    max_bytes: int
    shard: int
    shards: int

    @property
    def resize(self) -> int:
        """Length of the shorter edge of an image before it is cropped."""
        return VERSIONS[self.model][self.version]

    @property
    def result(self) -> Path:
        """File for the result: with several shards, the number is before the suffix."""
        if self.shards == 1:
            return self.output
        return self.output.with_name(f"{self.output.stem}-{self.shard}-of-{self.shards}{self.output.suffix}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSettings(f"{message} (see {self.prog} --help)")


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"not a number from {least} to {most}: {text!r}")
        return int(text)

    return parse


def _digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"not 64 hex digits: {text!r}")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kaigen-classify", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--model", choices=tuple(VERSIONS), default="resnet50", help="the network (%(default)s)")
    add(
        "--weights",
        required=True,
        type=Path,
        metavar="FILE",
        help="safetensors file, or one of PyTorch with --weights-sha256",
    )
    add(
        "--weights-version",
        choices=("IMAGENET1K_V1", "IMAGENET1K_V2"),
        help="torchvision's name of the weights (torchvision's default for the network)",
    )
    add("--weights-sha256", type=_digest, metavar="HEX", help="checksum that the file must have")
    add("--input", required=True, type=Path, metavar="PATH", help="an image, a folder, or a .txt with paths")
    add("--output", required=True, type=Path, metavar="FILE", help="file for the result, .json or .jsonl")
    add("--top-k", type=_number(1, 1000), default=5, metavar="N", help="labels for each image (%(default)s)")
    add("--batch-size", type=_number(1, 4096), default=32, metavar="N", help="images in one pass (%(default)s)")
    add("--precision", choices=("auto", "float32", "float16", "bfloat16"), default="auto")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: the GPU if there is one")
    add("--max-pixels", type=_number(1, 1 << 40), default=MAX_PIXELS, metavar="N")
    add("--max-bytes", type=_number(1, 1 << 40), default=MAX_BYTES, metavar="N")
    return parser


def read(argv: Sequence[str], env: Mapping[str, str], *, has_gpu: Callable[[], bool]) -> Settings:
    """Return the settings.

    Args:
        argv: arguments without the name of the program.
        env: the environment.
        has_gpu: whether there is a GPU.

    Raises:
        BadSettings: one is invalid.
    """
    given = _parser().parse_args(argv)
    version = given.weights_version or list(VERSIONS[given.model])[-1]
    if version not in VERSIONS[given.model]:
        raise BadSettings(f"{given.model} has no weights {version}")
    device = given.device if given.device != "auto" else "cuda" if has_gpu() else "cpu"
    precision = given.precision
    if precision == "auto":
        precision = "float16" if device == "cuda" else "float32"
    shard, shards = _variable(env, "JOB_COMPLETION_INDEX", 0), _variable(env, "SHARDS", 1)
    if not shard < max(1, shards):
        raise BadSettings(f"JOB_COMPLETION_INDEX is {shard}, but SHARDS is {shards}")
    return Settings(
        model=given.model,
        weights=given.weights,
        version=version,
        sha256=given.weights_sha256,
        input=given.input,
        output=given.output,
        top_k=given.top_k,
        batch_size=given.batch_size,
        precision=precision,
        device=device,
        max_pixels=given.max_pixels,
        max_bytes=given.max_bytes,
        shard=shard,
        shards=shards,
    )


def _variable(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal():
        raise BadSettings(f"{name} is not a number: {text!r}")
    return int(text)
