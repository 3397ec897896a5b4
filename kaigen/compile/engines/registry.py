"""The engines that kaigen knows.

To add one: a class in a module of this package, its line in `ENGINES`, and its row in `kaigen/catalog/engines.yaml`.
"""

from __future__ import annotations

from itertools import accumulate

from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.container import Container, PodTemplate
from kaigen.compile.engines.distributed_llama import DistributedLlama
from kaigen.compile.engines.transformers import Transformers
from kaigen.compile.engines.vllm import Vllm
from kaigen.compile.problems import is_understood
from kaigen.kinds.topology import TopologySpec

ENGINES: tuple[type[Engine], ...] = (Vllm, Transformers, DistributedLlama, Container)


def engine_of(spec: TopologySpec) -> Engine:
    """Return the engine that a spec selects."""
    return PodTemplate() if spec.template is not None else engine_named(spec.engine)()


def engine_named(name: str) -> type[Engine]:
    """Return the engine with a name.

    Raises:
        KeyError: there is none.
    """
    return {engine.name: engine for engine in ENGINES}[name]


def hint_of(engine: Engine, field: str) -> str:
    """Return what to do in place of a field that an engine does not understand.

    Args:
        engine: the engine.
        field: the field, by its name in documents.
    """
    blocks = accumulate(field.split("."), lambda block, name: f"{block}.{name}")
    for block in (*reversed([*blocks]), ""):
        if block in engine.hints:
            return engine.hints[block]
    other = next((each.name for each in ENGINES if is_understood(field, each.understood)), "")
    return f"use `engine: {other}`, which supports it" if other else "leave it out"
