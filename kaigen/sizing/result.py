"""The result of sizing."""

from __future__ import annotations

from msgspec import Struct

from kaigen.sizing.facts import Hardware, ModelFacts, Request
from kaigen.sizing.memory import GpuMemory, Layout, Load


class Plan(Struct, frozen=True):
    """How a model runs, and why it fits.

    Attributes:
        facts: of the loaded model.
        request: the request.
        hardware: of each node.
        load: the load with defaults applied.
        layout: nodes and parallelism of a replica.
        memory: of the fullest GPU.
        max_context: longest context at the load's concurrency.
        max_concurrency: sequences of the load's context length that fit at once, in a replica.
        flags: arguments of the engine, by vLLM's names without dashes.
        notes: remarks for people.
    """

    facts: ModelFacts
    request: Request
    hardware: Hardware
    load: Load
    layout: Layout
    memory: GpuMemory
    max_context: int
    max_concurrency: int
    flags: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """Nodes of a replica."""
        return self.layout.nodes

    @property
    def total_nodes(self) -> int:
        """Nodes of all replicas."""
        return self.layout.nodes * self.request.replicas

    @property
    def gpus_per_node(self) -> int:
        """GPUs that each pod requests."""
        return -(-self.layout.gpus // self.layout.nodes)
