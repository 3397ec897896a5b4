"""The kinds with files: `Model` and `Dataset`."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.dialects.substratus.blocks import ContainerSpec, Foreign, Ref, Run
from kaigen.kinds.base import AppName, LabelName
from kaigen.kinds.block import Block


class DatasetRef(Block):
    """A Dataset, or none."""

    name: Annotated[AppName | None, Meta(description="Its name.")] = None
    namespace: Annotated[
        LabelName | None, Meta(description="Its namespace. Pods mount files of their own namespace only.")
    ] = None


class Trainer(Run):
    """The training of a Model, in the shape of the design."""

    base_model: Annotated[Ref | None, Meta(description="Model to start from. Without it, a new one is trained.")] = None
    source_model: Annotated[
        Ref | None, Meta(description="Another name of `baseModel`, in the manifest after a notebook.")
    ] = None
    dataset: Annotated[DatasetRef | None, Meta(description="Dataset to train on; `{}` for none.")] = None


class DatasetSpec(ContainerSpec):
    """The container that writes the files of a Dataset."""

    loader: Annotated[Run | None, Meta(description="The run of the container, in the shape of the design.")] = None


class ModelSpec(DatasetSpec):
    """The container that writes the files of a Model, and what it reads."""

    trainer: Annotated[Trainer | None, Meta(description="The training of the Model, in the shape of the design.")] = (
        None
    )
    model: Annotated[Ref | None, Meta(description="Model to start from.")] = None
    dataset: Annotated[Ref | None, Meta(description="Dataset to train on.")] = None
    base_model: Annotated[Ref | None, Meta(description="`model` in releases before 0.10.")] = None
    training_dataset: Annotated[Ref | None, Meta(description="`dataset` in releases before 0.10.")] = None


class Model(Foreign):
    """Substratus' `Model`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")] = field(default_factory=ModelSpec)


class Dataset(Foreign):
    """Substratus' `Dataset`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Dataset"], Meta(description="Kind of the document.")]
    spec: Annotated[DatasetSpec, Meta(description="Desired state.")] = field(default_factory=DatasetSpec)


Files = Model | Dataset
"""The kinds whose files other resources mount."""
