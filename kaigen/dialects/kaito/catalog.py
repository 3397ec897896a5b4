"""Columns of the catalogue that only KAITO has: what KAITO says of models and instance types, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from kaigen.catalog.instances import Instance
    from kaigen.catalog.presets import Preset


class KaitoPreset(Struct, frozen=True):
    """KAITO's values of a preset.

    Attributes:
        in_catalog: whether v0.12 has it.
        removed_in: version that removed it; empty while KAITO has it.
        tunable: whether KAITO can fine-tune it.
        weights: size of its weights in GiB; None where KAITO has none.
        kv_bytes_per_token: of the whole model at 16 bit; None where KAITO has none.
        seed: the preset in the table of KAITO's first version; empty where it had none.
    """

    in_catalog: bool
    removed_in: str
    tunable: bool
    weights: float | None
    kv_bytes_per_token: int | None
    seed: Mapping[str, Any]


def kaito_preset(preset: Preset) -> KaitoPreset:
    """Return KAITO's values of a preset; those of a preset that KAITO does not have are empty."""
    row = preset.row
    kaito = row.get("kaito", {})
    return KaitoPreset(
        in_catalog=kaito.get("catalog", False),
        removed_in=row.get("removedFromKaito", ""),
        tunable=row.get("tunable", False),
        weights=kaito.get("weightsGiB"),
        kv_bytes_per_token=kaito.get("kvBytesPerToken"),
        seed=kaito.get("seed", {}),
    )


def kaito_memory(instance: Instance) -> float | None:
    """Return the memory of all GPUs of a node by KAITO's tables, in GiB; None where they do not have the node."""
    row = instance.row.get("kaito")
    return None if row is None else row["totalGiB"]
