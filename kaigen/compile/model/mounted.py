"""What other apps mount of a Model: the folder with its downloaded files, or with converted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.compile.builders.sources import identity
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.kinds.store import ModelVolume

if TYPE_CHECKING:
    from kaigen.kinds.convert import DistributedLlama

CONVERTER = "1"
"""Version of the converter's output: a converter that writes other bytes has another one (`kaigen_convert.VERSION`)."""

CONVERTED = "converted"
"""Folder with the converted files, next to those of the downloaded revisions."""

CONVERTED_SUFFIX = "-converted"
"""End of the name of the claim with converted files, if they have a volume of their own."""


def conversion(spec: DownloadSpec) -> DistributedLlama | None:
    """Return the format that the downloaded files are converted to; None for none."""
    convert = spec.convert if isinstance(spec, ModelSpec) else None
    return convert.distributed_llama if convert is not None else None


def mounted_volume(spec: DownloadSpec) -> ModelVolume | None:
    """Return the volume with the files that other apps mount; None for a bucket."""
    convert = conversion(spec)
    return convert.store.volume if convert is not None and convert.store is not None else spec.store.volume


def mounted_bucket(spec: DownloadSpec) -> Bucket | None:
    """Return the bucket with the files that other apps mount; None for a volume."""
    convert = conversion(spec)
    return convert.store.bucket if convert is not None and convert.store is not None else spec.store.bucket


def mounted_identity(spec: DownloadSpec) -> str:
    """Return the identity of the files that other apps mount: of the source, or of source, format and converter."""
    source, convert = identity(spec.source), conversion(spec)
    if convert is None:
        return source
    meaning = {"distributedLlama": convert.weights, "converter": CONVERTER, "source": source}
    return sha256_hex(go_json(meaning))[:16]


def mounted_root(spec: DownloadSpec) -> str:
    """Return the folder above them in their volume; empty for the volume itself."""
    convert = conversion(spec)
    return CONVERTED if convert is not None and convert.store is None else ""


def mounted_folder(spec: DownloadSpec) -> str:
    """Return their folder in the volume."""
    root, name = mounted_root(spec), mounted_identity(spec)
    return f"{root}/{name}" if root else name
