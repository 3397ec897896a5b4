"""The block `source.loader`: a container that writes the files of a Model or a Dataset."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from kaigen.kinds.base import AppName, Duration
from kaigen.kinds.block import Choice
from kaigen.kinds.blocks import Params, Placement, Resources, Security, Volume
from kaigen.kinds.pod import Args, BuiltImage, Command, GivenImage, PodFields, Variables

CONTENT = "/content"
"""Folder of everything that the container reads and writes."""

PARAMS = f"{CONTENT}/params.json"
DATA = f"{CONTENT}/data"
MODEL = f"{CONTENT}/model"
ARTIFACTS = f"{CONTENT}/artifacts"


class Loader(Choice, PodFields):
    """A container that writes files to `/content/artifacts`. They are stored when it has succeeded."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "build")

    image: GivenImage = None
    build: BuiltImage = None
    command: Command = None
    args: Args = None
    env: Variables = field(default_factory=dict)
    params: Annotated[
        Params, Meta(description=f"Parameters of the container, as `PARAM_*` variables and in `{PARAMS}`.")
    ] = field(default_factory=dict)
    model: Annotated[
        AppName | None, Meta(description=f"A Model that the container reads, in `{MODEL}`.", examples=["qwen"])
    ] = None
    dataset: Annotated[
        AppName | None, Meta(description=f"A Dataset that the container reads, in `{DATA}`.", examples=["alpaca"])
    ] = None
    volume: Annotated[
        Volume | None,
        Meta(
            description=f"The volume of `{ARTIFACTS}`, which has the files until they are stored. Default: one like "
            "`store.volume`. Required with `store.bucket` and with `size: auto`."
        ),
    ] = None
    resources: Annotated[Resources, Meta(description="Resources of the container.")] = field(default_factory=Resources)
    placement: Annotated[
        Placement | None, Meta(description="Where the container runs. Default: as the downloader.")
    ] = None
    security: Annotated[
        Security | None, Meta(description="Security settings of the pod. Default: as the downloader's.")
    ] = None
    retries: Annotated[int, Meta(ge=0, le=100, description="Number of retries of a failed pod.")] = 2
    deadline: Annotated[Duration | None, Meta(description="Time limit of the container, with retries.")] = None
