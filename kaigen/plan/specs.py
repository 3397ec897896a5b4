"""Plans of specs: what `kaigen plan SPEC` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import find_preset
from kaigen.sizing.answer import Answer, Question, answer
from kaigen.sizing.problem import PlanError
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.kinds.spec import Spec
    from kaigen.kinds.topology import Topology, TopologySpec

with lazy_imports():
    from kaigen.catalog import engines
    from kaigen.compile.topology import sizing
    from kaigen.kinds import blocks, serving
    from kaigen.kinds import model as kinds_model
    from kaigen.kinds import topology as kinds_topology


class SpecPlan(Struct, frozen=True):
    """How the model of one spec runs.

    Attributes:
        name: of the app.
        source: file of the spec.
        answer: the plan, and the next best instance types.
    """

    name: str
    source: str
    answer: Answer


class NoPlan(Struct, frozen=True):
    """A Topology that cannot be planned.

    Attributes:
        name: of the app.
        why: in words.
    """

    name: str
    why: str


class SpecPlans(Struct, frozen=True):
    """Plans of many specs.

    Attributes:
        plans: in the order of the specs.
        diagnostics: why others do not fit.
        without: Topologies that cannot be planned.
    """

    plans: tuple[SpecPlan, ...]
    diagnostics: tuple[Diagnostic, ...]
    without: tuple[NoPlan, ...]


def plan_specs(
    specs: Iterable[Spec], change: Callable[[Question], Question] = lambda question: question
) -> SpecPlans:
    """Plan every Topology that serves a model of the catalogue, lowered from a dialect or not.

    Args:
        specs: validated; Topologies may refer to Models among them.
        change: returns a question with options that replace fields of the spec.
    """
    known = list(specs)
    plans: list[SpecPlan] = []
    diagnostics: list[Diagnostic] = []
    without: list[NoPlan] = []
    for spec in known:
        topology = spec.block
        if not isinstance(topology, kinds_topology.Topology):
            continue
        name = topology.metadata.name
        model = _model(topology, known)
        if isinstance(model, NoPlan):
            without.append(model)
            continue
        try:
            plan = answer(change(_question(topology.spec, model)))
        except PlanError as error:
            path = sizing.field_path(error.field, topology.spec)
            diagnostics.append(spec.diagnostic(error.problem.code, str(error), path, error.hint))
            continue
        plans.append(SpecPlan(name, spec.source, plan))
    return SpecPlans(tuple(plans), tuple(diagnostics), tuple(without))


def _model(topology: Topology, specs: Iterable[Spec]) -> str | NoPlan:
    """Return the catalogue's name of the model that a Topology serves, or why it has none."""
    spec, own = topology.spec, topology.metadata.name
    if spec.template is not None:
        return NoPlan(own, "kaigen does not know what a pod template serves")
    if not engines.engine_facts(spec.engine).planned:
        return NoPlan(own, f"kaigen has no memory model of engine `{spec.engine}`")
    if spec.preset is not None:
        return spec.preset
    model = spec.model
    if isinstance(model, serving.ServedModel) and model.hugging_face is not None:
        repo = model.hugging_face.repo
    else:
        name = model.name if isinstance(model, serving.ServedModel) else model
        repo = _repository(name, topology.metadata.namespace, specs) if name else ""
    if find_preset(repo) is None:
        what = f"`{repo}` is not a model of the catalogue" if repo else "which model it serves is not known"
        return NoPlan(own, f"{what}, so its size is not known")
    return repo


def _repository(name: str, namespace: str | None, specs: Iterable[Spec]) -> str:
    """Return the Hub repository of a Model among the specs; empty for none."""
    for spec in specs:
        block = spec.block
        if isinstance(block, kinds_model.Model) and (block.metadata.name, block.metadata.namespace) == (
            name,
            namespace,
        ):
            source = block.spec.source.hugging_face
            return source.repo if source is not None else ""
    return ""


def _question(spec: TopologySpec, model: str) -> Question:
    resources = spec.resources
    instance = find_instance(resources.instance_type) if resources.instance_type else None
    given = resources.gpus
    gpus, mig = (given.count, given.profile or "") if isinstance(given, blocks.GpuShare) else (given, "")
    gpu = resources.gpu_type or (instance.gpu.name if instance is not None and mig else "")
    return Question(
        model=model,
        request=sizing.request_of(spec),
        instance_type=instance.name if instance is not None and not mig else "",
        gpu=gpu if instance is None or mig else "",
        gpus=gpus if instance is not None or gpu else None,
        mig=mig,
    )
