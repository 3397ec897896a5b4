"""Plans of specs: what `kaigen plan SPEC` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.pipeline.app_names import unknown_app
from kaigen.pipeline.run import Run
from kaigen.pipeline.sources import is_path
from kaigen.sizing.answer import Answer, Question, answer
from kaigen.sizing.cold_start import ColdStart
from kaigen.sizing.host import HostPart
from kaigen.sizing.problem import PlanError
from kaigen.sizing.ring import RingPlan
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.builders.pods import ResolvedResources
    from kaigen.compile.kind_compiler import Resolution
    from kaigen.compile.topology.resolution import TopologyResolution
    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.diagnostics.problem import Problem
    from kaigen.kinds.spec import Spec

with lazy_imports():
    from kaigen.compile.model import resolution as model_resolution
    from kaigen.compile.topology import resolution as topology_resolution
    from kaigen.compile.topology import ring, router, scaling, sizing
    from kaigen.diagnostics import diagnostic
    from kaigen.kinds import model as kinds_model
    from kaigen.kinds import topology as kinds_topology
    from kaigen.sizing import distributed_llama


class SpecPlan(Struct, frozen=True):
    """How the model of one spec runs.

    Attributes:
        name: of the app.
        source: file of the spec.
        answer: the plan, and the next best instance types.
        rendered: whether `render` writes the plan; it does not for a spec that does not say which GPUs the nodes have.
        host: memory of the node that flags reserve in each pod.
        memory: that each pod requests.
        shared_memory: size of `/dev/shm` in each pod; empty for the container runtime's default.
        cold_start: how long the first request waits; None where a replica always runs, or nothing holds requests.
    """

    name: str
    source: str
    answer: Answer
    rendered: bool
    host: tuple[HostPart, ...] = ()
    memory: str = ""
    shared_memory: str = ""
    cold_start: ColdStart | None = None


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
        cold_start: as that of `SpecPlan`.
    """

    name: str
    source: str
    plan: RingPlan
    root: str
    worker: str
    cold_start: ColdStart | None = None


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
    resolve: Callable[[Spec], Resolution | None],
    change: Callable[[Question], Question] = lambda question: question,
) -> SpecPlans:
    """Return the plan of every Topology that serves a model of known size, lowered from a dialect or not.

    Args:
        specs: validated.
        resolve: returns what a render decides about a spec.
        change: returns a question with options that replace fields of the spec.
    """
    found: list[SpecPlan | RingOfSpec | NoPlan | None] = []
    diagnostics: list[Diagnostic] = []
    conversions: list[tuple[str, str]] = []
    for spec in specs:
        if isinstance(spec.block, kinds_model.Model):
            model = resolve(spec)
            assert isinstance(model, model_resolution.ModelResolution)
            if model.conversion is not None and model.spec.source.volume is None:
                wrong = model.conversion.model.problems
                if not wrong:
                    text = distributed_llama.conversion_text(model.spec, model.context.catalog)
                    conversions.append((spec.block.metadata.name, text))
                diagnostics += [_diagnostic(spec, problem) for problem in wrong]
        if isinstance(spec.block, kinds_topology.Topology):
            topology = resolve(spec)
            assert isinstance(topology, topology_resolution.TopologyResolution)
            item, wrong = _plan(spec, topology, change)
            found.append(item)
            diagnostics += [_diagnostic(spec, problem) for problem in wrong]
    return SpecPlans(
        tuple(item for item in found if isinstance(item, SpecPlan)),
        tuple(diagnostics),
        tuple(item for item in found if isinstance(item, NoPlan)),
        tuple(conversions),
        tuple(item for item in found if isinstance(item, RingOfSpec)),
    )


def _plan(
    spec: Spec, resolution: TopologyResolution, change: Callable[[Question], Question]
) -> tuple[SpecPlan | RingOfSpec | NoPlan | None, tuple[Problem, ...]]:
    """Return the plan of a Topology, or why it has none, and what is wrong with it; no plan with errors."""
    sized, engine, name = resolution.sizing, resolution.engine, resolution.metadata.name
    if sized.ring is not None:
        return _ring(spec, resolution, sized.ring), sized.problems
    if resolution.spec.template is not None:
        return NoPlan(name, "kaigen does not know what a pod template serves"), ()
    if not engine.facts.planned:
        return NoPlan(name, f"kaigen has no memory model of {engine.label}"), ()
    model, request = sized.model, sized.request
    if model is None or request is None:
        why = sizing.why_unknown(resolution.spec, resolution.namespace, resolution.context.specs)
        return None if sized.problems else NoPlan(name, why), sized.problems
    preset = None if model.described else model.preset
    catalog, hardware = resolution.context.catalog, sized.hardware
    question = change(Question(model.name, request, catalog, facts=model.facts, preset=preset, hardware=hardware))
    if resolution.spec.resources.gpus == 0 and not question.names_nodes:
        return NoPlan(name, "it runs on CPUs; name GPUs with --gpu or --instance-type to plan them"), ()
    if sized.problems and sized.hardware is None and not question.names_nodes:
        return None, sized.problems
    try:
        found = answer(question)
    except PlanError as error:
        return None, (sizing.plan_problem(error, resolution.spec),)
    host, resources = engine.host_parts(resolution.spec, resolution.parallelism), resolution.resources
    shared = resources.shared_memory or ""
    cold = cold_start(resolution)
    return SpecPlan(name, spec.source, found, question.names_nodes, host, _memory(resources), shared, cold), ()


def _ring(spec: Spec, resolution: TopologyResolution, plan: RingPlan) -> RingOfSpec | NoPlan | None:
    """Return the ring of a Topology, or why it cannot be planned; None for a ring with errors."""
    name = resolution.metadata.name
    if any(problem.severity is diagnostic.Severity.ERROR for problem in resolution.sizing.problems):
        return None
    if plan.shape is None:
        hint = spec.hints.get(ring.UNKNOWN_SIZE, "set `facts` of the Model to its config.json")
        model = sizing.model_spec(resolution.spec, resolution.namespace, resolution.context.specs)
        return NoPlan(name, f"{ring.unknown_shape(model, resolution.context.catalog)}; {hint}")
    worker = resolution.worker_resources if plan.nodes > 1 else None
    memory = _memory(worker) if worker is not None else ""
    return RingOfSpec(name, spec.source, plan, _memory(resolution.resources), memory, cold_start(resolution))


def cold_start(resolution: TopologyResolution) -> ColdStart | None:
    """Return how long the first request waits; None where a replica always runs, or nothing holds requests."""
    autoscaling, block = resolution.autoscaling, resolution.spec.router
    if autoscaling is None or autoscaling.spec.min > 0 or block is None or not autoscaling.held:
        return None
    given, hold = resolution.spec.probes.startup is not None, router.held_seconds(resolution, block)
    scrape, hours = scaling.scrape_seconds(resolution), autoscaling.spec.schedule is not None
    return ColdStart(scaling.POLLING, scrape, resolution.startup, given, hold, hours)


def _memory(resources: ResolvedResources) -> str:
    memory: str = resources.requirements["limits"]["memory"]
    return memory


def _diagnostic(spec: Spec, problem: Problem) -> Diagnostic:
    warning = problem.severity is diagnostic.Severity.WARNING
    return spec.diagnostic(problem.code, str(problem.message), problem.path, problem.hint, warning=warning)


def select_specs(words: Sequence[str], config: Config, *, stdin: IO[bytes] | None = None) -> tuple[Run, list[Spec]]:
    """Return a run of the repository, and the specs to plan.

    Args:
        words: files, folders, `-`, and apps by `NAME` or `NAMESPACE/NAME`; the whole repository when empty.
        config: the repository's settings.
        stdin: what `-` reads.

    Raises:
        InputError: a file has an error, or there is no such app.
    """
    paths = [word for word in words if is_path(word)]
    names = [word for word in words if word not in paths]
    run = Run.load(paths, config, stdin=stdin, folder=Path() if paths else None)
    chosen: list[Spec] = []
    if paths or not names:
        Diagnostics(run.load_diagnostics).raise_errors()
        chosen += run.specs
    for name in names:
        found = [unit.loaded.specs[position] for unit, position in run.find(name)]
        if not found:
            every = (*run.units, *run.others)
            problems = Diagnostics(run.load_diagnostics)
            problems.extend(item for unit in run.others for item in unit.load_diagnostics)
            problems.raise_errors()
            raise unknown_app(name, [key[1:] for unit in every for key in unit.defines])
        chosen += [spec for spec in found if spec not in chosen]
    return run, chosen
