"""What an engine is given to start in one pod: weights, parallelism, folders, the pod's position in its group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from kaigen.catalog.engines import Version
from kaigen.compile.builders.mounts import Mounted
from kaigen.compile.expressions import Expr, Tree
from kaigen.core.json_types import Json
from kaigen.core.text import plural
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.compat import Folders
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.ring import RingPlan

Role = Literal["single", "leader", "worker"]


class Parallelism(Struct, frozen=True):
    """How one replica uses GPUs and nodes.

    Attributes:
        nodes: number of pods, each on a node of its own.
        gpus: GPUs of each pod; 0 for none.
        tensor: GPUs that share each layer.
        pipeline: number of pipeline stages.
        data: copies of the model inside one engine.
        ray: whether the pods of several nodes find each other by Ray.
    """

    nodes: int = 1
    gpus: int = 0
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    ray: bool = False

    @property
    def summary(self) -> str:
        """The parallelism in words."""
        degrees = [f"tensor parallel {self.tensor}"]
        degrees += [f"pipeline parallel {self.pipeline}"] if self.pipeline > 1 else []
        degrees += [f"data parallel {self.data}"] if self.data > 1 else []
        hardware = (
            f"{self.nodes} nodes with {plural(self.gpus, 'GPU')} each" if self.nodes > 1 else plural(self.gpus, "GPU")
        )
        return f"{', '.join(degrees)} over {hardware}"


class Weights(Struct, frozen=True):
    """The weights of a model as an engine loads them.

    Attributes:
        reference: folder or repository that the engine loads; empty for none.
        mounted: how their files reach the engine's container; nothing where the engine pulls them.
        pulled: the repository that the engine pulls them from; None for files that are there when it starts.
        env: variables that the engine needs for them.
        source: where the bytes come from, which decides how long loading takes: `hub`, `bucket`, `volume` or `image`.
        files: names of files in the folder, by the names that the engine looks for; empty for these names.
        size: bytes; None when unknown.
        revision: commit; empty when unknown.
        stored: source of the files that a Model downloads to the folder; None for other folders.
    """

    reference: str = ""
    mounted: Mounted = Mounted()
    pulled: PulledModel | None = None
    env: Sequence[Tree] = ()
    source: str = "volume"
    files: Mapping[str, str] = field(default_factory=dict)
    size: int | None = None
    revision: str = ""
    stored: FileSource | None = None

    @property
    def offline(self) -> bool:
        """Whether the engine can load them without the Hub."""
        return self.pulled is None


class Member(Struct, frozen=True):
    """One pod's position in the group of pods that serve one replica.

    Attributes:
        role: `single` for a replica of one pod.
        rank: number of the pod, 0 for the leader.
        leader: host name of the leader.
        env: variables that the rank, or the names of the peers, are read from.
        peers: host names of its workers, for the leader of a ring.
    """

    role: Role = "single"
    rank: Tree = "0"
    leader: Tree = ""
    env: tuple[Tree, ...] = ()
    peers: tuple[str | Expr, ...] = ()

    @property
    def serves(self) -> bool:
        """Whether requests reach this pod."""
        return self.role != "worker"


class Launch(Struct, frozen=True):
    """Everything an engine's command line and environment depend on.

    Attributes:
        spec: the spec.
        served_names: names of the model in requests.
        weights: weights of the model.
        adapters: how each LoRA adapter of the spec reaches the engine's container.
        parallelism: how one replica uses GPUs and nodes.
        preset_flags: flags that the model needs according to the catalogue or the plan.
        folders: folders in the engine's container.
        member: the pod's position in its group.
        version: version of the engine; None when it is unknown.
        startup: longest time until a pod is ready, in seconds.
        startup_attempts: the same as a number of startup probes.
        images: kaigen's own images by name.
        cpus: whole CPUs of the pod's engine, at least 1.
        room: memory of the pod's engine in addition to its share of the weights, in bytes; None when it is unknown.
        ring: the ring that the pod belongs to; None for other engines.
        middleware: class, in a program of kaigen's, that answers further routes; empty for none.
        most_context: tokens that the model supports; None if that is unknown.
    """

    spec: TopologySpec
    served_names: Sequence[str]
    weights: Weights
    adapters: Sequence[Mounted]
    parallelism: Parallelism
    preset_flags: Mapping[str, Json]
    folders: Folders
    member: Member
    version: Version | None
    startup: Expr
    startup_attempts: Tree
    images: Mapping[str, str]
    cpus: int
    room: int | None
    ring: RingPlan | None
    middleware: str = ""
    most_context: int | None = None
