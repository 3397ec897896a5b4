"""`Workspace`: a served model or a fine-tuning run, with its nodes."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

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
from kaigen.dialects.kaito.nodes import node_request
from kaigen.dialects.kaito.presets import find_named_model, warn_of_removed
from kaigen.dialects.kaito.resource import ResourceLowering
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.dialects.kaito.tuning import lower_tuning
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.block import Choice
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology


class WorkspaceV1Alpha1(Choice):
    """KAITO's `Workspace` of `kaito.sh/v1alpha1`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("inference", "tuning")

    api_version: Annotated[Literal["kaito.sh/v1alpha1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["Workspace"], Meta(description="Kind of the document.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    resource: Annotated[ResourceV1Alpha1, Meta(description="Nodes of the workload.")]
    inference: Annotated[InferenceV1Alpha1 | None, Meta(description="What is served.")] = None
    tuning: Annotated[TuningV1Alpha1 | None, Meta(description="What is fine-tuned.")] = None
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None


class Workspace(Choice):
    """KAITO's `Workspace` of `kaito.sh/v1beta1`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("inference", "tuning")

    api_version: Annotated[Literal["kaito.sh/v1beta1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["Workspace"], Meta(description="Kind of the document.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    resource: Annotated[Resource, Meta(description="Nodes of the workload.")]
    inference: Annotated[Inference | None, Meta(description="What is served.")] = None
    tuning: Annotated[Tuning | None, Meta(description="What is fine-tuned.")] = None
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None


def lower(workspace: Workspace | WorkspaceV1Alpha1, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a Workspace as a Topology that serves, or a Job that fine-tunes.

    Args:
        workspace: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = ResourceLowering(workspace.metadata, document, context)
    options = lowering.options()
    older = isinstance(workspace, WorkspaceV1Alpha1)
    if workspace.inference is None:
        assert workspace.tuning is not None
        request = node_request(workspace.resource, ("resource",), default=older)
        return lowering.result(*lower_tuning(workspace.tuning, request, options, lowering))
    inference = workspace.inference
    preset = inference.preset
    draft = lowering.draft("Topology")
    draft.origins["spec",] = ("inference",)
    request = node_request(
        workspace.resource, ("resource",), default=older and preset is not None, gpus_needed=preset is not None
    )
    put_inference(draft, Serving(inference, ("inference",), request), options, lowering)
    if not older and preset is not None and not lowering.failed:
        at = ("inference", "preset", "name")
        model = find_named_model(preset.name, at, lowering)
        if model is not None:
            warn_of_removed(model, at, lowering)
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    if topology is None:
        return lowering.result()
    first = older and preset is not None
    naming = serving_names(WORKSPACE, first=first) if options.compat else None
    return lowering.result(draft.lowered(topology, naming))
