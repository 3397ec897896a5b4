"""`Workspace`: a served model or a fine-tuning run, with its nodes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from kaigen.core.json_types import FieldPath
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
from kaigen.dialects.kaito.nodes import NodeRequest, node_request, put_placement
from kaigen.dialects.kaito.presets import find_named_model, warn_of_removed
from kaigen.dialects.kaito.resource import Options, ResourceLowering
from kaigen.dialects.kaito.serving import Serving, put_inference
from kaigen.dialects.kaito.tuning_checks import check_run, find_model
from kaigen.dialects.kaito.tuning_job import lower_tune
from kaigen.dialects.kaito.tuning_script import lower_script
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.block import Choice
from kaigen.kinds.lowering import Lowered, LoweringContext, LoweringResult
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
        return lowering.result(*_lower_tuning(workspace.tuning, request, options, lowering))
    inference = workspace.inference
    preset = inference.preset
    draft = lowering.draft("Topology")
    draft.origins["spec",] = ("inference",)
    request = node_request(
        workspace.resource, ("resource",), default=older and preset is not None, gpus_needed=preset is not None
    )
    middleware = put_inference(draft, Serving(inference, ("inference",), request), options, lowering)
    if not older and preset is not None and not lowering.failed:
        at = ("inference", "preset", "name")
        model = find_named_model(preset.name, at, lowering)
        if model is not None:
            warn_of_removed(model, at, lowering)
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    if topology is None:
        return lowering.result()
    first = older and preset is not None
    naming = serving_names(WORKSPACE, compat=options.compat, middleware=middleware, first=first)
    return lowering.result(draft.lowered(topology, naming))


def _lower_tuning(
    tuning: TuningV1Alpha1, request: NodeRequest, options: Options, lowering: ResourceLowering
) -> list[Lowered]:
    """Return a fine-tuning run as a Job, with the specs that it needs.

    Args:
        tuning: the block.
        request: the requested nodes.
        options: of the resource.
        lowering: collects problems.
    """
    at: FieldPath = ("tuning",)
    check_run(request, options, lowering)
    draft = lowering.draft("Job")
    draft.origins["spec",] = at
    nodes = put_placement(draft, request, options, lowering)
    model = find_model(tuning, at, lowering)
    if options.compat:
        return lower_script(tuning, at, draft, model, nodes, options, lowering)
    return lower_tune(tuning, at, draft, model, nodes, options, lowering)
