"""Koldun's Dllama, Root and Worker, as of commit edc6442, or of later ones where a description says so."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.dialects.koldun.kinds import ApiVersion, CacheSpec, Foreign, ImageText, Int32, RuntimeNats, Text
from kaigen.kinds.base import LabelName, Labels, ObjectName
from kaigen.kinds.block import Block


class ModelRef(Block):
    """A Model."""

    kind: Annotated[str, Meta(min_length=1, max_length=63, description="`Model`.")]
    name: Annotated[ObjectName, Meta(description="Name of the Model.", examples=["qwen3"])]
    api_group: Annotated[Text | None, Meta(description="Group of the Model: `koldun.gorizond.io`, or empty.")] = None
    namespace: Annotated[
        LabelName | None,
        Meta(description="Namespace of the Model. Default: that of the resource. Another one requires a bucket."),
    ] = None


class DllamaSpec(Block):
    """A model and the ring that serves it."""

    model_ref: Annotated[ModelRef, Meta(description="The Model.")]
    replica_power: Annotated[
        Int32, Meta(description="Number of workers: 2^p - 1 for p, so that the ring has 2^p pods.", examples=[2])
    ]
    root_image: Annotated[ImageText, Meta(description="Image of the root.")]
    worker_image: Annotated[ImageText, Meta(description="Image of the workers.")]
    nats: Annotated[
        RuntimeNats | None, Meta(description="The queue of the operator's pods, a field of later versions; ignored.")
    ] = None


class Dllama(Foreign):
    """Koldun's `Dllama`."""

    api_version: ApiVersion
    kind: Annotated[Literal["Dllama"], Meta(description="Kind of the document.")]
    spec: Annotated[DllamaSpec, Meta(description="Desired state.")]


class RootSpec(Block):
    """The root of a ring."""

    model_ref: Annotated[
        ObjectName,
        Meta(description="PersistentVolumeClaim with the converted files, `NAME-s3-output-pvc` for a Model."),
    ]
    image: Annotated[ImageText, Meta(description="Image of the root.")]
    args: Annotated[list[Text], Meta(description="Options of `dllama-api`.")] = field(default_factory=list)
    cache_spec: Annotated[CacheSpec | None, Meta(description="A bucket; ignored.")] = None
    worker_selector: Annotated[
        Labels, Meta(description="Labels of the workers, which the operator does not read; ignored.")
    ] = field(default_factory=dict)


class Root(Foreign):
    """Koldun's `Root`."""

    api_version: ApiVersion
    kind: Annotated[Literal["Root"], Meta(description="Kind of the document.")]
    spec: Annotated[RootSpec, Meta(description="Desired state.")]


class WorkerSpec(Block):
    """A worker of a ring."""

    model_ref: Annotated[
        ObjectName,
        Meta(description="PersistentVolumeClaim with the converted files, which a worker does not need; ignored."),
    ]
    image: Annotated[ImageText, Meta(description="Image of the worker.")]
    root_ref: Annotated[ObjectName, Meta(description="Name of the Root.")]
    slot: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Position in the ring, from 0 without gaps.")]
    args: Annotated[list[Text], Meta(description="Options of `dllama worker`.")] = field(default_factory=list)
    cache_spec: Annotated[CacheSpec | None, Meta(description="A bucket; ignored.")] = None
    nats: Annotated[
        RuntimeNats | None, Meta(description="The queue of the operator's pods, a field of later versions; ignored.")
    ] = None


class Worker(Foreign):
    """Koldun's `Worker`."""

    api_version: ApiVersion
    kind: Annotated[Literal["Worker"], Meta(description="Kind of the document.")]
    spec: Annotated[WorkerSpec, Meta(description="Desired state.")]
