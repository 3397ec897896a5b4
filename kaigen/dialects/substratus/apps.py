"""The kinds that run: `Server`, `ModelServer` and `Notebook`."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.dialects.substratus.blocks import ContainerSpec, Foreign, Ref
from kaigen.kinds.base import AppName
from kaigen.kinds.block import Block


class Quantization(Block):
    """Type of the weights in the memory of the server, in the shape of the design."""

    bits: Annotated[int, Meta(ge=1, le=64, description="Bits of a weight: 4, 8 or 16.")] = 16


class ServerSpec(ContainerSpec):
    """The container that serves a Model."""

    model: Annotated[
        AppName | Ref | None, Meta(description="Model to serve: a block, or its name in the shape of the design.")
    ] = None
    quantization: Annotated[Quantization | None, Meta(description="Quantization, in the shape of the design.")] = None


class Server(Foreign):
    """Substratus' `Server`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Server"], Meta(description="Kind of the document.")]
    spec: Annotated[ServerSpec, Meta(description="Desired state.")] = field(default_factory=ServerSpec)


class ModelServer(Foreign):
    """Substratus' `ModelServer`, the name of `Server` in the design."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["ModelServer"], Meta(description="Kind of the document.")]
    spec: Annotated[ServerSpec, Meta(description="Desired state.")] = field(default_factory=ServerSpec)


class NotebookSpec(ContainerSpec):
    """The container of a notebook, and what it reads."""

    model: Annotated[Ref | None, Meta(description="Model to read.")] = None
    dataset: Annotated[Ref | None, Meta(description="Dataset to read.")] = None
    source_model: Annotated[AppName | Ref | None, Meta(description="Model to read, in the shape of the design.")] = None
    base_model: Annotated[Ref | None, Meta(description="`model` in releases before 0.10.")] = None
    training_dataset: Annotated[Ref | None, Meta(description="`dataset` in releases before 0.10.")] = None
    suspend: Annotated[bool, Meta(description="Run no pod.")] = False


class Notebook(Foreign):
    """Substratus' `Notebook`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Notebook"], Meta(description="Kind of the document.")]
    spec: Annotated[NotebookSpec, Meta(description="Desired state.")] = field(default_factory=NotebookSpec)
