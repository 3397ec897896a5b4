"""Versions of a Topology side by side: the pools of pods, each a Topology of its own, and what leads to them.

A pool never changes its name: the canary that becomes the version that serves keeps its objects and its pods.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from kaigen.kinds.base import APP_NAME_MAX, Metadata
from kaigen.kinds.block import derive_fields, document_name, replace_fields, set_fields, without_fields
from kaigen.kinds.blocks import SPREAD
from kaigen.kinds.exposure import AliasService, Service
from kaigen.kinds.lowering import Lowered, Lowering, origins_below
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.core.json_types import FieldPath
    from kaigen.kinds.canary import Canary
    from kaigen.kinds.topology import Topology, TopologySpec

with lazy_imports():
    from kaigen.kinds import alias as aliases
    from kaigen.kinds import canary as canaries

CANARY: FieldPath = ("spec", "canary")
"""The field of the next version."""
_DIGEST_LENGTH = 8


def specs_of(block: Topology, lowering: Lowering) -> list[Lowered]:
    """Return the specs of a Topology: itself, or an Alias and the pools that it leads to.

    Args:
        block: the document.
        lowering: collects what is wrong.
    """
    spec = block.spec
    if spec.canary is None and spec.pool is None:
        return [Lowered(block)]
    name = block.metadata.name
    pools = []
    if spec.canary is not None:
        block = _with_pool(block, spec.canary, lowering)
        assert block.spec.canary is not None
        pools.append(_pool(block, block.spec.canary, lowering))
    if spec.pool is None:
        return [Lowered(block), *pools]
    serving = _named(block, f"{name}-{spec.pool}", ("spec", "pool"), lowering)
    own = derive_fields(serving, spec=_pool_spec(spec, name))
    return [_front(block, lowering), Lowered(own, _origins(lowering)), *pools]


def canary_name(topology: Topology) -> str:
    """Return the name of the pool of a Topology's canary, which a lowered one has."""
    assert topology.spec.canary is not None
    return f"{topology.metadata.name}-{topology.spec.canary.pool}"


def pool_digest(written: dict[str, Any]) -> str:
    """Return what the name of a canary's pool ends in: a hash of its version.

    Args:
        written: the block as plain data.
    """
    version = {key: value for key, value in written.items() if key not in canaries.OWN}
    text = json.dumps(version, sort_keys=True, separators=(",", ":"))
    # As the end of a name: a hash of digits only would be read as a number where YAML has it without quotes.
    return f"v{sha256(text.encode()).hexdigest()[: _DIGEST_LENGTH - 1]}"


def _with_pool(block: Topology, canary: Canary, lowering: Lowering) -> Topology:
    """Return a Topology whose canary names its pool."""
    written = lowering.document.data["spec"]["canary"]
    pool = canary.pool or pool_digest(written)
    if not set_fields(canary) - canaries.OWN:
        hint = "set what is new, such as `image`, `model` or `engineArgs`"
        lowering.error("KG0433", "the canary is not another version", CANARY, hint)
    elif pool == block.spec.pool:
        hint = f"delete `canary`, or set `canary.pool` to another name than `{pool}`"
        lowering.error("KG0433", f"the canary is in the pool `{pool}`, which serves already", CANARY, hint)
    if block.spec.inference_pool is not None:
        hint = "use `router`, which each pool then has for itself"
        message = "an InferencePool has one endpoint picker, which cannot choose between versions"
        lowering.error("KG0432", message, ("spec", "inferencePool"), hint)
    return derive_fields(block, spec=derive_fields(block.spec, canary=derive_fields(canary, pool=pool)))


def _pool(block: Topology, canary: Canary, lowering: Lowering) -> Lowered:
    """Return the Topology of a canary."""
    fields = [name for name in canary.__struct_fields__ if name in set_fields(canary) - canaries.OWN]
    spec = _pool_spec(block.spec, block.metadata.name)
    if canary.replicas is not None:
        spec = derive_fields(spec, shape=derive_fields(spec.shape, replicas=canary.replicas))
    spec = replace_fields(spec, **{name: getattr(canary, name) for name in fields})
    written = lowering.document.data["spec"]["canary"]
    origins = _origins(lowering)
    for name in fields:
        key = document_name(canary, name)
        origins |= origins_below(written[key], ("spec", key), (*CANARY, key))
    if canary.replicas is not None:
        origins["spec", "shape", "replicas"] = (*CANARY, "replicas")
    named = _named(block, canary_name(block), CANARY, lowering)
    return Lowered(derive_fields(named, spec=spec), origins)


def _origins(lowering: Lowering) -> dict[FieldPath, FieldPath]:
    """Return where the fields of a spec are written that has the fields of the document."""
    data = lowering.document.data
    spec = origins_below(data["spec"], ("spec",), ("spec",))
    return origins_below(data["metadata"], ("metadata",), ("metadata",)) | spec


def _pool_spec(spec: TopologySpec, name: str) -> TopologySpec:
    """Return the spec of a pool: that of the Topology without what leads to it from outside."""
    service = Service(port=spec.service.port, allow_from=spec.service.allow_from)
    names = spec.served_names or [name]
    own = without_fields(spec, "canary", "pool", "route")
    placement = spec.placement
    if not placement.topology_spread and spec.template is None and spec.shape.nodes in {None, 1}:
        # Else the pods of a canary of one replica would be started again when it serves with several.
        placement = replace_fields(placement, topology_spread=[dict(SPREAD)])
    return derive_fields(own, service=service, served_names=names, placement=placement)


def _named(block: Topology, name: str, path: FieldPath, lowering: Lowering) -> Topology:
    if len(name) > APP_NAME_MAX:
        message = f"the pool is `{name}`, which has more than {APP_NAME_MAX} characters"
        lowering.error("KG0204", message, path, "choose a shorter name")
    given = block.metadata
    metadata = Metadata(name=name, namespace=given.namespace, labels=given.labels, annotations=given.annotations)
    return derive_fields(block, metadata=metadata)


def _front(block: Topology, lowering: Lowering) -> Lowered:
    """Return what has the Service and the route of a Topology, and leads to its pools."""
    spec, name = block.spec, block.metadata.name
    given = spec.service
    service = AliasService(
        type=given.type,
        port=given.port,
        annotations=given.annotations,
        load_balancer_class=given.load_balancer_class,
        load_balancer_source_ranges=given.load_balancer_source_ranges,
    )
    canary = None
    if spec.canary is not None:
        canary = aliases.AliasCanary(topology=canary_name(block), weight=spec.canary.weight)
    front = aliases.AliasSpec(topology=f"{name}-{spec.pool}", service=service, route=spec.route, canary=canary)
    origins = {
        **_origins(lowering),
        ("spec", "topology"): ("spec", "pool"),
        (*CANARY, "topology"): CANARY,
    }
    return Lowered(aliases.Alias(metadata=block.metadata, spec=front), origins)
