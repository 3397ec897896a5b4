"""A dialect of one kind, as small as a dialect can be."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kaigen.dialects.dialect import Dialect
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import Block, Metadata
from kaigen.kinds.job import Job, JobSpec
from kaigen.kinds.kind import ForeignKind
from kaigen.kinds.lowering import Lowered, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned


class TaskSpec(Block):
    """What the task runs."""

    image: str = Field(description="Container image.")
    settings: str | None = Field(None, description="ConfigMap of the task.")


class Task(Block):
    """A task."""

    api_version: Literal["throwaway.example/v1"] = Field(description="Version of the API.")
    kind: Literal["Task"] = Field(description="The kind.")
    metadata: ForeignMetadata = Field(description="Name of the task.")
    spec: TaskSpec = Field(description="What the task runs.")


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
