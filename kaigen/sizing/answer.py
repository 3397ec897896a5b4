"""Answer a question about a model with a plan and alternative instance types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import Gpu, get_gpu, gpu_hint
from kaigen.catalog.instances import CLOUDS, find_instance, instances, nearest_instances
from kaigen.catalog.presets import Preset, find_preset, nearest_presets
from kaigen.diagnostics.category import Category
from kaigen.sizing.facts import Hardware, ModelFacts, Request, facts_of, hardware_of_gpu, hardware_of_instance
from kaigen.sizing.plan import Plan, layout_text, plan
from kaigen.sizing.problem import Field, PlanError
from kaigen.sizing.ranking import Ranking, rank

NEXT_BEST = 3
"""Number of alternative instance types in an answer."""


class Question(Struct, frozen=True):
    """A question about a model. Without an instance type and a GPU, the answer finds the best instance type.

    Attributes:
        model: preset, alias or Hugging Face repository; or any name with `facts`.
        request: what it must serve.
        catalog: has the models, GPUs and instance types.
        instance_type: empty for none.
        gpu: GPU model; empty for none.
        gpus: GPUs of a node; None for all of the instance type's, or one.
        mig: profile of a slice of `gpu`; empty for whole GPUs.
        cloud: only instance types of this cloud; empty for all, or that of `instance_type`.
        facts: of a model that the catalogue does not have, or of a spec; None to take them from the catalogue.
        preset: the model of these facts in the catalogue; None when the catalogue does not have it.
        hardware: nodes that are known already, instead of names.
    """

    model: str
    request: Request
    catalog: Catalog
    instance_type: str = ""
    gpu: str = ""
    gpus: int | None = None
    mig: str = ""
    cloud: str = ""
    facts: ModelFacts | None = None
    preset: Preset | None = None
    hardware: Hardware | None = None

    @property
    def names_nodes(self) -> bool:
        """Whether the question is about certain nodes, rather than about the best ones."""
        return bool(self.instance_type or self.gpu or self.hardware is not None)


_NODES = ("instance_type", "gpu", "gpus", "mig", "cloud")
"""The fields of a question that describe the nodes."""


def with_options(question: Question, options: Mapping[str, Any]) -> Question:
    """Return a question with other values; those of nodes replace all of its nodes.

    Args:
        question: the question.
        options: values by field of the question or of its request; None for those that stay.
    """
    given = {name: value for name, value in options.items() if value is not None}
    nodes = {name: given.pop(name) for name in _NODES if name in given}
    if "instance_type" in nodes or "gpu" in nodes:
        question = replace(question, instance_type="", gpu="", gpus=None, mig="", hardware=None)
    elif "gpus" in nodes and (known := question.hardware) is not None:
        gpu = "" if known.instance else known.gpu
        question = replace(question, instance_type=known.instance, gpu=gpu, mig=known.mig, hardware=None)
    return replace(question, request=replace(question.request, **given), **nodes)


class Answer(Struct, frozen=True):
    """A plan, and alternatives.

    Attributes:
        preset: the model; None when the catalogue does not have it.
        plan: on the requested nodes, or on the best instance type.
        others: on the next best instance types, best first.
    """

    preset: Preset | None
    plan: Plan
    others: tuple[Plan, ...]


def answer(question: Question) -> Answer:
    """Return the answer to a question.

    Raises:
        PlanError: an unknown name, or a model that does not fit, with an alternative.
    """
    if question.facts is not None:
        preset, facts = question.preset, question.facts
    else:
        preset = preset_of(question.model, question.catalog)
        facts = facts_of(preset)
    hardware = question.hardware or hardware_of(question)
    if hardware is None:
        ranking = rank(facts, question.request, choices(question.catalog, question.cloud))
        if not ranking.plans:
            raise no_instance(facts.name, question.cloud, ranking)
        return Answer(preset, ranking.plans[0], ranking.plans[1 : 1 + NEXT_BEST])
    cloud = question.cloud or hardware.cloud
    try:
        found = plan(facts, question.request, hardware)
    except PlanError as error:
        if error.field is not Field.HARDWARE:
            raise
        ranking = rank(facts, question.request, choices(question.catalog, cloud))
        raise _with_way_out(error, ranking) from None
    ranking = rank(facts, question.request, choices(question.catalog, cloud))
    others = [other for other in ranking.plans if not _alike(other.hardware, hardware)]
    return Answer(preset, found, tuple(others[:NEXT_BEST]))


def _alike(one: Hardware, other: Hardware) -> bool:
    return (one.gpu, one.count, one.nominal) == (other.gpu, other.count, other.nominal) and not other.mig


def preset_of(name: str, catalog: Catalog) -> Preset:
    """Return the preset of a name, alias or repository.

    Raises:
        PlanError: there is none; names the nearest.
    """
    preset = find_preset(name, catalog)
    if preset is None:
        near = nearest_presets(name, catalog, limit=1)
        hint = f"did you mean `{near[0]}`?" if near else "`kaigen presets` lists them"
        raise PlanError("KG1101", Field.MODEL, f"unknown model preset `{name}`", hint)
    return preset


def gpu_of(name: str, catalog: Catalog) -> Gpu:
    """Return the GPU of a name.

    Raises:
        PlanError: there is none; names the nearest.
    """
    gpu = get_gpu(name, catalog)
    if gpu is None:
        raise PlanError("KG0306", Field.HARDWARE, f"unknown GPU type `{name}`", gpu_hint(name, catalog))
    return gpu


def hardware_of(question: Question) -> Hardware | None:
    """Return the nodes of a question; None when it has none.

    Raises:
        PlanError: the catalogue has no such instance type or GPU.
    """
    if question.instance_type:
        instance = find_instance(question.instance_type, question.catalog)
        if instance is None:
            near = nearest_instances(question.instance_type, question.catalog, limit=1)
            hint = f"did you mean `{near[0]}`?" if near else "`kaigen gpus list` shows instance types; or name the GPUs"
            message = f"unknown instance type `{question.instance_type}`"
            raise PlanError("KG1102", Field.HARDWARE, message, hint)
        if question.gpus is not None and question.gpus > instance.count:
            raise PlanError(
                "KG1106",
                Field.HARDWARE,
                f"{instance.name} has only {instance.count} of {question.gpus} GPUs",
                f"use at most {instance.count}",
            )
        return hardware_of_instance(instance, question.gpus)
    if question.gpu:
        return hardware_of_gpu(
            gpu_of(question.gpu, question.catalog), 1 if question.gpus is None else question.gpus, question.mig
        )
    return None


def choices(catalog: Catalog, cloud: str = "") -> list[Hardware]:
    """Return the instance types of a cloud, or of all clouds.

    Raises:
        PlanError: there is no such cloud.
    """
    if cloud and cloud not in CLOUDS:
        raise PlanError.unknown_name(Field.HARDWARE, "cloud", cloud, CLOUDS)
    return [hardware_of_instance(instance) for instance in instances(catalog, cloud or None)]


def _with_way_out(error: PlanError, ranking: Ranking) -> PlanError:
    if not ranking.plans:
        return error
    best = ranking.plans[0]
    way = f"{best.hardware.name} fits ({layout_text(best.layout)})"
    return PlanError(error.problem.code, error.field, str(error), f"{error.hint}; {way}" if error.hint else way)


def no_instance(model: str, cloud: str, ranking: Ranking) -> PlanError:
    """Return why no instance type fits: the error of the one with most memory that the engine supports."""
    usable = [item for item in ranking.refused if item.error.problem.category is not Category.UNSUPPORTED] or list(
        ranking.refused
    )
    nearest = max(usable, key=lambda item: item.hardware.nominal * item.hardware.count)
    error = nearest.error
    if error.field not in (Field.HARDWARE, Field.NODES):
        return error
    where = f"no instance type of {cloud}" if cloud else "no instance type of the catalogue"
    message = f"{where} can hold {model}"
    return PlanError(error.problem.code, error.field, message, f"of {nearest.hardware.name}: {error.hint or error}")
