"""Ephemeral GPU Image Inference Operator (`gpu.yourdomain.io`): its `EphemeralAccelerationJob`, one classification."""

from __future__ import annotations

from kaigen.dialects.registry import Dialect
from kaigen.kinds.kind import ForeignKind

_SUMMARY = "Ephemeral GPU's image classification"

DIALECT = Dialect(
    name="ephemeral-gpu",
    title="Ephemeral GPU",
    kinds=(
        ForeignKind(
            "gpu.yourdomain.io/v1alpha1",
            "EphemeralAccelerationJob",
            "kaigen.dialects.ephemeral_gpu.model:EphemeralAccelerationJob",
            _SUMMARY,
            system="ephemeral-gpu",
            lower_reference="kaigen.dialects.ephemeral_gpu.lower:lower",
        ),
        ForeignKind(
            "gpu.redtails.io/v1alpha1",
            "EphemeralAccelerationJob",
            "kaigen.dialects.ephemeral_gpu.model:EphemeralAccelerationJobRedtails",
            _SUMMARY,
            system="ephemeral-gpu",
            older="redtails",
            lower_reference="kaigen.dialects.ephemeral_gpu.lower:lower",
        ),
    ),
)
