"""`tuning`: a run of kaigen's own trainer, or with `kaigen.dev/compat` of KAITO's script."""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.dialects.kaito.blocks import TuningV1Alpha1
from kaigen.dialects.kaito.nodes import NodeRequest, put_placement
from kaigen.dialects.kaito.resource import Options, ResourceLowering
from kaigen.dialects.kaito.tuning_checks import check_run, find_model
from kaigen.dialects.kaito.tuning_job import lower_tune
from kaigen.dialects.kaito.tuning_script import lower_script
from kaigen.kinds.lowering import Lowered


def lower_tuning(
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
        return lower_script(tuning, at, draft, model, nodes, lowering)
    return lower_tune(tuning, at, draft, model, nodes, options, lowering)
