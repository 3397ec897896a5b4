"""The engines that kaigen knows.

To add one: a class in a module of this package, its line in `ENGINES`, and its row in `kaigen/catalog/engines.yaml`.
"""

from __future__ import annotations

from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.container import Container
from kaigen.compile.engines.distributed_llama import DistributedLlama
from kaigen.compile.engines.pod_template import PodTemplate
from kaigen.compile.engines.transformers import Transformers
from kaigen.compile.engines.vllm import Vllm
from kaigen.kinds.topology import TopologySpec

ENGINES: tuple[type[Engine], ...] = (
    Vllm,
    Transformers,
    DistributedLlama,
    Container,
)


def engine_of(spec: TopologySpec) -> Engine:
    """Return the engine that a spec selects."""
    if spec.template is not None:
        return PodTemplate()
    return next(engine for engine in ENGINES if engine.name == spec.engine)()
