"""A dialect of two kinds, as small as a dialect can be."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from kaigen.dialects.metadata import ForeignMetadata
from kaigen.dialects.registry import Dialect
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import Block
from kaigen.kinds.job import Job, JobSpec
from kaigen.kinds.kind import ForeignKind
from kaigen.kinds.lowering import Lowered, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned


class TaskSpec(Block):
    """What the task runs."""

    image: Annotated[str, Meta(description="Container image.")]
    settings: Annotated[str | None, Meta(description="ConfigMap of the task.")] = None


class Task(Block):
    """A task."""

    api_version: Annotated[Literal["throwaway.example/v1"], Meta(description="Version of the API.")]
    kind: Annotated[Literal["Task"], Meta(description="The kind.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name of the task.")]
    spec: Annotated[TaskSpec, Meta(description="What the task runs.")]


class StepSpec(Block):
    """An argument of a task."""

    task: Annotated[str, Meta(description="Name of the task.")]
    argument: Annotated[str, Meta(description="The argument.")]


class Step(Block):
    """A step, which is part of its task."""

    api_version: Annotated[Literal["throwaway.example/v1"], Meta(description="Version of the API.")]
    kind: Annotated[Literal["Step"], Meta(description="The kind.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name of the step.")]
    spec: Annotated[StepSpec, Meta(description="An argument of a task.")]


def lower(task: Task, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return the task as a Job, with an argument for each key of its ConfigMap, and for each of its steps."""
    lowering = Lowering(document, context)
    arguments: list[str] = []
    if task.spec.settings is not None:
        settings = lowering.find_object("v1", "ConfigMap", task.spec.settings)
        if settings is None:
            lowering.error("KG0418", f"no ConfigMap `{task.spec.settings}`", ("spec", "settings"))
            return lowering.result()
        lowering.consume(settings)
        assert isinstance(settings.data, dict)
        data = settings.data["data"]
        assert isinstance(data, dict)
        arguments = [f"--{key}={value}" for key, value in data.items()]
    for step in lowering.find_objects("throwaway.example/v1", "Step"):
        spec: Any = step.data["spec"]  # type: ignore[index, call-overload]
        arguments += [spec["argument"]] if spec["task"] == task.metadata.name else []
    job = Job(
        metadata=Metadata(name=task.metadata.name), spec=JobSpec(image=task.spec.image, command=["run", *arguments])
    )
    return lowering.result(Lowered(job, {("spec",): ("spec",)}))


def lower_step(step: Step, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return no spec: a step is part of its task."""
    return Lowering(document, context).result(joined=True)


DIALECT = Dialect(
    name="throwaway",
    title="Throwaway",
    kinds=(
        ForeignKind(
            "throwaway.example/v1",
            "Task",
            f"{__name__}:Task",
            "a task",
            system="throwaway",
            lower_reference=f"{__name__}:lower",
        ),
        ForeignKind(
            "throwaway.example/v1",
            "Step",
            f"{__name__}:Step",
            "a step",
            system="throwaway",
            lower_reference=f"{__name__}:lower_step",
        ),
    ),
)
