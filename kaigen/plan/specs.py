"""Plans of specs: what `kaigen plan SPEC` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog import own_rows
from kaigen.catalog.instances import find_instance
from kaigen.diagnostics.problem import ProblemError
from kaigen.sizing.answer import Answer, Question, answer
from kaigen.sizing.problem import PlanError
from kaigen.sizing.ring import RingPlan, memory_request
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.compile.known_model import KnownModel
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.diagnostics.problem import Problem
    from kaigen.kinds.model import Model
    from kaigen.kinds.spec import Spec
    from kaigen.kinds.topology import Topology, TopologySpec

with lazy_imports():
    from kaigen.compile import problems as compile_problems
    from kaigen.compile.engines import registry
    from kaigen.compile.model import conversion as model_conversion
    from kaigen.compile.model import mounted
    from kaigen.compile.topology import ring, sizing
    from kaigen.diagnostics import diagnostic
    from kaigen.kinds import blocks
    from kaigen.kinds import model as kinds_model
    from kaigen.kinds import topology as kinds_topology
    from kaigen.sizing import conversion


class SpecPlan(Struct, frozen=True):
    """How the model of one spec runs.

    Attributes:
        name: of the app.
        source: file of the spec.
        answer: the plan, and the next best instance types.
        rendered: whether `render` writes the plan; it does not for a spec that does not say which GPUs the nodes have.
    """

    name: str
    source: str
    answer: Answer
    rendered: bool


class NoPlan(Struct, frozen=True):
    """A Topology that cannot be planned.

    Attributes:
        name: of the app.
        why: in words.
    """

    name: str
    why: str


class RingOfSpec(Struct, frozen=True):
    """How the model of one spec runs in a ring of distributed-llama.

    Attributes:
        name: of the app.
        source: file of the spec.
        plan: nodes, context and memory.
        root: memory that the root requests.
        worker: memory that each worker requests; empty without workers.
    """

    name: str
    source: str
    plan: RingPlan
    root: str
    worker: str


class SpecPlans(Struct, frozen=True):
    """Plans of many specs.

    Attributes:
        plans: in the order of the specs.
        diagnostics: why others do not fit.
        without: Topologies that cannot be planned.
        conversions: name and description of each Model that is converted.
        rings: of Topologies that distributed-llama serves.
    """

    plans: tuple[SpecPlan, ...]
    diagnostics: tuple[Diagnostic, ...]
    without: tuple[NoPlan, ...]
    conversions: tuple[tuple[str, str], ...] = ()
    rings: tuple[RingOfSpec, ...] = ()


def plan_specs(
    specs: Iterable[Spec],
    context: Context,
    change: Callable[[Question], Question] = lambda question: question,
) -> SpecPlans:
    """Plan every Topology that serves a model of known size, lowered from a dialect or not.

    Args:
        specs: validated.
        context: what they are compiled for, with the specs that they may refer to.
        change: returns a question with options that replace fields of the spec.
    """
    with own_rows.using(context.rows):
        return _plan_specs(specs, context, change)


def _plan_specs(specs: Iterable[Spec], context: Context, change: Callable[[Question], Question]) -> SpecPlans:
    plans: list[SpecPlan] = []
    diagnostics: list[Diagnostic] = []
    without: list[NoPlan] = []
    conversions: list[tuple[str, str]] = []
    rings: list[RingOfSpec] = []
    for spec in specs:
        topology = spec.block
        if isinstance(topology, kinds_model.Model):
            found = compile_problems.Problems()
            if text := _conversion(topology, found):
                conversions.append((topology.metadata.name, text))
            diagnostics += [_diagnostic(spec, item) for item in found.items]
        if not isinstance(topology, kinds_topology.Topology):
            continue
        name = topology.metadata.name
        try:
            if topology.spec.template is None and registry.engine_of(topology.spec).is_ring:
                made, problems = _ring(spec, topology, context)
                diagnostics += problems
                if isinstance(made, RingOfSpec):
                    rings.append(made)
                elif made is not None:
                    without.append(made)
                continue
            model = _model(topology, context)
            if isinstance(model, NoPlan):
                without.append(model)
                continue
            question = change(_question(topology.spec, model, context))
            plan = answer(question)
        except PlanError as error:
            diagnostics.append(_diagnostic(spec, sizing.plan_problem(error, topology.spec)))
        except ProblemError as error:
            diagnostics.append(_diagnostic(spec, error.problem))
        else:
            plans.append(SpecPlan(name, spec.source, plan, bool(question.instance_type or question.gpu)))
    return SpecPlans(tuple(plans), tuple(diagnostics), tuple(without), tuple(conversions), tuple(rings))


def _conversion(model: Model, problems: compile_problems.Problems) -> str:
    """Return what a Model is converted to; empty for nothing, or for a model that cannot be converted."""
    convert = mounted.conversion(model.spec)
    if convert is None or model.spec.source.volume is not None:
        return ""
    model_conversion.converted_model(model.spec, convert, problems)
    return "" if problems.failed else conversion.conversion_text(model.spec)


def _ring(
    spec: Spec, topology: Topology, context: Context
) -> tuple[RingOfSpec | NoPlan | None, list[Diagnostic]]:
    """Return the ring of a Topology, or why it cannot be planned, and what is wrong with it; no ring with errors.

    Raises:
        ProblemError: the runtime cannot load the weights.
    """
    own, namespace = topology.spec, topology.metadata.namespace or context.namespace
    found = compile_problems.Problems()
    model = sizing.model_spec(own, namespace, context.specs)
    plan = ring.resolve_ring(own, model, context, found)
    diagnostics = [_diagnostic(spec, item) for item in found.items]
    name = topology.metadata.name
    if found.failed:
        return None, diagnostics
    if plan.shape is None:
        hint = spec.hints.get("KG0394", "set `facts` of the Model to its config.json")
        return NoPlan(name, f"{ring.unknown_shape(model)}; {hint}"), diagnostics
    memory = own.resources.memory
    workers = memory or memory_request(plan.worker) if plan.nodes > 1 else ""
    return RingOfSpec(name, spec.source, plan, memory or memory_request(plan.root), workers), diagnostics


def _diagnostic(spec: Spec, problem: Problem) -> Diagnostic:
    warning = problem.severity is diagnostic.Severity.WARNING
    return spec.diagnostic(problem.code, str(problem.message), problem.path, problem.hint, warning=warning)


def _model(topology: Topology, context: Context) -> KnownModel | NoPlan:
    """Return the model that a Topology serves, or why it cannot be planned.

    Raises:
        ProblemError: there is no such preset, or facts are wrong.
    """
    spec, own = topology.spec, topology.metadata.name
    if spec.template is not None:
        return NoPlan(own, "kaigen does not know what a pod template serves")
    engine = registry.engine_of(spec)
    if not engine.facts.planned:
        return NoPlan(own, f"kaigen has no memory model of {engine.label}")
    namespace = topology.metadata.namespace or context.namespace
    model = sizing.topology_model(spec, namespace, context.specs)
    return model if model is not None else NoPlan(own, sizing.why_unknown(spec, namespace, context.specs))


def _question(spec: TopologySpec, model: KnownModel, context: Context) -> Question:
    resources = spec.resources
    instance = find_instance(resources.instance_type) if resources.instance_type else None
    given = resources.gpus
    gpus, mig = (given.count, given.profile or "") if isinstance(given, blocks.GpuShare) else (given, "")
    gpu = resources.gpu_type or (instance.gpu.name if instance is not None and mig else "")
    return Question(
        model=model.name,
        request=sizing.request_of(spec, registry.engine_of(spec), context),
        instance_type=instance.name if instance is not None and not mig else "",
        gpu=gpu if instance is None or mig else "",
        gpus=gpus if instance is not None or gpu else None,
        mig=mig,
        facts=model.facts if model.described else None,
    )
