"""The model of `EphemeralAccelerationJob`, with the defaults of the operator's CustomResourceDefinition.

Source: github.com/pshakespeare/ephemeral-gpu-image-inference-operator at commit 0ae1039.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import NO_BLANKS, Quantity, text
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import IMAGE

FOLDER = "/artifacts"
"""Where the operator mounts the volume."""

DEFAULT_IMAGE = "gpu-job-inference:latest"
DEFAULT_STORAGE_CLASS = "longhorn"
DEFAULT_SIZE = "1Gi"
DEFAULT_VOLUME_TTL = 3600
MAX_SECONDS = 2**31 - 1

_PATH = text(r"^/[^\s:$]*$", max_length=1024)


class EphemeralInput(Block):
    """The image to classify."""

    path: Annotated[
        Annotated[str, _PATH],
        Meta(description=f"Path of the image in the volume, below `{FOLDER}`.", examples=["/artifacts/input.jpg"]),
    ]
    type: Annotated[str, Meta(description="Type of the input. The operator knows only `image`.")] = "image"


class EphemeralOutput(Block):
    """Where the result goes."""

    path: Annotated[
        Annotated[str, _PATH],
        Meta(
            description=f"Path of the JSON file in the volume, below `{FOLDER}`.", examples=["/artifacts/output.json"]
        ),
    ]


class EphemeralResources(Block):
    """Resources of the pod."""

    gpu: Annotated[int, Meta(ge=1, le=64, description="Number of GPUs. The classification uses one.")] = 1


class EphemeralAccelerationJobSpec(Block):
    """One classification of one image."""

    input: Annotated[EphemeralInput, Meta(description="The image to classify.")]
    output: Annotated[EphemeralOutput, Meta(description="Where the result goes.")]
    model: Annotated[
        Literal["resnet50", "mobilenet_v3_small"], Meta(description="Model of torchvision that classifies.")
    ] = "resnet50"
    resources: Annotated[EphemeralResources, Meta(description="Resources of the pod.")] = field(
        default_factory=EphemeralResources
    )
    ttl_seconds_after_finished: Annotated[
        int, Meta(ge=0, le=MAX_SECONDS, description="Seconds from the end of the run to the deletion of its pod.")
    ] = field(default=0, name="ttlSecondsAfterFinished")
    pvc_ttl_seconds_after_finished: Annotated[
        int,
        Meta(
            le=MAX_SECONDS,
            description="Seconds from the end of the run to the deletion of its volume; negative for never.",
        ),
    ] = field(default=DEFAULT_VOLUME_TTL, name="pvcTTLSecondsAfterFinished")
    storage_class: Annotated[
        Annotated[str, Meta(max_length=253)],
        Meta(description='StorageClass of the volume. `""` uses the default class of the cluster.'),
    ] = DEFAULT_STORAGE_CLASS
    pvc_size: Annotated[Quantity, Meta(description="Size of the volume.")] = DEFAULT_SIZE
    image: Annotated[
        str,
        IMAGE,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=512,
            description="Image of the inference. The default, which is in no registry, is replaced by kaigen's image.",
        ),
    ] = DEFAULT_IMAGE
    command: Annotated[
        list[str] | None, Meta(description="An option of `egpu create`, not a field of the API; ignored.")
    ] = None


class EphemeralAccelerationJob(Block):
    """Ephemeral GPU's `EphemeralAccelerationJob`."""

    api_version: Annotated[Literal["gpu.yourdomain.io/v1alpha1"], Meta(description="Version of the operator's API.")]
    kind: Annotated[Literal["EphemeralAccelerationJob"], Meta(description="Kind of the document.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    spec: Annotated[EphemeralAccelerationJobSpec, Meta(description="Desired state.")]
    status: Annotated[dict[str, Json] | None, Meta(description="Written by the operator; ignored.")] = None


class EphemeralAccelerationJobRedtails(Block):
    """`EphemeralAccelerationJob` in the group of the operator's example files, which its API does not have."""

    api_version: Annotated[Literal["gpu.redtails.io/v1alpha1"], Meta(description="Version of the operator's API.")]
    kind: Annotated[Literal["EphemeralAccelerationJob"], Meta(description="Kind of the document.")]
    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    spec: Annotated[EphemeralAccelerationJobSpec, Meta(description="Desired state.")]
    status: Annotated[dict[str, Json] | None, Meta(description="Written by the operator; ignored.")] = None
