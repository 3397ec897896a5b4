"""What an environment requires of a cluster, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from kaigen.kubernetes.manifest import Object

Status = Literal["found", "missing", "unknown"]


class Finding(Struct, frozen=True):
    """What a cluster has of a requirement.

    Attributes:
        status: `unknown` when the user may not read it.
        detail: more about it; may be empty.
    """

    status: Status
    detail: str = ""


class Use(Struct, frozen=True, order=True):
    """A place that requires something.

    Attributes:
        app: `NAMESPACE/NAME`; empty for a requirement of kaigen.yaml.
        place: file and line; empty where no file contains it.
    """

    app: str
    place: str


class Requirement(Struct, frozen=True):
    """Something that the cluster must have, and that the repository does not create.

    Attributes:
        kind: `API`, `resource`, `Kubernetes`, or the kind of an object.
        name: of the object or resource; for an API, its group and version, and the kind.
        namespace: of the object; empty for what the cluster has once.
        type: kind and group of the object; empty for all others.
        supplier: what usually provides it; empty where kaigen does not know.
        uses: the places that require it.
    """

    kind: str
    name: str
    namespace: str = ""
    type: str = ""
    supplier: str = ""
    uses: tuple[Use, ...] = ()

    @property
    def title(self) -> str:
        """The name, after the namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Total(Struct, frozen=True):
    """What the apps of a namespace request of a resource when all of them run, with the most replicas.

    Attributes:
        namespace: the namespace.
        resource: `cpu`, `memory`, `storage`, or a resource of nodes.
        amount: in billionths of the unit.
        uses: the apps, with their specs.
    """

    namespace: str
    resource: str
    amount: int
    uses: tuple[Use, ...] = ()


class Pod(Struct, frozen=True):
    """A pod that an app runs, which needs a node.

    Attributes:
        use: the app, with its spec.
        owner: kind and name of the object that makes it.
        spec: its spec, which chooses nodes.
        requests: in billionths of the unit.
    """

    use: Use
    owner: str
    spec: Object
    requests: Mapping[str, int]


class Requirements(Struct, frozen=True):
    """Everything that an environment requires.

    Attributes:
        environment: its name; empty for none.
        items: sorted by kind and name.
        totals: by namespace and resource.
        pods: of each object with a pod template.
        pools: NodePools of Karpenter that the repository makes.
    """

    environment: str
    items: tuple[Requirement, ...]
    totals: tuple[Total, ...]
    pods: tuple[Pod, ...] = ()
    pools: tuple[Object, ...] = field(default_factory=tuple)
