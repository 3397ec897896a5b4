"""Lowers Koldun's `Dllama` to a Topology.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its code at commit edc6442):

- Pods run `dllama-api` and `dllama worker`; the operator's run the entry point of its image, which is the operator.
- `replicaPower` p gives 2^p - 1 workers; the operator's 2p - 1 run as a ring for p of 1, 2 and 4 only.
- The root has the addresses of its workers and the files of its Model; the operator gives it neither.
- A changed Model rolls the ring; the operator deletes the ring.
"""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.koldun import GROUP
from kaigen.dialects.koldun.resource import KoldunLowering
from kaigen.dialects.koldun.ring import DIRECTIVES, Ring, find_model, lower_ring, number_of_workers
from kaigen.dialects.koldun.serving import Dllama, ModelRef
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned

_MODEL: FieldPath = ("spec", "modelRef")


def lower(dllama: Dllama, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Dllama` as a Topology of the same name.

    Args:
        dllama: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(dllama.metadata, document, context, DIRECTIVES)
    spec = dllama.spec
    _check_reference(spec.model_ref, lowering)
    check_images(spec.root_image, spec.worker_image, ("spec", "workerImage"), lowering)
    power: FieldPath = ("spec", "replicaPower")
    ring = Ring(
        model=find_model(spec.model_ref.name, spec.model_ref.namespace, (*_MODEL, "name"), lowering),
        image=spec.root_image,
        image_at=("spec", "rootImage"),
        workers=number_of_workers(spec.replica_power, power, lowering),
        workers_at=power,
    )
    return lower_ring(lowering.draft(), ring, lowering)


def _check_reference(reference: ModelRef, lowering: KoldunLowering) -> None:
    """Report a reference that the operator does not accept."""
    if reference.kind.lower() != "model":
        hint = did_you_mean(reference.kind, ["Model"]) or "write `Model`"
        lowering.error("KG0412", f"`{reference.kind}` is not `Model`", (*_MODEL, "kind"), hint)
    if reference.api_group and reference.api_group != GROUP:
        message = f"`{reference.api_group}` is not the group of a Model"
        lowering.error("KG0412", message, (*_MODEL, "apiGroup"), f"write `{GROUP}`, or delete it")


def check_images(root: str, worker: str, at: FieldPath, lowering: KoldunLowering) -> None:
    """Warn about an image of workers that differs from that of the root."""
    if worker != root:
        lowering.warning(
            "KG0414",
            f"workers run `{root}` too: root and workers of different versions do not understand each other",
            at,
            "write the image of the root",
        )
