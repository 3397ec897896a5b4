"""KAITO's own estimate of nodes and parallelism, with the constants of its versions.

`kaigen plan --kaito` shows it next to kaigen's plan. It ignores attention heads, uses the memory of the data sheet, and
divides the cache of MLA among GPUs that each keep all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import find_instance
from kaigen.core.text import plural
from kaigen.dialects.kaito.catalog import kaito_memory, kaito_preset
from kaigen.dialects.registry import Estimate
from kaigen.sizing.constants import GIB
from kaigen.sizing.facts import Hardware, ModelFacts
from kaigen.sizing.problem import Field, PlanError

if TYPE_CHECKING:
    from kaigen.catalog.instances import Instance
    from kaigen.catalog.presets import Preset

CURRENT = "v0.12"
"""The newest release."""


class KaitoEstimate(Struct, frozen=True):
    """What KAITO decides for a replica.

    Attributes:
        min_gpus: GPUs that the estimate requires.
        nodes: nodes with at least that many GPUs.
        tp: `--tensor-parallel-size`.
        pp: `--pipeline-parallel-size`.
        dp: `--data-parallel-size`.
    """

    min_gpus: int
    nodes: int
    tp: int
    pp: int
    dp: int

    @property
    def data(self) -> dict[str, int]:
        """The estimate as plain data."""
        return {
            "minGpus": self.min_gpus,
            "nodes": self.nodes,
            "tensorParallel": self.tp,
            "pipelineParallel": self.pp,
            "dataParallel": self.dp,
        }

    @property
    def text(self) -> str:
        """The estimate in one line."""
        parallel = [f"{name}{size}" for name, size in (("tp", self.tp), ("pp", self.pp), ("dp", self.dp)) if size > 1]
        counts = f"{plural(self.nodes, 'node')}, at least {plural(self.min_gpus, 'GPU')}"
        return f"{counts}, {' '.join(parallel)}" if parallel else counts


class KaitoNode(Struct, frozen=True):
    """A node as KAITO's tables describe it.

    Attributes:
        memory: total of all its GPUs, in GiB, by the data sheet.
        gpus: number of GPUs.
        gpu: GPU model, by the catalogue's name.
    """

    memory: float
    gpus: int
    gpu: str = ""


def estimates(preset: Preset | None, facts: ModelFacts, hardware: Hardware, context: int | None) -> list[Estimate]:
    """Return what each version of KAITO derives for a model, or why it cannot.

    Args:
        preset: the model; None for one that the catalogue does not have.
        facts: of the model.
        hardware: the nodes.
        context: `max-model-len` of the request; None for KAITO's default.
    """
    node = node_like(hardware)
    results = []
    for version in _versions():
        try:
            estimated = (
                estimate_facts(facts, node, context=context, version=version)
                if preset is None
                else estimate_preset(preset, node, context=context, version=version)
            )
            results.append(Estimate(version, estimated.text, estimated.data))
        except PlanError as error:
            results.append(Estimate(version, str(error), {"refused": str(error)}))
    return results


def node_of(instance: Instance) -> KaitoNode | None:
    """Return the node of an instance type; None where KAITO's tables do not have it."""
    memory = kaito_memory(instance)
    return None if memory is None else KaitoNode(memory, instance.count, instance.gpu.name)


def node_like(hardware: Hardware) -> KaitoNode:
    """Return the node that KAITO would see: by its tables, or by the data sheet."""
    instance = find_instance(hardware.instance, BUILT_IN) if hardware.instance else None
    if instance is not None and instance.count == hardware.count:
        memory = kaito_memory(instance)
        if memory is not None:
            return KaitoNode(memory, instance.count, hardware.gpu)
    return KaitoNode(hardware.nominal * hardware.count, hardware.count, hardware.gpu)


def utilization(gpu: str, version: str = CURRENT) -> float:
    """Return the share of a GPU's memory that the estimate uses."""
    constants = _constants(version)
    value: float = constants["utilizationByGpu"].get(gpu, constants["utilization"])
    return value


def estimate(
    weights: float,
    kv_bytes_per_token: int,
    node: KaitoNode,
    *,
    context: int | None = None,
    state: float = 0.0,
    version: str = CURRENT,
) -> KaitoEstimate:
    """Return nodes and parallelism as KAITO derives them for vLLM.

    Args:
        weights: size of the weights in GiB, by KAITO's catalogue.
        kv_bytes_per_token: of the whole model.
        node: a node.
        context: `max-model-len` of the user's config; None for KAITO's default.
        state: GiB that layers without attention keep; versions after v0.12 count it.
        version: `v0.12`, or `v0.12+2302` with the pull request of that number, which was merged later.

    Raises:
        PlanError: the cache of one sequence does not fit on a GPU, or the version is unknown.
    """
    constants = _constants(version)
    tokens = context or constants["context"]
    each = node.memory / node.gpus
    available = each * utilization(node.gpu, version)
    base = constants["baseGiBByGpu"].get(node.gpu, constants["baseGiB"])
    fixed = base + tokens * kv_bytes_per_token / GIB / node.gpus
    if constants["countsState"]:
        fixed += state / node.gpus
    if available <= fixed:
        raise PlanError(
            "KG1105",
            Field.HARDWARE,
            f"KAITO {version} has no memory left for weights next to {tokens} tokens",
            f"{fixed:.2f} GiB of {available:.2f} GiB of each GPU are used before the weights",
        )
    min_gpus = floor(weights * constants["weightsFactor"] / ((available - fixed) / constants["headroom"])) + 1
    nodes = ceil(min_gpus / node.gpus)
    if nodes == 1 and node.gpus > 1 and weights * node.gpus * 2 < node.memory:
        return KaitoEstimate(min_gpus, nodes, 1, 1, node.gpus)
    return KaitoEstimate(min_gpus, nodes, node.gpus, nodes, 1)


def estimate_preset(
    preset: Preset, node: KaitoNode, *, context: int | None = None, version: str = CURRENT
) -> KaitoEstimate:
    """Return the estimate of a preset, with KAITO's own numbers for it.

    Raises:
        PlanError: as in `estimate`, or KAITO has no numbers for the model.
    """
    numbers = kaito_preset(preset)
    if numbers.weights is None or numbers.kv_bytes_per_token is None:
        raise PlanError(
            "KG1103",
            Field.MODEL,
            f"KAITO has no numbers for its estimate of {preset.name}",
            "KAITO removed it before v0.7, which introduced the estimate" if numbers.removed_in else "",
        )
    return estimate(
        numbers.weights,
        numbers.kv_bytes_per_token,
        node,
        context=context,
        state=preset.state_mib / 1024,
        version=version,
    )


def estimate_facts(
    facts: ModelFacts, node: KaitoNode, *, context: int | None = None, version: str = CURRENT
) -> KaitoEstimate:
    """Return the estimate of a model that KAITO does not know, with the numbers that it would read from the config."""
    values = facts.latent_dim or 2 * facts.kv_heads * facts.head_dim
    size = values * 2 * facts.layers
    return estimate(facts.weights, size, node, context=context, state=facts.state_mib / 1024, version=version)


@cache
def _versions() -> Mapping[str, Mapping[str, Any]]:
    """Return the constants of the estimator by version, oldest first."""
    versions: Mapping[str, Mapping[str, Any]] = json.loads((Path(__file__).parent / "estimator.json").read_bytes())
    return versions


def _constants(version: str) -> Mapping[str, Any]:
    versions = _versions()
    if version not in versions:
        raise PlanError.unknown_name(Field.MODEL, "version of KAITO's estimate", version, versions)
    return versions[version]
