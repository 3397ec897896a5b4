"""Blocks that KAITO's kinds share, as in its CustomResourceDefinitions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import Block, Choice, Labels, Object, ObjectName
from kaigen.kinds.promotable import IMAGE, NAME

Text = Annotated[str, Field(min_length=1, max_length=512)]
ImageText = Annotated[str, Field(min_length=1, max_length=512), IMAGE]
Count = Annotated[int, Field(ge=1, le=1000)]
Status = dict[str, JsonValue]


class Requirement(Block):
    """A label that nodes must have."""

    key: Annotated[str, Field(min_length=1, max_length=317)] = Field(
        description="Key of the label.", examples=["pool"]
    )
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="How the value is compared. KAITO supports only `In`."
    )
    values: list[Annotated[str, Field(max_length=63)]] = Field([], description="Values to compare with.")


class LabelSelector(Block):
    """Labels of existing nodes, and of nodes that are created."""

    match_labels: Labels = Field({}, description="Labels and their values.", examples=[{"apps": "phi-4"}])
    match_expressions: list[Requirement] = Field([], description="Conditions on labels.")


class ResourceV1Alpha1(Block):
    """Nodes of the workload."""

    count: Count | None = Field(
        None,
        description="Number of nodes. KAITO replaces it by its own estimate; kaigen uses it.",
    )
    instance_type: Text | None = Field(
        None, description="Instance type of the nodes.", examples=["Standard_NC24ads_A100_v4"]
    )
    label_selector: LabelSelector = Field(description="Labels of the nodes.")
    preferred_nodes: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(
        [], description="Names of preferred nodes."
    )


class Partition(Block):
    """GPUs of each pod."""

    mode: Literal["mig", "accelerator"] = Field(
        description="`mig` for a MIG slice, `accelerator` for whole GPUs."
    )
    profile: Text | None = Field(None, description="MIG profile, for `mig`.", examples=["1g.10gb"])
    count: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Number of whole GPUs, for `accelerator`."
    )


class Resource(ResourceV1Alpha1):
    """Nodes of the workload, and the GPUs of each pod."""

    partition: Partition | None = Field(None, description="GPUs of each pod.")


class PresetOptionsV1Alpha1(Block):
    """Image of a preset."""

    image: ImageText | None = Field(None, description="The user's image.")
    image_pull_secrets: list[ObjectName] = Field([], description="Secrets to pull the image.")


class PresetOptions(PresetOptionsV1Alpha1):
    """Image and weights of a preset."""

    model_access_secret: ObjectName | None = Field(
        None, description="Secret with a Hub token under the key `HF_TOKEN`.", examples=["hf-token"]
    )


class PresetV1Alpha1(Block):
    """A model, by name."""

    name: Annotated[str, Field(min_length=1, max_length=200), NAME] = Field(
        description="Name of a preset, or repository on the Hugging Face Hub.", examples=["phi-4"]
    )
    access_mode: Literal["public", "private"] = Field(
        "public", description="Whether the image is KAITO's or the user's."
    )
    preset_options: PresetOptionsV1Alpha1 = Field(
        default_factory=dict, validate_default=True, description="Image of the preset."
    )


class Preset(PresetV1Alpha1):
    """A model, by name, and the token for it."""

    preset_options: PresetOptions = Field(
        default_factory=dict, validate_default=True, description="Image and weights of the preset."
    )


class DataSource(Choice):
    """Source of files."""

    exactly_one: ClassVar[tuple[str, ...]] = ("urls", "image", "volumeSource")

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        None, description="Name of the source; for an adapter, its model name in requests."
    )
    urls: Annotated[list[Text], Field(min_length=1)] | None = Field(None, description="URLs of files.")
    image: ImageText | None = Field(None, description="Image with the files.")
    image_pull_secrets: list[ObjectName] = Field([], description="Secrets to pull the image.")
    volume_source: Object | None = Field(None, description="A volume, as in a pod.")


class DataDestination(Choice):
    """Destination of results."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "volumeSource")

    image: ImageText | None = Field(None, description="Image to push with the results.")
    image_push_secret: ObjectName | None = Field(None, description="Secret to push the image.")
    volume_source: Object | None = Field(None, description="A volume, as in a pod.")


class AdapterV1(Block):
    """A LoRA adapter."""

    source: DataSource = Field(description="Source of the adapter: an image or a volume.")
    strength: Annotated[str, Field(pattern=r"^(0(\.[0-9]+)?|1(\.0+)?)$", max_length=20)] | None = Field(
        None, description="Strength of the adapter, from 0 to 1.", examples=["0.5"]
    )


class InferenceV1Alpha1(Choice):
    """What is served: a model by name, or a pod template."""

    exactly_one: ClassVar[tuple[str, ...]] = ("preset", "template")

    preset: PresetV1Alpha1 | None = Field(None, description="A model, by name.")
    template: Object | None = Field(None, description="A pod template.")
    config: ObjectName | None = Field(
        None, description="ConfigMap with the engine's flags under the key `inference_config.yaml`."
    )
    adapters: Annotated[list[AdapterV1], Field(max_length=10)] = Field([], description="LoRA adapters.")


class Inference(InferenceV1Alpha1):
    """What is served: a model by name, or a pod template."""

    preset: Preset | None = Field(None, description="A model, by name.")


class TuningV1Alpha1(Block):
    """A fine-tuning run."""

    preset: PresetV1Alpha1 | None = Field(None, description="The model to fine-tune.")
    method: Annotated[str, Field(min_length=1, max_length=20)] | None = Field(
        None, description="`lora` or `qlora`.", examples=["qlora"]
    )
    config: ObjectName | None = Field(
        None, description="ConfigMap with training settings under the key `training_config.yaml`."
    )
    input: DataSource = Field(description="Source of the training data.")
    output: DataDestination = Field(description="Destination of the adapter.")


class Tuning(TuningV1Alpha1):
    """A fine-tuning run."""

    preset: Preset | None = Field(None, description="The model to fine-tune.")


class Foreign(Block):
    """Fields of every KAITO resource."""

    metadata: ForeignMetadata = Field(description="Name, namespace, labels and annotations of the resource.")
    status: Status | None = Field(None, description="Written by the operator; ignored.")
