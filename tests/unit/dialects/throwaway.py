"""A dialect of one kind, as small as a dialect can be."""

from typing import Annotated, Literal

from msgspec import Meta

from kaigen.dialects.dialect import Dialect
from kaigen.dialects.metadata import ForeignMetadata
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


def lower(task: Task, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return the task as a Job, with an argument for each key of its ConfigMap."""
    lowering = Lowering(document, context)
    arguments: list[str] = []
    if task.spec.settings is not None:
        settings = lowering.find_object("v1", "ConfigMap", task.spec.settings, task.metadata.namespace)
        if settings is None:
            lowering.error("KG0418", f"no ConfigMap `{task.spec.settings}`", ("spec", "settings"))
            return lowering.result()
        lowering.consume(settings)
        assert isinstance(settings.data, dict)
        data = settings.data["data"]
        assert isinstance(data, dict)
        arguments = [f"--{key}={value}" for key, value in data.items()]
    job = Job(
        metadata=Metadata(name=task.metadata.name),
        spec=JobSpec(image=task.spec.image, command=["run", *arguments]),
    )
    return lowering.result(Lowered(job, {("spec",): ("spec",)}))


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
    ),
)
