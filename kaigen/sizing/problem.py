"""Errors of sizing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from kaigen.diagnostics.problem import ProblemError
from kaigen.diagnostics.suggest import did_you_mean


class Field(Enum):
    """Fields of a question, by the names that people write."""

    MODEL = "model"
    HARDWARE = "instanceType"
    MIG = "mig"
    CONTEXT_LENGTH = "contextLength"
    CONCURRENCY = "concurrency"
    DTYPE = "dtype"
    QUANTIZATION = "quantization"
    KV_CACHE_DTYPE = "kvCacheDtype"
    UTILIZATION = "gpuMemoryUtilization"
    TENSOR_PARALLEL = "tensorParallel"
    PIPELINE_PARALLEL = "pipelineParallel"
    DATA_PARALLEL = "dataParallel"
    NODES = "nodes"
    REPLICAS = "replicas"


class PlanError(ProblemError):
    """There is no plan, for a reason that a person can act on.

    Attributes:
        field: the field of the question that is wrong.
    """

    def __init__(self, code: str, field: Field, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.field = field

    @classmethod
    def unknown_name(cls, field: Field, what: str, name: str, known: Iterable[str]) -> PlanError:
        """Return the error for an unknown name, with the nearest known name."""
        names = list(known)
        hint = did_you_mean(name, names) or (f"known: {', '.join(names)}" if names else "it has none")
        return cls("KG1106", field, f"unknown {what} `{name}`", hint)
