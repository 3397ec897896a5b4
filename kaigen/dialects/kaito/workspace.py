"""`Workspace`: a model that is served, or a fine-tuning run, on nodes of its own."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from kaigen.dialects.kaito.blocks import (
    Inference,
    InferenceV1Alpha1,
    Resource,
    ResourceV1Alpha1,
    Status,
    Tuning,
    TuningV1Alpha1,
)
from kaigen.dialects.kaito.compat import WORKSPACE, serving_names
from kaigen.dialects.kaito.nodes import asked_of
from kaigen.dialects.kaito.presets import find_name, warn_of_removed
from kaigen.dialects.kaito.reading import Reading
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import Choice
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology


class WorkspaceV1Alpha1(Choice):
    """KAITO's `Workspace` of `kaito.sh/v1alpha1`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("inference", "tuning")

    api_version: Literal["kaito.sh/v1alpha1"] = Field(description="Version of KAITO's API.")
    kind: Literal["Workspace"] = Field(description="The kind.")
    metadata: ForeignMetadata = Field(description="Who it is.")
    resource: ResourceV1Alpha1 = Field(description="Nodes that the work runs on.")
    inference: InferenceV1Alpha1 | None = Field(None, description="What is served.")
    tuning: TuningV1Alpha1 | None = Field(None, description="What is fine-tuned.")
    status: Status | None = Field(None, description="Written by the operator; left out.")


class Workspace(Choice):
    """KAITO's `Workspace` of `kaito.sh/v1beta1`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("inference", "tuning")

    api_version: Literal["kaito.sh/v1beta1"] = Field(description="Version of KAITO's API.")
    kind: Literal["Workspace"] = Field(description="The kind.")
    metadata: ForeignMetadata = Field(description="Who it is.")
    resource: Resource = Field(description="Nodes that the work runs on.")
    inference: Inference | None = Field(None, description="What is served.")
    tuning: Tuning | None = Field(None, description="What is fine-tuned.")
    status: Status | None = Field(None, description="Written by the operator; left out.")


def lower(
    workspace: Workspace | WorkspaceV1Alpha1, document: Positioned, context: LoweringContext
) -> LoweringResult:
    """A Workspace as a Topology that serves, or a Job that tunes.

    Args:
        workspace: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    reading = Reading(workspace.metadata, document, context)
    wishes = reading.wishes()
    older = isinstance(workspace, WorkspaceV1Alpha1)
    if workspace.inference is None:
        from kaigen.dialects.kaito.tuning import lower_tuning

        assert workspace.tuning is not None
        asked = asked_of(workspace.resource, ("resource",), default=older)
        return reading.result(*lower_tuning(workspace.tuning, asked, wishes, reading))
    inference = workspace.inference
    preset = inference.preset
    draft = reading.draft("Topology")
    draft.origins["spec",] = ("inference",)
    asked = asked_of(
        workspace.resource,
        ("resource",),
        default=older and preset is not None,
        gpus_needed=preset is not None,
    )
    put_inference(draft, Serving(inference, ("inference",), asked), wishes, reading)
    if not older and preset is not None and not reading.failed:
        at = ("inference", "preset", "name")
        meant = find_name(preset.name, at, reading)
        if meant is not None:
            warn_of_removed(meant, at, reading)
    topology = draft.finish(Topology, reading) if not reading.failed else None
    if topology is None:
        return reading.result()
    first = older and preset is not None
    naming = serving_names(WORKSPACE, first=first) if wishes.compat else None
    return reading.result(Lowered(topology, draft.origins, naming, draft.hints))
