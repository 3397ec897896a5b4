"""Lowers Koldun's `Dllama`, and its `Root` with the `Worker`s that name it, to one Topology each.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its code at commit edc6442):

- Pods run `dllama-api` and `dllama worker`; the operator's run the entry point of its image, which is the operator.
- `replicaPower` p gives 2^p - 1 workers; the operator's 2p - 1 run as a ring for p of 1, 2 and 4 only.
- The root has the addresses of its workers and the files of its Model; the operator gives it neither.
- A changed Model rolls the ring; the operator deletes the ring.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import ValidationError

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.koldun import API_VERSION, GROUP
from kaigen.dialects.koldun.options import ROOT_ONLY, SHARED, check_options, read_options
from kaigen.dialects.koldun.resource import LAST_APPLIED, NO_QUEUE, OPERATOR, WRITTEN_LABEL, KoldunLowering
from kaigen.dialects.koldun.ring import DIRECTIVES, Ring, find_claim, find_model, lower_ring, number_of_workers
from kaigen.dialects.koldun.ring_kinds import Dllama, ModelRef, Root, Worker
from kaigen.kinds.block import read_block
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.yaml.document import Document

_MODEL: FieldPath = ("spec", "modelRef")


def lower_dllama(dllama: Dllama, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Dllama` as a Topology of the same name.

    Args:
        dllama: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(dllama.metadata, document, context, DIRECTIVES)
    spec = dllama.spec
    _check_reference(spec.model_ref, lowering)
    _warn_of_queue(lowering)
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
    """Report an image of workers that differs from that of the root."""
    if worker != root:
        lowering.error(
            "KG0413",
            f"a ring runs one image, and that of its root is `{root}`: root and workers of different versions do not "
            "understand each other",
            at,
            f"write `{root}`",
        )


_ARGS: FieldPath = ("spec", "args")
_DLLAMA = f"{GROUP}/dllama"


def lower(root: Root, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Root` with its Workers as a Topology with the name of the Root.

    Args:
        root: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(root.metadata, document, context, DIRECTIVES)
    if _belongs_to_dllama(lowering):
        return lowering.result(joined=True)
    spec = root.spec
    _warn_of_cache(lowering)
    if spec.worker_selector:
        reason = "a ring consists of the Workers whose `rootRef` names the Root, as in the operator"
        lowering.without_effect(("spec", "workerSelector"), reason)
    workers = _workers(root, lowering)
    _check_slots(workers, lowering)
    ring = Ring(
        model=find_claim(spec.model_ref, ("spec", "modelRef"), lowering),
        image=spec.image,
        image_at=("spec", "image"),
        workers=len(workers),
        workers_at=("metadata", "name"),
        args=spec.args,
        args_at=_ARGS,
    )
    return lower_ring(lowering.draft(), ring, lowering)


def lower_worker(worker: Worker, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return no spec: a `Worker` is part of the Topology of its Root.

    Args:
        worker: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = KoldunLowering(worker.metadata, document, context, ("version",))
    if _belongs_to_dllama(lowering):
        return lowering.result(joined=True)
    spec = worker.spec
    root = lowering.find_object(API_VERSION, "Root", spec.root_ref)
    if root is None:
        names = [found.name or "" for found in lowering.find_objects(API_VERSION, "Root")]
        hint = did_you_mean(spec.root_ref, names) or "add the Root, or write a Dllama"
        lowering.error(
            "KG0412", f"no Root `{spec.root_ref}` in namespace `{lowering.namespace}`", ("spec", "rootRef"), hint
        )
        return lowering.result()
    _warn_of_cache(lowering)
    _warn_of_queue(lowering)
    check_options(spec.args, _ARGS, lowering, unused=ROOT_ONLY)
    try:
        found = read_block(Root, root.data)
    except ValidationError:
        return lowering.result(joined=True)
    owner = found.spec
    _warn_of_metadata(worker, found, lowering)
    check_images(owner.image, spec.image, ("spec", "image"), lowering)
    if spec.model_ref != owner.model_ref:
        reason = "the root sends a worker its share of the weights"
        lowering.without_effect(("spec", "modelRef"), reason, f"write `{owner.model_ref}`, as in the Root")
    of_root = read_options(owner.args, _ARGS)
    for name, option in read_options(spec.args, _ARGS).items():
        if name in SHARED and (name not in of_root or of_root[name].value != option.value):
            message = f"`--{name}` has no effect: all pods of a ring have that of the Root"
            lowering.warning("KG0405", message, option.path, f"set `--{name}` in the `args` of the Root")
    return lowering.result(joined=True)


def _belongs_to_dllama(lowering: KoldunLowering) -> bool:
    """Return whether a Dllama of the input makes the resource, with a warning at its label."""
    name = lowering.metadata.labels.get(_DLLAMA)
    if not name or lowering.find_object(API_VERSION, "Dllama", name) is None:
        return False
    lowering.warning(
        "KG0405",
        f"the resource has no effect: it is part of Dllama `{name}`",
        ("metadata", "labels", _DLLAMA),
        "delete the resource, or the label for a ring of its own",
    )
    return True


def _warn_of_cache(lowering: KoldunLowering) -> None:
    if "cacheSpec" in lowering.block("spec"):
        reason = "no program in the image reads the variables that the operator makes of it"
        lowering.without_effect(("spec", "cacheSpec"), reason)


def _warn_of_queue(lowering: KoldunLowering) -> None:
    if "nats" in lowering.block("spec"):
        lowering.without_effect(("spec", "nats"), NO_QUEUE)


def _warn_of_metadata(worker: Worker, root: Root, lowering: KoldunLowering) -> None:
    """Report labels and annotations that pods of the ring do not get, since they have those of the Root."""
    own, of_root = worker.metadata, root.metadata
    for name, given, other in (
        ("labels", own.labels, of_root.labels),
        ("annotations", own.annotations, of_root.annotations),
    ):
        for key, value in given.items():
            if key.startswith(OPERATOR) and name == "labels":
                lowering.without_effect(("metadata", name, key), WRITTEN_LABEL)
            elif not key.startswith(OPERATOR) and key != LAST_APPLIED and other.get(key) != value:
                reason = f"all pods of a ring have the {name} of the Root"
                lowering.without_effect(("metadata", name, key), reason, "move it to the Root")


def _workers(root: Root, lowering: KoldunLowering) -> list[tuple[Worker, Document]]:
    """Return the Workers of a Root by slot. Invalid ones are reported at their place, and count."""
    found = []
    for document in lowering.find_objects(API_VERSION, "Worker"):
        try:
            worker = read_block(Worker, document.data)
        except ValidationError:
            continue
        if worker.spec.root_ref == root.metadata.name:
            found.append((worker, document))
    return sorted(found, key=lambda item: item[0].spec.slot)


def _check_slots(workers: Sequence[tuple[Worker, Document]], lowering: KoldunLowering) -> None:
    """Report slots that are taken twice or missing, and a number of workers that makes no ring."""
    path: FieldPath = ("spec", "slot")
    for expected, (worker, document) in enumerate(workers):
        slot = worker.spec.slot
        if slot != expected:
            taken = slot < expected
            message = f"slot {slot} is taken twice" if taken else f"no Worker has slot {expected}"
            mark = document.mark(path)
            lowering.report([Diagnostic("KG0412", message, mark, f"write `slot: {expected}`", path="spec.slot")])
            return
    pods = len(workers) + 1
    if pods & (pods - 1):
        lowering.error(
            "KG0412",
            f"a Root with {len(workers)} Workers is not a ring: the number of its pods, {pods}, must be a power of two",
            ("metadata", "name"),
            f"write {(1 << pods.bit_length() - 1) - 1} or {(1 << pods.bit_length()) - 1} Workers",
        )
