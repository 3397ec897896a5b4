"""AI Operator: `Job` of `ai.re-cinq.com/v1`, a fine-tuning run with its model download and its volume.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its Go code at commit 4252ee7):

- `huggingFaceSecret` is the name of a Secret, as its README says; the operator uses it as the token.
- A GPU is requested; the operator requests none and shares those of the node.
- Only the downloader reads the token, unless an annotation gives it to the training container, too.
- An edit of any field starts a new run; the operator ignores most edits, and loses the volume on others.
- The volume with the trained weights outlives the spec; the operator deletes it.
"""

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.core.credentials import looks_like_secret
from kaigen.core.json_types import FieldPath, Json
from kaigen.dialects.draft import Draft
from kaigen.dialects.metadata import ForeignMetadata, put_metadata, read_directives
from kaigen.kinds.base import NO_BLANKS, AppName, text
from kaigen.kinds.block import Block, set_fields
from kaigen.kinds.blocks import AccessMode, RepoName
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Job
from kaigen.kinds.lowering import PREFIX, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.promotable import IMAGE

DEFAULT_IMAGE = "silentehrec/torchtune:latest"
DEFAULT_MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
DEFAULT_RUNTIME_CLASS = "nvidia"
DEFAULT_STORAGE_CLASS = "local-path"
DEFAULT_DISK_SIZE = 50
DEFAULT_COMMAND = ("tune", "run", "full_finetune_single_device", "-r=3", "--config", "qwen2_5/0.5B_full_single_device")
TOKEN_KEY = "token"
TOKEN_VARIABLE = "HF_TOKEN"
"""Variable in which programs look for a Hub token (source: huggingface_hub's guide of environment variables)."""
FOLDER = "/tmp"
"""Where the operator mounts the volume, to match the defaults of torchtune."""

RETRIES = 6
"""The default `backoffLimit` of a Job, which the operator uses."""

_ANNOTATIONS: FieldPath = ("metadata", "annotations")

DIRECTIVES = ("compat", "gpus", "retain-output", "token-in-training", "version")


class AiOperatorSpec(Block):
    """A fine-tuning run."""

    image: Annotated[
        str, IMAGE, text(NO_BLANKS, min_length=1, max_length=512, description="Container image with the training code.")
    ] = DEFAULT_IMAGE
    model: Annotated[RepoName, Meta(description="Hugging Face repository to download.", examples=[DEFAULT_MODEL])] = (
        DEFAULT_MODEL
    )
    runtime_class_name: Annotated[
        str, Meta(description='RuntimeClass of the pod. `""` sets none, which the operator does not support.')
    ] = DEFAULT_RUNTIME_CLASS
    disk_size: Annotated[
        int, Meta(ge=0, le=2147483647, description="Size of the volume in GiB (the operator's docs say GB).")
    ] = DEFAULT_DISK_SIZE
    storage_class_name: Annotated[
        str,
        Meta(
            description='StorageClass of the volume. `""` uses the default class, which the operator does not support.'
        ),
    ] = DEFAULT_STORAGE_CLASS
    access_modes: Annotated[list[AccessMode], Meta(description="Access modes of the volume.")] = field(
        default_factory=lambda: ["ReadWriteOnce"]
    )
    command: Annotated[list[str], Meta(description="Command of the training container.")] = field(
        default_factory=lambda: list(DEFAULT_COMMAND)
    )
    hugging_face_secret: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)] | None,
        Meta(
            description="Name of the Secret with a Hub token under the key `token`. Not required for public models.",
            examples=["hf-token"],
        ),
    ] = None


class AiOperatorJob(Block):
    """AI Operator's `Job`."""

    api_version: Annotated[Literal["ai.re-cinq.com/v1"], Meta(description="Version of the operator's API.")]
    kind: Annotated[Literal["Job"], Meta(description="Kind of the document.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    spec: Annotated[AiOperatorSpec, Meta(description="Desired state.")]
    status: Annotated[dict[str, Json] | None, Meta(description="Written by the operator; ignored.")] = None


def _secret_name(job: AiOperatorJob, lowering: Lowering) -> str | None:
    name = job.spec.hugging_face_secret
    if name is None:
        return None
    path = ("spec", "huggingFaceSecret")
    if looks_like_secret(name):
        return None  # The loader has reported it, with the token masked.
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name):
        lowering.error(
            "KG0402",
            "`huggingFaceSecret` must be the name of a Secret",
            path,
            f"create a Secret with the token under the key `{TOKEN_KEY}`, and write its name",
        )
        return None
    return name


def _gpus(directives: dict[str, str], lowering: Lowering) -> int:
    text = directives.get("gpus", "1")
    if re.fullmatch(r"[0-9]{1,2}", text) and int(text) <= 64:
        return int(text)
    lowering.error(
        "KG0406",
        "`kaigen.dev/gpus` must be a whole number from 0 to 64",
        ("metadata", "annotations", "kaigen.dev/gpus"),
    )
    return 1


def lower(job: AiOperatorJob, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return the operator's Job as a kaigen Job with its own weights.

    Args:
        job: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = Lowering(document, context)
    spec, metadata = job.spec, job.metadata
    directives = read_directives(lowering, metadata, DIRECTIVES)
    compat = lowering.flag(directives, "compat", False)
    retain = lowering.flag(directives, "retain-output", True)
    disk_size = spec.disk_size
    if disk_size == 0:
        disk_size = DEFAULT_DISK_SIZE
        lowering.warning(
            "KG0403",
            f"`diskSize: 0` means the operator's default, {DEFAULT_DISK_SIZE} GiB",
            ("spec", "diskSize"),
            "write the size",
        )
    for name, value in (("accessModes", spec.access_modes), ("command", spec.command)):
        if not value:
            lowering.warning("KG0403", f"an empty `{name}` means the operator's default", ("spec", name), "delete it")
    if spec.model != DEFAULT_MODEL and "command" not in set_fields(spec):
        lowering.warning(
            "KG0404",
            f"the default `command` trains `{DEFAULT_MODEL}`, not `{spec.model}`",
            ("spec", "model"),
            "write a `command` with a recipe for your model",
        )
    draft = Draft()
    put_metadata(draft, metadata, directives)
    draft.put(("spec", "image"), spec.image, ("spec", "image"))
    draft.put(("spec", "command"), list(spec.command) or list(DEFAULT_COMMAND), ("spec", "command"))
    weights: FieldPath = ("spec", "model", "source", "huggingFace")
    draft.put((*weights, "repo"), spec.model)
    draft.origins["spec", "model"] = ("spec", "model")
    secret = _secret_name(job, lowering)
    if secret is not None:
        token = {"name": secret, "key": TOKEN_KEY}
        draft.put((*weights, "tokenSecret"), token, ("spec", "huggingFaceSecret"))
    if lowering.flag(directives, "token-in-training", False):
        at = (*_ANNOTATIONS, f"{PREFIX}token-in-training")
        if spec.hugging_face_secret is None:
            message = "`kaigen.dev/token-in-training` has no token to give: `huggingFaceSecret` is not set"
            lowering.error("KG0406", message, at, "set `huggingFaceSecret` to the name of a Secret", key=True)
        elif secret is not None:
            draft.put(("spec", "env", TOKEN_VARIABLE), {"secret": {"name": secret, "key": TOKEN_KEY}}, at)
    draft.put(("spec", "model", "mountPath"), f"{FOLDER}/{spec.model.split('/')[-1]}")
    volume: FieldPath = ("spec", "output", "volume")
    draft.put((*volume, "size"), f"{disk_size}Gi")
    draft.origins[volume] = ("spec", "diskSize")
    storage_class = ("spec", "storageClassName")
    draft.put((*volume, "storageClassName"), spec.storage_class_name, storage_class)
    access_modes = list(spec.access_modes) or ["ReadWriteOnce"]
    draft.put((*volume, "accessModes"), access_modes, ("spec", "accessModes"))
    draft.put((*volume, "mountPath"), FOLDER, ("spec",))
    draft.put((*volume, "retain"), retain, (*_ANNOTATIONS, f"{PREFIX}retain-output"))
    draft.put(("spec", "resources", "gpus"), _gpus(directives, lowering), (*_ANNOTATIONS, f"{PREFIX}gpus"))
    runtime_class = ("spec", "runtimeClassName")
    draft.put(("spec", "placement", "runtimeClassName"), spec.runtime_class_name, runtime_class)
    draft.put(("spec", "retries"), RETRIES)
    lowered = draft.finish(Job, lowering) if not lowering.failed else None
    if lowered is None:
        return lowering.result()
    naming = _operator_names(metadata.name, spec.model) if compat else None
    return lowering.result(draft.lowered(lowered, naming))


def _operator_names(name: AppName, model: str) -> Naming:
    return Naming(
        container=name, init=f"{name}-init", fetch_command=("tune", "download", model), volume="model", plain=True
    )
