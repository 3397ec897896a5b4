"""What sizing answers."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.sizing.facts import Hardware, ModelFacts, Request
from kaigen.sizing.memory import GpuMemory, Layout, Load


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model runs, and why it fits.

    Attributes:
        facts: of the model, as it is loaded.
        request: as asked.
        hardware: of each node.
        load: what the arithmetic was done for.
        layout: nodes and parallelism of a replica.
        memory: of the fullest GPU.
        max_context: longest context at the load's concurrency.
        max_concurrency: sequences of the load's context length that fit at once, in a replica.
        flags: arguments of the engine that follow, by vLLM's names without dashes.
        notes: what a person should know besides.
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
        """GPUs that each pod asks for; idle ones are left to others."""
        return -(-self.layout.gpus // self.layout.nodes)
