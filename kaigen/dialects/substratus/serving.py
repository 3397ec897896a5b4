"""Lowers `Server` and `ModelServer` to a Topology with the container of the resource.

Requests reach it as in the operator: port 8080 of a Service, after the container answers 200 on `/`.
"""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.container import CONTENT, put_container
from kaigen.dialects.substratus.image import put_image, refuse_local
from kaigen.dialects.substratus.kinds import Server
from kaigen.dialects.substratus.resource import SPEC, SubstratusLowering
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology

PORT = 8080

_MODEL_OF_DESIGN = "/model/saved"
_DEFAULT_BITS = 16
_VARIABLES = {4: "MODEL_LOAD_IN_4BIT", 8: "MODEL_LOAD_IN_8BIT"}
"""Variables of Substratus' server images by the bits of a weight."""


def lower(server: Server, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Server` as a Topology.

    Args:
        server: the validated document, of either kind.
        document: the document with positions.
        context: what else the lowering may read.
    """
    spec = server.spec
    lowering = SubstratusLowering(server, server.kind, document, context, ())
    draft = lowering.draft(lowering.app_name())
    draft.put(("spec", "engine"), "container")
    refuse_local(spec, lowering)
    if not put_image(draft, spec, lowering) and not lowering.failed:
        message = "neither `image` nor `build` names an image, so the operator waits forever"
        lowering.error("KG0412", message, _spec_at(lowering), "set `image` or `build`")
    put_container(draft, spec, lowering, run=None, script="serve.sh")
    _put_quantization(draft, server, lowering)
    at: FieldPath = (*SPEC, "model")
    if spec.model is None and not lowering.has("modelName"):
        message = "`model` is missing, so the operator waits forever"
        lowering.error("KG0412", message, _spec_at(lowering), "name the Model to serve")
    named = lowering.reference("Model", spec.model)
    if spec.model is not None and named:
        folder = _MODEL_OF_DESIGN if lowering.is_design else CONTENT.model
        draft.put(("spec", "model"), {**named, "mountPath": folder}, at)
        lowering.put_origins(draft, ("spec", "model"), spec.model, at)
    draft.put(("spec", "port"), PORT)
    draft.put(("spec", "service", "port"), PORT)
    draft.put(("spec", "probes", "ready"), "/")
    lowered = draft.finish(Topology, lowering) if not lowering.failed else None
    return lowering.result() if lowered is None else lowering.result(draft.lowered(lowered))


def _spec_at(lowering: SubstratusLowering) -> FieldPath:
    return SPEC if lowering.has_spec else ("metadata", "name")


def _put_quantization(draft: Draft, server: Server, lowering: SubstratusLowering) -> None:
    """Put the variable by which a server loads a Model with fewer bits."""
    quantization = server.spec.quantization
    bits = quantization.bits if quantization is not None else _DEFAULT_BITS
    if bits == _DEFAULT_BITS:
        return
    at: FieldPath = (*SPEC, "quantization", "bits")
    variable = _VARIABLES.get(bits)
    if variable is None:
        lowering.error("KG0412", f"no server loads weights of {bits} bits", at, "write 4, 8 or 16")
        return
    if variable in server.spec.env:
        message = f"`quantization.bits` sets the variable {variable}, and so does `env`"
        lowering.error("KG0412", message, at, "keep one of the two")
    draft.put(("spec", "env", variable), "true", at)
