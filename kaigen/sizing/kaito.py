"""KAITO's own estimate of nodes and parallelism, with the constants of its versions.

It is here so that output that follows KAITO can have KAITO's numbers, right or wrong. It knows nothing of heads, takes
the data sheet's memory, and shares the cache of MLA among GPUs that each keep all of it; `plan` does better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from kaigen.sizing.constants import kaito_constants
from kaigen.sizing.facts import GIB, Hardware, ModelFacts
from kaigen.sizing.problem import Field, PlanError

if TYPE_CHECKING:
    from kaigen.catalog.instances import Instance
    from kaigen.catalog.presets import Preset

CURRENT = "v0.12"
"""The newest release."""


@dataclass(frozen=True, slots=True)
class KaitoEstimate:
    """What KAITO decides for a replica.

    Attributes:
        min_gpus: GPUs that it needs by the estimate.
        nodes: nodes, so many that they have those GPUs.
        tp: `--tensor-parallel-size`.
        pp: `--pipeline-parallel-size`.
        dp: `--data-parallel-size`.
    """

    min_gpus: int
    nodes: int
    tp: int
    pp: int
    dp: int


@dataclass(frozen=True, slots=True)
class KaitoNode:
    """A node as KAITO's tables have it.

    Attributes:
        memory: of all its GPUs together, in GiB, by the data sheet.
        gpus: how many.
        gpu: GPU model, by the catalogue's name.
    """

    memory: float
    gpus: int
    gpu: str = ""


def node_of(instance: Instance) -> KaitoNode | None:
    """The node of an instance type; None where KAITO's tables have none."""
    if instance.kaito is None:
        return None
    return KaitoNode(instance.kaito.total, instance.count, instance.gpu.name)


def node_like(hardware: Hardware) -> KaitoNode:
    """The node that KAITO would see in nodes of that kind: by its tables, else by the data sheet."""
    from kaigen.catalog.instances import find_instance

    instance = find_instance(hardware.instance) if hardware.instance else None
    if instance is not None and instance.count == hardware.count and instance.kaito is not None:
        return KaitoNode(instance.kaito.total, instance.count, hardware.gpu)
    return KaitoNode(hardware.nominal * hardware.count, hardware.count, hardware.gpu)


def utilization(gpu: str, version: str = CURRENT) -> float:
    """The share of a GPU's memory that the estimate counts with."""
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
    """Nodes and parallelism as KAITO derives them for vLLM.

    Args:
        weights: size of the weights in GiB, as KAITO's catalogue has it.
        kv_bytes_per_token: of the whole model.
        node: a node.
        context: `max-model-len` of the user's config; None for what KAITO reserves then.
        state: GiB that layers without attention keep, which versions after v0.12 count.
        version: `v0.12`, or `v0.12+2302` with the pull request of that number, which came after it.

    Raises:
        PlanError: not even the cache of one sequence fits on a GPU, or there is no such version.
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
            f"KAITO {version} finds no room for weights beside {tokens} tokens",
            f"{fixed:.2f} GiB of {available:.2f} a GPU are taken before the weights",
        )
    min_gpus = floor(weights * constants["weightsFactor"] / ((available - fixed) / constants["headroom"])) + 1
    nodes = ceil(min_gpus / node.gpus)
    if nodes == 1 and node.gpus > 1 and weights * node.gpus * 2 < node.memory:
        return KaitoEstimate(min_gpus, nodes, 1, 1, node.gpus)
    return KaitoEstimate(min_gpus, nodes, node.gpus, nodes, 1)


def estimate_preset(
    preset: Preset, node: KaitoNode, *, context: int | None = None, version: str = CURRENT
) -> KaitoEstimate:
    """The same for a preset, with KAITO's own numbers of it.

    Raises:
        PlanError: likewise, or KAITO had no such numbers of the model.
    """
    if preset.kaito.weights is None or preset.kaito.kv_bytes_per_token is None:
        raise PlanError(
            "KG1103",
            Field.MODEL,
            f"KAITO never had the numbers of {preset.name} that its estimate takes",
            "it was gone before KAITO v0.7, where the estimate began",
        )
    return estimate(
        preset.kaito.weights,
        preset.kaito.kv_bytes_per_token,
        node,
        context=context,
        state=preset.state_mib / 1024,
        version=version,
    )


def estimate_facts(
    facts: ModelFacts, node: KaitoNode, *, context: int | None = None, version: str = CURRENT
) -> KaitoEstimate:
    """The same for a model that KAITO does not know, with the numbers that it would read from the config."""
    values = facts.latent_dim or 2 * facts.kv_heads * facts.head_dim
    size = values * 2 * facts.layers
    return estimate(facts.weights, size, node, context=context, state=facts.state_mib / 1024, version=version)


def seed_complaints(preset: Preset, node: KaitoNode, count: int = 1) -> tuple[str, ...]:
    """What the seed's webhook said of a preset on so many nodes of its table; nothing when it let them pass.

    It took the memory of a whole node for that of one GPU, so it multiplied by the GPUs once too often: falcon-40b
    passed on four GPUs of 16 GiB.

    Args:
        preset: the model.
        node: a row of the seed's table.
        count: `resource.count` of the Workspace.

    Raises:
        PlanError: the seed did not have the preset.
    """
    wanted = preset.kaito.seed
    if not wanted:
        raise PlanError("KG1103", Field.MODEL, f"the seed did not have {preset.name}")
    gpus, total = count * node.gpus, count * node.memory * node.gpus
    checks = (
        (gpus, wanted["minGpuCount"], "GPUs"),
        (node.memory, wanted["minGBPerGpu"], "GB for each GPU"),
        (total, wanted["minTotalGB"], "GB for all GPUs"),
    )
    return tuple(f"{has:g} {what} of {least}" for has, least, what in checks if has < least)


def _constants(version: str) -> Mapping[str, Any]:
    known = kaito_constants()
    if version not in known:
        raise PlanError.unknown_name(Field.MODEL, "version of KAITO's estimate", version, known)
    return known[version]
