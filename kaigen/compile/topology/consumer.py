"""The pods that read weights."""

from __future__ import annotations

from kaigen.compile.builders.mounts import Readers
from kaigen.compile.engines.base import Engine
from kaigen.kinds.blocks import Transfer
from kaigen.kinds.compat import Folders


class Consumer(Readers, frozen=True, kw_only=True):
    """The pods of a Topology, which read weights.

    Attributes:
        engine: the engine that loads the weights.
        transfer: settings of kaigen's downloader.
        folders: folders in the engine's container.
    """

    engine: Engine
    transfer: Transfer
    folders: Folders

    @property
    def own_downloader(self) -> Transfer | None:
        """Settings of the downloader if the spec names an image of it, which waiting containers use too."""
        return self.transfer if self.transfer.image is not None else None
