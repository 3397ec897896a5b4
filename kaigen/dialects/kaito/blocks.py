"""Blocks that KAITO's kinds share, as in its CustomResourceDefinitions."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json, JsonObject
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import Labels, ObjectName, text
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.promotable import IMAGE, NAME

Text = Annotated[str, Meta(min_length=1, max_length=512)]
ImageText = Annotated[str, Meta(min_length=1, max_length=512), IMAGE]
Count = Annotated[int, Meta(ge=1, le=1000)]
Status = dict[str, Json]


class Requirement(Block):
    """A label that nodes must have."""

    key: Annotated[str, Meta(min_length=1, max_length=317, description="Key of the label.", examples=["pool"])]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        Meta(description="How the value is compared. KAITO supports only `In`."),
    ]
    values: Annotated[list[Annotated[str, Meta(max_length=63)]], Meta(description="Values to compare with.")] = field(
        default_factory=list
    )


class LabelSelector(Block):
    """Labels of existing nodes, and of nodes that are created."""

    match_labels: Annotated[Labels, Meta(description="Labels and their values.", examples=[{"apps": "phi-4"}])] = field(
        default_factory=dict
    )
    match_expressions: Annotated[list[Requirement], Meta(description="Conditions on labels.")] = field(
        default_factory=list
    )


class ResourceV1Alpha1(Block):
    """Nodes of the workload."""

    count: Annotated[
        Count | None, Meta(description="Number of nodes. KAITO replaces it by its own estimate; kaigen uses it.")
    ] = None
    instance_type: Annotated[
        Text | None, Meta(description="Instance type of the nodes.", examples=["Standard_NC24ads_A100_v4"])
    ] = None
    label_selector: Annotated[LabelSelector, Meta(description="Labels of the nodes.")]
    preferred_nodes: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=253)]], Meta(description="Names of preferred nodes.")
    ] = field(default_factory=list)


class Partition(Block):
    """GPUs of each pod."""

    mode: Annotated[
        Literal["mig", "accelerator"], Meta(description="`mig` for a MIG slice, `accelerator` for whole GPUs.")
    ]
    profile: Annotated[Text | None, Meta(description="MIG profile, for `mig`.", examples=["1g.10gb"])] = None
    count: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None, Meta(description="Number of whole GPUs, for `accelerator`.")
    ] = None


class Resource(ResourceV1Alpha1):
    """Nodes of the workload, and the GPUs of each pod."""

    partition: Annotated[Partition | None, Meta(description="GPUs of each pod.")] = None


class PresetOptionsV1Alpha1(Block):
    """Image of a preset."""

    image: Annotated[ImageText | None, Meta(description="The user's image.")] = None
    image_pull_secrets: Annotated[list[ObjectName], Meta(description="Secrets to pull the image.")] = field(
        default_factory=list
    )


class PresetOptions(PresetOptionsV1Alpha1):
    """Image and weights of a preset."""

    model_access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with a Hub token under the key `HF_TOKEN`.", examples=["hf-token"])
    ] = None
    model_weights_pvc: Annotated[
        ObjectName | None,
        Meta(description="Existing PersistentVolumeClaim with the weights.", examples=["weights"]),
    ] = field(default=None, name="modelWeightsPVC")
    model_weights_sub_path: Annotated[
        Text | None, Meta(description="Folder of the weights in the volume. Default: its root.", examples=["phi-4"])
    ] = None


ModelName = Annotated[
    str,
    NAME,
    Meta(
        min_length=1,
        max_length=200,
        description="Name of a preset, or repository on the Hugging Face Hub.",
        examples=["phi-4"],
    ),
]


class PresetV1Alpha1(Block):
    """A model, by name."""

    name: ModelName
    access_mode: Annotated[
        Literal["public", "private"], Meta(description="Whether the image is KAITO's or the user's.")
    ] = "public"
    preset_options: Annotated[PresetOptionsV1Alpha1, Meta(description="Image of the preset.")] = field(
        default_factory=PresetOptionsV1Alpha1
    )


class Preset(PresetV1Alpha1):
    """A model, by name, and the token for it."""

    preset_options: Annotated[PresetOptions, Meta(description="Image and weights of the preset.")] = field(
        default_factory=PresetOptions
    )


class DataSource(Choice):
    """Source of files."""

    exactly_one: ClassVar[tuple[str, ...]] = ("urls", "image", "volumeSource")

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=253)] | None,
        Meta(description="Name of the source; for an adapter, its model name in requests."),
    ] = None
    urls: Annotated[Annotated[list[Text], Meta(min_length=1)] | None, Meta(description="URLs of files.")] = None
    image: Annotated[ImageText | None, Meta(description="Image with the files.")] = None
    image_pull_secrets: Annotated[list[ObjectName], Meta(description="Secrets to pull the image.")] = field(
        default_factory=list
    )
    volume_source: Annotated[JsonObject | None, Meta(description="A volume, as in a pod.")] = None


class DataDestination(Choice):
    """Destination of results."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "volumeSource")

    image: Annotated[ImageText | None, Meta(description="Image to push with the results.")] = None
    image_push_secret: Annotated[ObjectName | None, Meta(description="Secret to push the image.")] = None
    volume_source: Annotated[JsonObject | None, Meta(description="A volume, as in a pod.")] = None


class AdapterV1(Block):
    """A LoRA adapter."""

    source: Annotated[DataSource, Meta(description="Source of the adapter: an image or a volume.")]
    strength: Annotated[
        Annotated[str, text(r"^(0(\.[0-9]+)?|1(\.0+)?)$", max_length=20)] | None,
        Meta(description="Strength of the adapter, from 0 to 1.", examples=["0.5"]),
    ] = None


class InferenceV1Alpha1(Choice):
    """What is served: a model by name, or a pod template."""

    exactly_one: ClassVar[tuple[str, ...]] = ("preset", "template")

    preset: Annotated[PresetV1Alpha1 | None, Meta(description="A model, by name.")] = None
    template: Annotated[JsonObject | None, Meta(description="A pod template.")] = None
    config: Annotated[
        ObjectName | None, Meta(description="ConfigMap with the engine's flags under the key `inference_config.yaml`.")
    ] = None
    adapters: Annotated[list[AdapterV1], Meta(max_length=10, description="LoRA adapters.")] = field(
        default_factory=list
    )


class Inference(InferenceV1Alpha1):
    """What is served: a model by name, or a pod template."""

    preset: Annotated[Preset | None, Meta(description="A model, by name.")] = None


class TuningV1Alpha1(Block):
    """A fine-tuning run."""

    preset: Annotated[PresetV1Alpha1 | None, Meta(description="The model to fine-tune.")] = None
    method: Annotated[
        Annotated[str, Meta(min_length=1, max_length=20)] | None,
        Meta(description="`lora` or `qlora`.", examples=["qlora"]),
    ] = None
    config: Annotated[
        ObjectName | None, Meta(description="ConfigMap with training settings under the key `training_config.yaml`.")
    ] = None
    input: Annotated[DataSource, Meta(description="Source of the training data.")]
    output: Annotated[DataDestination, Meta(description="Destination of the adapter.")]


class Tuning(TuningV1Alpha1):
    """A fine-tuning run."""

    preset: Annotated[Preset | None, Meta(description="The model to fine-tune.")] = None


class Foreign(Block):
    """Fields of every KAITO resource."""

    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None
