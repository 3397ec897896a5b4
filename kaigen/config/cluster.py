"""The block `cluster` of kaigen.yaml: the versions of what runs in the clusters."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import text
from kaigen.kinds.block import Block

ControllerVersion = Annotated[str, text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]


class ClusterVersions(Block):
    """Versions of controllers. Objects that use what a version does not have are errors."""

    kueue: Annotated[
        ControllerVersion | None,
        Meta(
            description="Version of Kueue. It also decides what `kaigen diff` says of changes of objects in a queue, "
            "by default as the newest that kaigen knows.",
            examples=["0.19.2"],
        ),
    ] = None
    keda: Annotated[ControllerVersion | None, Meta(description="Version of KEDA.", examples=["2.21.0"])] = None
    lws: Annotated[ControllerVersion | None, Meta(description="Version of LeaderWorkerSet.", examples=["0.9.0"])] = None
    jobset: Annotated[ControllerVersion | None, Meta(description="Version of JobSet.", examples=["0.12.0"])] = None
    karpenter: Annotated[ControllerVersion | None, Meta(description="Version of Karpenter.", examples=["1.15.0"])] = (
        None
    )
    argocd: Annotated[ControllerVersion | None, Meta(description="Version of Argo CD.", examples=["3.6.1"])] = None
    flux: Annotated[ControllerVersion | None, Meta(description="Version of Flux.", examples=["2.9.5"])] = None

    @property
    def versions(self) -> dict[str, str]:
        """The versions that are set, by the name of the controller."""
        found = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: version for name, version in found if version}
