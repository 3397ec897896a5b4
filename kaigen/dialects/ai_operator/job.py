"""AI Operator: `Job` of `ai.re-cinq.com/v1`, a fine-tuning run with its model download and its volume.

kaigen keeps the meaning of fields and fixes bugs of the operator (source: its Go code at commit 4252ee7):

- `huggingFaceSecret` is the name of a Secret, as its README says; the operator uses it as the token.
- A GPU is requested; the operator requests none and shares those of the node.
- Only the downloader reads the token.
- An edit of any field starts a new run; the operator ignores most edits, and loses the volume on others.
- The volume with the trained weights outlives the spec; the operator deletes it.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from kaigen.dialects.metadata import CLUSTER_FIELDS, ForeignMetadata
from kaigen.kinds.base import NO_BLANKS, AppName, Block, Metadata, TokenSecret
from kaigen.kinds.blocks import AccessMode, HuggingFace, Placement, RepoName, Resources, Source
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Job, JobSpec, ModelUse, Output, OutputVolume
from kaigen.kinds.lowering import PREFIX, Lowered, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.promotable import IMAGE
from kaigen.kinds.spec import Path
from kaigen.secret_scan.detect import looks_like_secret

DEFAULT_IMAGE = "silentehrec/torchtune:latest"
DEFAULT_MODEL = "Qwen/Qwen2.5-0.5B-Instruct"
DEFAULT_RUNTIME_CLASS = "nvidia"
DEFAULT_STORAGE_CLASS = "local-path"
DEFAULT_DISK_SIZE = 50
DEFAULT_COMMAND = (
    "tune",
    "run",
    "full_finetune_single_device",
    "-r=3",
    "--config",
    "qwen2_5/0.5B_full_single_device",
)
TOKEN_KEY = "token"
FOLDER = "/tmp"
"""Where the operator mounts the volume, to match the defaults of torchtune."""

RETRIES = 6
"""The default `backoffLimit` of a Job, which the operator uses."""

DIRECTIVES = ("compat", "gpus", "retain-output", "version")


class AiOperatorSpec(Block):
    """A fine-tuning run."""

    image: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE] = Field(
        DEFAULT_IMAGE, description="Container image with the training code."
    )
    model: RepoName = Field(
        DEFAULT_MODEL, description="Hugging Face repository to download.", examples=[DEFAULT_MODEL]
    )
    runtime_class_name: str = Field(
        DEFAULT_RUNTIME_CLASS,
        description='RuntimeClass of the pod. `""` sets none, which the operator does not support.',
    )
    disk_size: int = Field(
        DEFAULT_DISK_SIZE,
        ge=0,
        le=2147483647,
        description="Size of the volume in GiB (the operator's docs say GB).",
    )
    storage_class_name: str = Field(
        DEFAULT_STORAGE_CLASS,
        description='StorageClass of the volume. `""` uses the default class, which the operator does not support.',
    )
    access_modes: list[AccessMode] = Field(["ReadWriteOnce"], description="Access modes of the volume.")
    command: list[str] = Field(list(DEFAULT_COMMAND), description="Command of the training container.")
    hugging_face_secret: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        None,
        description="Name of the Secret with a Hub token under the key `token`. Not required for public "
        "models.",
        examples=["hf-token"],
    )


class AiOperatorJob(Block):
    """AI Operator's `Job`."""

    api_version: Literal["ai.re-cinq.com/v1"] = Field(description="Version of the operator's API.")
    kind: Literal["Job"] = Field(description="Kind of the document.")
    metadata: ForeignMetadata = Field(description="Name, namespace, labels and annotations of the resource.")
    spec: AiOperatorSpec = Field(description="Desired state.")
    status: dict[str, JsonValue] | None = Field(None, description="Written by the operator; ignored.")


def _secret_reference(job: AiOperatorJob, lowering: Lowering) -> TokenSecret | None:
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
    return TokenSecret(name=name, key=TOKEN_KEY)


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
    lowering.ignored(CLUSTER_FIELDS, ("metadata",), "a cluster writes it")
    lowering.ignored(("status",), (), "the operator writes it")
    directives = lowering.directives(metadata.annotations, DIRECTIVES)
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
            lowering.warning(
                "KG0403", f"an empty `{name}` means the operator's default", ("spec", name), "delete it"
            )
    if spec.model != DEFAULT_MODEL and "command" not in spec.model_fields_set:
        lowering.warning(
            "KG0404",
            f"the default `command` trains `{DEFAULT_MODEL}`, not `{spec.model}`",
            ("spec", "model"),
            "write a `command` with a recipe for your model",
        )
    folder = f"{FOLDER}/{spec.model.split('/')[-1]}"
    model = ModelUse(
        source=Source(
            hugging_face=HuggingFace(repo=spec.model, token_secret=_secret_reference(job, lowering))
        ),
        mount_path=folder,
    )
    volume = OutputVolume(
        size=f"{disk_size}Gi",
        storage_class_name=spec.storage_class_name,
        access_modes=list(spec.access_modes) or ["ReadWriteOnce"],
        mount_path=FOLDER,
        retain=retain,
    )
    gpus = _gpus(directives, lowering)
    kept = {key: value for key, value in metadata.annotations.items() if not key.startswith("kaigen.dev/")}
    if "version" in directives:
        kept["kaigen.dev/version"] = directives["version"]
    lowered = Job(
        metadata=Metadata(
            name=metadata.name, namespace=metadata.namespace, labels=metadata.labels, annotations=kept
        ),
        spec=JobSpec(
            image=spec.image,
            command=list(spec.command) or list(DEFAULT_COMMAND),
            model=model,
            output=Output(volume=volume),
            resources=Resources(gpus=gpus),
            placement=Placement(runtime_class_name=spec.runtime_class_name),
            retries=RETRIES,
        ),
    )
    origins: dict[Path, Path] = {
        ("spec", "image"): ("spec", "image"),
        ("spec", "command"): ("spec", "command"),
        ("spec", "model"): ("spec", "model"),
        ("spec", "output", "volume"): ("spec", "diskSize"),
        ("spec", "output", "volume", "mountPath"): ("spec",),
        ("spec", "output", "volume", "retain"): ("metadata", "annotations", f"{PREFIX}retain-output"),
        ("spec", "resources", "gpus"): ("metadata", "annotations", f"{PREFIX}gpus"),
        ("spec", "output", "volume", "storageClassName"): ("spec", "storageClassName"),
        ("spec", "output", "volume", "accessModes"): ("spec", "accessModes"),
        ("spec", "placement", "runtimeClassName"): ("spec", "runtimeClassName"),
        ("spec", "model", "source", "huggingFace", "tokenSecret"): ("spec", "huggingFaceSecret"),
        ("metadata", "labels"): ("metadata", "labels"),
        ("metadata", "annotations"): ("metadata", "annotations"),
    }
    naming = _operator_names(metadata.name, spec.model) if compat else None
    return lowering.result(Lowered(lowered, origins, naming))


def _operator_names(name: AppName, model: str) -> Naming:
    return Naming(
        container=name,
        init=f"{name}-init",
        fetch_command=("tune", "download", model),
        volume="model",
        plain=True,
    )
