"""The block `store`: where weights are stored."""

from typing import Annotated, ClassVar

from msgspec import Meta

from kaigen.kinds.base import QuantityOrAuto
from kaigen.kinds.block import Choice
from kaigen.kinds.blocks import Volume
from kaigen.kinds.bucket import Bucket


class ModelVolume(Volume):
    """The volume with the weights, in a folder for each revision."""

    size: Annotated[
        QuantityOrAuto,
        Meta(
            description="Size to request, in bytes with a unit. `auto`: for the files in kaigen.lock, or the weights "
            "in `facts` or the catalogue, once for each revision that stays, and a tenth and 2 GiB more.",
            examples=["50Gi", "auto"],
        ),
    ]
    retain: Annotated[
        bool,
        Meta(
            description="Keep the volume when the spec is deleted. Default: false, since weights can be "
            "downloaded again."
        ),
    ] = False


class Store(Choice):
    """Where weights are stored."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume", "bucket")

    volume: Annotated[ModelVolume | None, Meta(description="A volume of the cluster.")] = None
    bucket: Annotated[Bucket | None, Meta(description="Object storage that pods mount read-only.")] = None
    keep_revisions: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="Number of earlier revisions that stay stored next to the current one, for a rollback without "
            "a download. Older ones are removed before the next download, unless a pod reads them.",
        ),
    ] = 1


class NoStore(Store):
    """The store of weights that are stored already."""

    def __post_init__(self) -> None:
        """Allow neither a volume nor a bucket."""
