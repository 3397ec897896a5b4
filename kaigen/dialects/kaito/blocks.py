"""Blocks that KAITO's kinds share, as its CustomResourceDefinitions have them."""

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
        description="How its value is compared. KAITO takes `In` alone."
    )
    values: list[Annotated[str, Field(max_length=63)]] = Field([], description="Values to compare with.")


class LabelSelector(Block):
    """Which nodes are meant: those that carry these labels, or that get them when they are made."""

    match_labels: Labels = Field({}, description="Labels and their values.", examples=[{"apps": "phi-4"}])
    match_expressions: list[Requirement] = Field([], description="Conditions on labels.")


class ResourceV1Alpha1(Block):
    """Nodes that the work runs on."""

    count: Count | None = Field(
        None,
        description="How many nodes. What is said here counts; KAITO puts its own estimate in its place.",
    )
    instance_type: Text | None = Field(
        None, description="Instance type of the nodes.", examples=["Standard_NC24ads_A100_v4"]
    )
    label_selector: LabelSelector = Field(description="Labels of the nodes.")
    preferred_nodes: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(
        [], description="Names of nodes to choose first."
    )


class Partition(Block):
    """A part of a node's GPUs for each pod."""

    mode: Literal["mig", "accelerator"] = Field(description="A slice of one GPU, or some of the whole GPUs.")
    profile: Text | None = Field(None, description="MIG profile, for `mig`.", examples=["1g.10gb"])
    count: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="How many whole GPUs, for `accelerator`."
    )


class Resource(ResourceV1Alpha1):
    """Nodes that the work runs on, and which part of them."""

    partition: Partition | None = Field(None, description="A part of a node's GPUs for each pod.")


class PresetOptionsV1Alpha1(Block):
    """How a preset's image is had."""

    image: ImageText | None = Field(None, description="Image of the user's own.")
    image_pull_secrets: list[ObjectName] = Field([], description="Secrets to pull it with.")


class PresetOptions(PresetOptionsV1Alpha1):
    """How a preset's image and weights are had."""

    model_access_secret: ObjectName | None = Field(
        None, description="Secret with a Hub token under the key `HF_TOKEN`.", examples=["hf-token"]
    )


class PresetV1Alpha1(Block):
    """A model by its name."""

    name: Annotated[str, Field(min_length=1, max_length=200), NAME] = Field(
        description="Name of a preset, or repository on the Hugging Face Hub.", examples=["phi-4"]
    )
    access_mode: Literal["public", "private"] = Field(
        "public", description="Whether the image is KAITO's, or one of the user's own."
    )
    preset_options: PresetOptionsV1Alpha1 = Field(
        default_factory=dict, validate_default=True, description="How its image is had."
    )


class Preset(PresetV1Alpha1):
    """A model by its name, and the token for it."""

    preset_options: PresetOptions = Field(
        default_factory=dict, validate_default=True, description="How its image and weights are had."
    )


class DataSource(Choice):
    """Files from somewhere."""

    exactly_one: ClassVar[tuple[str, ...]] = ("urls", "image", "volumeSource")

    name: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        None, description="Name; of an adapter that by which requests ask for it."
    )
    urls: Annotated[list[Text], Field(min_length=1)] | None = Field(None, description="Addresses of files.")
    image: ImageText | None = Field(None, description="Image that holds the files.")
    image_pull_secrets: list[ObjectName] = Field([], description="Secrets to pull it with.")
    volume_source: Object | None = Field(None, description="A volume, as in a pod.")


class DataDestination(Choice):
    """Where results go."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "volumeSource")

    image: ImageText | None = Field(None, description="Image that is pushed with the results.")
    image_push_secret: ObjectName | None = Field(None, description="Secret to push it with.")
    volume_source: Object | None = Field(None, description="A volume, as in a pod.")


class AdapterV1(Block):
    """A LoRA adapter."""

    source: DataSource = Field(description="Where it comes from: an image or a volume.")
    strength: Annotated[str, Field(pattern=r"^(0(\.[0-9]+)?|1(\.0+)?)$", max_length=20)] | None = Field(
        None, description="How far it changes the model, from 0 to 1.", examples=["0.5"]
    )


class InferenceV1Alpha1(Choice):
    """What serves: a model by its name, or a pod of the user's own."""

    exactly_one: ClassVar[tuple[str, ...]] = ("preset", "template")

    preset: PresetV1Alpha1 | None = Field(None, description="A model by its name.")
    template: Object | None = Field(None, description="A pod template.")
    config: ObjectName | None = Field(
        None, description="ConfigMap with the engine's flags under the key `inference_config.yaml`."
    )
    adapters: Annotated[list[AdapterV1], Field(max_length=10)] = Field([], description="LoRA adapters.")


class Inference(InferenceV1Alpha1):
    """What serves: a model by its name, or a pod of the user's own."""

    preset: Preset | None = Field(None, description="A model by its name.")


class TuningV1Alpha1(Block):
    """A fine-tuning run."""

    preset: PresetV1Alpha1 | None = Field(None, description="The model to tune.")
    method: Annotated[str, Field(min_length=1, max_length=20)] | None = Field(
        None, description="`lora` or `qlora`.", examples=["qlora"]
    )
    config: ObjectName | None = Field(
        None, description="ConfigMap with the training's settings under the key `training_config.yaml`."
    )
    input: DataSource = Field(description="Where the data comes from.")
    output: DataDestination = Field(description="Where the adapter goes.")


class Tuning(TuningV1Alpha1):
    """A fine-tuning run."""

    preset: Preset | None = Field(None, description="The model to tune.")


class Foreign(Block):
    """What every resource of KAITO has."""

    metadata: ForeignMetadata = Field(description="Who it is.")
    status: Status | None = Field(None, description="Written by the operator; left out.")
