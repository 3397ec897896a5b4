"""Lowers an `EphemeralAccelerationJob` to a Job whose pods and volume expire.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its code at commit 0ae1039):

- Pods and volume are deleted when their TTLs end; the operator never notices that a run has ended.
- A run waits until its input is in the volume; the operator starts the pod at once.
- An edit starts a new run; the operator ignores edits.
- The default image is one that exists, with pinned weights.
- A failed run stays failed; the operator starts pods that are gone again, without a limit.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from kaigen.catalog.classifiers import classifier_weights
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.ephemeral_gpu.model import (
    DEFAULT_IMAGE,
    FOLDER,
    EphemeralAccelerationJob,
    EphemeralAccelerationJobRedtails,
    EphemeralAccelerationJobSpec,
)
from kaigen.dialects.metadata import put_metadata, read_directives
from kaigen.kinds.base import APP_NAME_MAX, DNS_LABEL, DURATION, LIFETIME, matches
from kaigen.kinds.block import set_fields
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Job
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned

_GROUP = "gpu.yourdomain.io"
COMMAND = ("python", "-m", "job_image_infer.run_infer")
"""Command of the operator's pods."""

_LABELS = {"app": "gpu-job", "ephemeralaccelerationjob": ""}
"""Labels of the operator's pods, by which its README, and `egpu list`, select them."""

_CLAIM_PREFIX = "artifacts-"
"""Beginning of the name of the operator's volumes, for which its README waits, and which `egpu` makes too."""

_OPERATOR_NAMES = Naming(
    container="inference",
    volume="artifacts",
    plain=True,
    run_prefix="ephemeralaccelerationjob-",
    claim_prefix=_CLAIM_PREFIX,
    pod_labels=_LABELS,
)
_NAMES = Naming(claim_prefix=_CLAIM_PREFIX, pod_labels=_LABELS)

_WEIGHTS_FOLDER = f"{FOLDER}/.weights"

_INPUT_WAIT = "1h"
"""Longest time to wait for the input."""

DIRECTIVES = ("compat", "failed-pod-ttl", "input-wait", "model", "version", "weights")


def lower(
    job: EphemeralAccelerationJob | EphemeralAccelerationJobRedtails, document: Positioned, context: LoweringContext
) -> LoweringResult:
    """Return the operator's resource as a kaigen Job.

    Args:
        job: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = Lowering(document, context)
    spec, metadata = job.spec, job.metadata
    directives = read_directives(lowering, metadata, DIRECTIVES)
    compat = lowering.flag(directives, "compat", False)
    if isinstance(job, EphemeralAccelerationJobRedtails):
        lowering.warning(
            "KG0414",
            "only the operator's example files use the group `gpu.redtails.io`; its API does not have it",
            ("apiVersion",),
            f"write `apiVersion: {_GROUP}/v1alpha1`",
        )
    _check_paths(spec, lowering)
    _warn_of_ignored(spec, lowering)
    draft = Draft(("spec",))
    put_metadata(draft, metadata, directives)
    if spec.image == DEFAULT_IMAGE and not compat:
        _put_classification(draft, spec, directives, lowering)
    else:
        _put_own_image(draft, spec, directives, lowering)
    _put_volume(draft, spec)
    _put_input(draft, spec, directives, lowering)
    _put_lifetimes(draft, spec, directives, lowering)
    # The operator's pods are started once.
    draft.put(("spec", "retries"), 0)
    lowered = draft.finish(Job, lowering) if not lowering.failed else None
    if lowered is None:
        return lowering.result()
    return lowering.result(draft.lowered(lowered, _OPERATOR_NAMES if compat else _NAMES))


def _check_paths(spec: EphemeralAccelerationJobSpec, lowering: Lowering) -> None:
    """Report paths that are not below the volume, or not in their shortest form."""
    for name, path in (("input", spec.input.path), ("output", spec.output.path)):
        field: FieldPath = ("spec", name, "path")
        shortest = posixpath.normpath(path)
        if shortest.startswith("//"):
            shortest = shortest[1:]
        if not shortest.startswith(f"{FOLDER}/"):
            problem = "would be lost with the pod" if name == "output" else "is not in the volume"
            lowering.error("KG0412", f"`{path}` {problem}", field, f"write a path below `{FOLDER}/`")
        elif shortest != path:
            lowering.error("KG0412", f"`{path}` is not in its shortest form", field, f"write `{shortest}`")
    if posixpath.normpath(spec.input.path) == posixpath.normpath(spec.output.path):
        message = "`output.path` is the input, which would be overwritten"
        lowering.error("KG0412", message, ("spec", "output", "path"), "write another path")


def _warn_of_ignored(spec: EphemeralAccelerationJobSpec, lowering: Lowering) -> None:
    """Report values that the operator and kaigen ignore."""
    if spec.command is not None:
        lowering.warning(
            "KG0405",
            "`command` has no effect: it is an option of `egpu create`, and the API does not have it",
            ("spec", "command"),
            "delete it; to run a command of your own, write a Job with `image` and `command`",
            key=True,
        )
    if spec.input.type != "image":
        lowering.warning(
            "KG0405",
            f"`type: {spec.input.type}` has no effect: the operator reads every input as an image",
            ("spec", "input", "type"),
            "delete it",
        )


def _put_classification(
    draft: Draft, spec: EphemeralAccelerationJobSpec, directives: Mapping[str, str], lowering: Lowering
) -> None:
    """Put the workload of kaigen's own image in place of the operator's, which is in no registry."""
    if "image" in set_fields(spec):
        lowering.warning(
            "KG0414",
            f"`{DEFAULT_IMAGE}` is in no registry, so kaigen's own image classifies",
            ("spec", "image"),
            "delete it, or write an image with its registry",
        )
    draft.put(("spec", "workload"), "classify", ("spec", "image"))
    draft.put(("spec", "classify", "model"), spec.model, ("spec", "model"))
    draft.put(("spec", "classify", "input"), spec.input.path, ("spec", "input", "path"))
    draft.put(("spec", "classify", "output"), spec.output.path, ("spec", "output", "path"))
    draft.put(("spec", "resources", "gpus"), spec.resources.gpu, ("spec", "resources", "gpu"))
    draft.hints["KG0328"] = "write `gpu: 1`"
    draft.put(("spec", "resources", "cpu"), "2")
    draft.put(("spec", "resources", "memory"), "4Gi")
    _put_weights(draft, spec, directives, lowering)


def _put_weights(
    draft: Draft, spec: EphemeralAccelerationJobSpec, directives: Mapping[str, str], lowering: Lowering
) -> None:
    model, weights = directives.get("model"), directives.get("weights")
    at = {name: ("metadata", "annotations", f"{PREFIX}{name}") for name in ("model", "weights")}
    if weights is not None:
        if posixpath.normpath(weights) != weights or not weights.startswith(f"{FOLDER}/"):
            message = f"`{PREFIX}weights` must be the path of a file below `{FOLDER}/`"
            lowering.error("KG0406", message, at["weights"])
        if model is not None:
            message = f"`{PREFIX}model` and `{PREFIX}weights` name the weights twice"
            lowering.error("KG0406", message, at["weights"], "delete one of the two", key=True)
        draft.put(("spec", "classify", "weights", "path"), weights, at["weights"])
        return
    if model is not None:
        if len(model) > APP_NAME_MAX or not matches(DNS_LABEL, model):
            lowering.error("KG0406", f"`{PREFIX}model` must be the name of a Model", at["model"])
        draft.put(("spec", "model"), model, at["model"])
        return
    pinned = classifier_weights(spec.model)
    draft.put(("spec", "model", "source"), pinned.source(), ("spec", "model"))
    draft.put(("spec", "model", "mountPath"), _WEIGHTS_FOLDER)
    draft.put(("spec", "classify", "weights"), pinned.settings(), ("spec", "model"))
    draft.origins["spec", "model"] = ("spec", "model")


def _put_own_image(
    draft: Draft, spec: EphemeralAccelerationJobSpec, directives: Mapping[str, str], lowering: Lowering
) -> None:
    """Put the user's image with the command and arguments of the operator."""
    for name in ("model", "weights"):
        if name in directives:
            path: FieldPath = ("metadata", "annotations", f"{PREFIX}{name}")
            message = f"`{PREFIX}{name}` has no effect: `{spec.image}` has weights of its own"
            lowering.warning("KG0405", message, path, "delete it", key=True)
    draft.put(("spec", "resources", "gpus"), spec.resources.gpu, ("spec", "resources", "gpu"))
    arguments = {"model": spec.model, "input": spec.input.path, "output": spec.output.path}
    draft.put(("spec", "image"), spec.image, ("spec", "image"))
    draft.put(("spec", "command"), list(COMMAND), ("spec", "image"))
    draft.put(("spec", "args"), [text for name, value in arguments.items() for text in (f"--{name}", value)])


def _put_volume(draft: Draft, spec: EphemeralAccelerationJobSpec) -> None:
    volume: FieldPath = ("spec", "output", "volume")
    draft.put((*volume, "size"), spec.pvc_size, ("spec", "pvcSize"))
    draft.put((*volume, "storageClassName"), spec.storage_class, ("spec", "storageClass"))
    draft.put((*volume, "mountPath"), FOLDER)


def _put_input(
    draft: Draft, spec: EphemeralAccelerationJobSpec, directives: Mapping[str, str], lowering: Lowering
) -> None:
    """Let the run wait until its input is in the volume, which exists only with the run."""
    wait = directives.get("input-wait", _INPUT_WAIT)
    at: FieldPath = ("metadata", "annotations", f"{PREFIX}input-wait")
    if not matches(DURATION, wait):
        message = f"`{PREFIX}input-wait` must be a duration such as `1h`"
        lowering.error("KG0406", message, at)
    file = {"wait": wait, "path": spec.input.path.removeprefix(f"{FOLDER}/")}
    draft.put(("spec", "inputs", "into"), "output")
    draft.put(("spec", "inputs", "files"), [file])
    draft.origins["spec", "inputs"] = ("spec", "input", "path")


def _put_lifetimes(
    draft: Draft, spec: EphemeralAccelerationJobSpec, directives: Mapping[str, str], lowering: Lowering
) -> None:
    origin: FieldPath = ("spec", "ttlSecondsAfterFinished")
    draft.put(("spec", "ttl", "pods"), spec.ttl_seconds_after_finished, origin)
    failed = directives.get("failed-pod-ttl")
    if failed is not None:
        path: FieldPath = ("metadata", "annotations", f"{PREFIX}failed-pod-ttl")
        if not matches(LIFETIME, failed) and not re.fullmatch("[0-9]{1,9}", failed):
            message = f"`{PREFIX}failed-pod-ttl` must be a duration such as `1h`, seconds, or `never`"
            lowering.error("KG0406", message, path)
            return
        draft.put(("spec", "ttl", "failedPods"), int(failed) if failed.isdecimal() else failed, path)
    seconds = spec.pvc_ttl_seconds_after_finished
    origin = ("spec", "pvcTTLSecondsAfterFinished")
    volume: FieldPath = ("spec", "output", "volume")
    if seconds < 0:
        # Never, as in the operator; the volume goes with its resource.
        draft.put((*volume, "retain"), False, origin)
    else:
        draft.put((*volume, "ttl"), seconds, origin)
