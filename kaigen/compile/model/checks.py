"""Checks of a resolved Model."""

from __future__ import annotations

from kaigen.catalog.presets import find_preset
from kaigen.compile.builders.buckets import check_bucket
from kaigen.compile.builders.storage import check_access_modes, check_room
from kaigen.compile.builders.weights import check_paths
from kaigen.compile.model.resolution import ModelResolution
from kaigen.compile.model.store import STORE
from kaigen.compile.problems import Problems
from kaigen.kinds.blocks import HuggingFace
from kaigen.kinds.model import ModelVolume


def check_model(resolution: ModelResolution, problems: Problems) -> None:
    """Report every problem of a Model that its resolution did not."""
    spec = resolution.spec
    if spec.store.bucket:
        check_bucket(spec.store.bucket, (*STORE, "bucket"), problems)
    if spec.store.volume:
        check_access_modes(spec.store.volume, resolution.context, (*STORE, "volume"), problems)
        _check_size(spec.source.hugging_face, spec.store.volume, problems)
    if spec.source.http:
        check_paths(spec.source.http.files, ("spec", "source", "http", "files"), problems)


def _check_size(hub: HuggingFace | None, volume: ModelVolume, problems: Problems) -> None:
    """Report a volume that is smaller than the weights of its repository, as far as the catalogue knows them."""
    preset = find_preset(hub.repo) if hub is not None else None
    if hub is None or preset is None or hub.include or any("safetensors" in each for each in hub.exclude):
        return
    check_room(volume.size, preset, (*STORE, "volume", "size"), problems)
