"""Sizes of converted weights, from the facts of a Model or from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import find_preset
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.sizing.distributed_llama import BYTES, estimated_bytes, file_bytes, shape_of_config
from kaigen.sizing.problem import PlanError
from kaigen.sizing.room import GIB


def conversion_text(spec: DownloadSpec, catalog: Catalog) -> str:
    """Return what a Model is converted to, with its size, as a sentence; empty for a Model that is not converted."""
    if not isinstance(spec, ModelSpec):
        return ""
    convert = spec.convert.distributed_llama if spec.convert is not None else None
    if convert is None:
        return ""
    size = converted_bytes(spec, catalog)
    most = "" if spec.facts is not None else "at most "
    known = f"{most}{size / GIB:.2f} GiB" if size else "an unknown size"
    return f"The weights are converted to {convert.weights} for distributed-llama: model.m has {known}."


def converted_bytes(spec: DownloadSpec, catalog: Catalog) -> int:
    """Return the size of converted weights; an upper bound for a model of the catalogue; 0 if unknown."""
    if not isinstance(spec, ModelSpec):
        return 0
    convert = spec.convert.distributed_llama if spec.convert is not None else None
    if convert is None or convert.weights not in BYTES:
        return 0
    config = spec.facts.config if spec.facts is not None else None
    if isinstance(config, Mapping):
        try:
            return file_bytes(shape_of_config(config), convert.weights)
        except PlanError:
            return 0
    hub = spec.source.hugging_face
    preset = find_preset(hub.repo, catalog) if hub is not None else None
    if preset is None or not preset.parameters or not preset.vocabulary:
        return 0
    return estimated_bytes(int(preset.parameters * 1e9), preset.vocabulary, preset.hidden_size, convert.weights)
