"""The pods that read weights."""

from __future__ import annotations

from msgspec import Struct

from kaigen.compile.builders.frame import Frame
from kaigen.compile.context import Context
from kaigen.compile.engines.base import Engine
from kaigen.kinds.blocks import Transfer
from kaigen.kinds.compat import Folders


class Consumer(Struct, frozen=True):
    """The pods that read weights.

    Attributes:
        context: what they are compiled for.
        frame: names and labels of the app's objects.
        namespace: namespace of the app.
        engine: the engine that loads the weights.
        nodes: pods of one replica.
        replicas: greatest number of replicas.
        has_gpu: whether the pods have GPUs.
        transfer: settings of kaigen's downloader.
        folders: folders in the engine's container.
    """

    context: Context
    frame: Frame
    namespace: str
    engine: Engine
    nodes: int
    replicas: int
    has_gpu: bool
    transfer: Transfer
    folders: Folders

    @property
    def own_downloader(self) -> Transfer | None:
        """Settings of the downloader if the spec names an image of it, which waiting containers use too."""
        return self.transfer if self.transfer.image is not None else None
