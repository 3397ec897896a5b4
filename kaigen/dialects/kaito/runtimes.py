"""KAITO's runtimes, and the engines that replace them."""

from __future__ import annotations

from enum import Enum


class Runtime(Enum):
    """A value of the annotation `kaito.sh/runtime`."""

    VLLM = "vllm"
    TRANSFORMERS = "transformers"

    @property
    def engine(self) -> str:
        """kaigen's engine that serves in its place, which has the same name."""
        return self.value


RUNTIME_NAMES = tuple(runtime.value for runtime in Runtime)
