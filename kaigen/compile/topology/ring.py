"""The ring of a Topology that distributed-llama serves: its nodes, its context, and the memory of each node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import find_preset
from kaigen.compile.context import Context
from kaigen.compile.model.mounted import conversion
from kaigen.compile.problems import Problems
from kaigen.config.locked_files import locked_source
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.model import Model
from kaigen.kinds.serving import ServedModel
from kaigen.kinds.topology import TopologySpec
from kaigen.kubernetes.quantities import units
from kaigen.sizing.distributed_llama import Shape, shape_of_config
from kaigen.sizing.problem import PlanError
from kaigen.sizing.ring import (
    BUFFER_TYPES,
    DEFAULT_CONTEXT,
    RingPlan,
    is_ring_size,
    memory_request,
    ring_plan,
    runnable_nodes,
    why_not,
)

UNKNOWN_SIZE = "KG0394"
_MODEL: FieldPath = ("spec", "model")
_NODES: FieldPath = ("spec", "shape", "nodes")


def resolve_ring(spec: TopologySpec, model: Model | None, context: Context, problems: Problems) -> RingPlan:
    """Return the ring that serves a spec.

    Args:
        spec: the spec.
        model: the Model that it serves; None for other weights.
        context: what it is compiled for, with the lock.
        problems: collects why no ring can serve it.

    Raises:
        ProblemError: the runtime cannot load the weights.
    """
    weights = _weights(spec, model)
    try:
        shape = _shape(spec, model, context)
    except ProblemError as error:
        problems.add(error.problem)
        return _ring_without_shape(spec, weights, problems)
    if shape is None:
        hint = "set `facts` of the Model to its config.json, or record the repository with `kaigen lock`"
        if spec.resources.memory is None:
            hint += ", or set `resources.memory`"
        message = f"{unknown_shape(model, context.catalog)}, so kaigen checks neither the ring nor its memory"
        problems.warning(UNKNOWN_SIZE, message, _MODEL, hint)
        return _ring_without_shape(spec, weights, problems)
    length, nodes = _context(spec, shape, problems), spec.shape.nodes
    fitting = runnable_nodes(shape, weights)
    if nodes is None:
        nodes = _smallest(spec, shape, weights, length, fitting)
    elif reason := why_not(shape, nodes, weights):
        known = f"use {', '.join(map(str, fitting))} nodes, the root included"
        if fitting == [1]:
            known = "use 1 node, the root"
        _reject_nodes(reason, known if fitting else "use `weights: f32`", problems)
        nodes = fitting[0] if fitting else 1
    plan = ring_plan(shape, weights, nodes, length)
    _check_memory(spec, plan, problems, largest=nodes == max(fitting, default=1))
    return plan


def unknown_shape(model: Model | None, catalog: Catalog) -> str:
    """Return what kaigen does not know about a model without a shape, as the start of a sentence."""
    hub = model.spec.source.hugging_face if model is not None else None
    preset = find_preset(hub.repo, catalog) if hub is not None else None
    if preset is not None:
        return f"the catalogue has `{preset.name}` without the width of its MLP"
    return "the shape of the model is not known"


def _ring_without_shape(spec: TopologySpec, weights: str, problems: Problems) -> RingPlan:
    """Return the ring of a model without a shape, and report a number of nodes that no ring has."""
    nodes = spec.shape.nodes or 1
    if not is_ring_size(nodes):
        _reject_nodes(f"a ring has 1, 2, 4, 8, … nodes, and not {nodes}", "", problems)
    return RingPlan(None, weights, nodes, spec.context_length or DEFAULT_CONTEXT)


def _reject_nodes(message: str, hint: str, problems: Problems) -> None:
    problems.error("KG0393", message, _NODES, hint or "set 2^k nodes: the root, and 2^k - 1 workers")


def _weights(spec: TopologySpec, model: Model | None) -> str:
    """Return the type of the weights: that of the conversion, else what the spec says.

    Raises:
        ProblemError: the runtime cannot load it.
    """
    convert = conversion(model.spec) if model is not None else None
    if model is not None and convert is None and model.spec.source.volume is None:
        raise ProblemError(
            "KG0393",
            f"Model `{model.metadata.name}` is not converted for distributed-llama",
            _MODEL,
            "add `convert: {distributedLlama: {weights: q40}}` to the Model",
        )
    given = spec.quantization
    if convert is not None and given is not None and given != convert.weights:
        raise ProblemError(
            "KG0393",
            f"the Model converts the weights to `{convert.weights}`, and `quantization` is `{given}`",
            ("spec", "quantization"),
            "leave it out",
        )
    weights = given or (convert.weights if convert is not None else "q40")
    if weights not in BUFFER_TYPES:
        raise ProblemError(
            "KG0391",
            f"distributed-llama cannot load weights of type `{weights}`",
            ("spec", "quantization") if given else _MODEL,
            "use `q40`, or `f32` for the full precision",
        )
    return weights


def _shape(spec: TopologySpec, model: Model | None, context: Context) -> Shape | None:
    """Return the shape of the model; None when nothing has its config.

    Raises:
        ProblemError: distributed-llama cannot run it.
    """
    own = spec.model.facts if isinstance(spec.model, ServedModel) else None
    config: str | Mapping[str, Any] | None = None
    path = _MODEL
    if own is not None:
        config, path = own.config, (*_MODEL, "facts", "config")
    elif model is not None and model.spec.facts is not None:
        config = model.spec.facts.config
    elif model is not None and context.lock is not None:
        locked = locked_source(model.spec.source, context.lock)
        config = locked.config if locked is not None else None
    if not isinstance(config, Mapping) or not config:
        return None
    try:
        return shape_of_config(config)
    except PlanError as error:
        raise ProblemError(error.problem.code, str(error), path, error.hint) from None


def _context(spec: TopologySpec, shape: Shape, problems: Problems) -> int:
    """Return the longest context: the whole one of a model would need too much memory in most cases."""
    given = spec.context_length
    if given is None:
        return min(shape.context, DEFAULT_CONTEXT)
    if given > shape.context:
        problems.error(
            "KG0393",
            f"the model has a context of {shape.context} tokens, which is less than {given}",
            ("spec", "contextLength"),
            f"set {shape.context} or less",
        )
    return min(given, shape.context)


def _smallest(spec: TopologySpec, shape: Shape, weights: str, context: int, fitting: list[int]) -> int:
    """Return the smallest ring whose nodes have enough memory; one node if the spec does not limit it."""
    limit = units(spec.resources.memory) if spec.resources.memory is not None else None
    if not fitting:
        return 1
    if limit is None:
        return fitting[0]
    plans = (ring_plan(shape, weights, nodes, context) for nodes in fitting)
    found = (plan.nodes for plan in plans if max(plan.root, plan.worker) <= limit)
    return next(found, fitting[-1])


def _check_memory(spec: TopologySpec, plan: RingPlan, problems: Problems, *, largest: bool) -> None:
    """Report a limit that is less than what a node needs.

    Args:
        spec: the spec.
        plan: the ring.
        problems: collects the error.
        largest: whether no ring of more nodes can run the model.
    """
    given = spec.resources.memory
    limit = units(given) if given is not None else None
    needed = max(plan.root, plan.worker)
    if limit is not None and limit < needed:
        problems.error(
            "KG0393",
            f"the root of {plan.nodes} nodes needs {memory_request(plan.root)} of memory for {plan.context} tokens, "
            f"and has {given}",
            ("spec", "resources", "memory"),
            "set more memory or a shorter `contextLength`"
            if largest
            else "set more memory, more nodes or a shorter `contextLength`",
        )
