"""Everything that the spec of a Queue leaves open, decided."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kaigen.catalog.engines import parse_version
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.queueing import node_label
from kaigen.compile.context import Context
from kaigen.compile.finish import frame_of
from kaigen.compile.problems import Problems
from kaigen.compile.queue.quota import FlavorQuota, flavor_quota
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import Metadata
from kaigen.kinds.queue import Queue, QueueSpec, Quota
from kaigen.kubernetes.queues import NEWEST_KUEUE, Version

FLAVORS = "KG0477"
"""The code of flavors that do not match."""

_BETA_2: Version = (0, 15)
"""The first version with `kueue.x-k8s.io/v1beta2` that kaigen has the CustomResourceDefinitions of."""


class QueueResolution(Struct, frozen=True):
    """Everything that decides the objects of a Queue.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        frame: names and labels of its objects.
        version: of Kueue.
        owner: name of the Queue that makes the flavors and the Topology.
        flavors: the quota of each flavor; empty for a LocalQueue of another ClusterQueue.
        levels: node labels of the levels of the network, the widest first; empty without a topology.
        namespaces: whose pods may use the quota.
        local: whether the app has the LocalQueue of its own namespace.
    """

    metadata: Metadata
    spec: QueueSpec
    context: Context
    frame: Frame
    version: Version
    owner: str
    flavors: tuple[FlavorQuota, ...]
    levels: tuple[str, ...]
    namespaces: tuple[str, ...]
    local: bool

    @property
    def api_version(self) -> str:
        """API version of Kueue's objects."""
        return f"kueue.x-k8s.io/{'v1beta2' if self.version >= _BETA_2 else 'v1beta1'}"

    def flavor_name(self, flavor: FlavorQuota) -> str:
        """Return the name of a ResourceFlavor, which belongs to the whole cluster."""
        return f"{self.owner}-{flavor.suffix}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that have a quota, devices first."""
        found = dict.fromkeys(name for flavor in self.flavors for name in flavor.amounts)
        return tuple(sorted(found, key=lambda name: ("/" not in name, name)))


def resolve_queue(queue: Queue, context: Context, problems: Problems, naming: None) -> QueueResolution:
    """Decide what a Queue leaves open.

    Args:
        queue: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what cannot be decided.
        naming: there are no names of other systems.
    """
    spec, metadata = queue.spec, queue.metadata
    home = metadata.namespace or context.config.namespace
    cluster = context.config.cluster
    levels = shared_spec(spec, home, context).topology or ()
    return QueueResolution(
        metadata=metadata,
        spec=spec,
        context=context,
        frame=frame_of(metadata, context),
        version=parse_version(cluster.kueue) if cluster is not None and cluster.kueue else NEWEST_KUEUE,
        owner=spec.flavors_of or metadata.name,
        flavors=flavors_of(spec, context, problems),
        levels=tuple(label for each in levels if (label := node_label(each, context.profile))),
        namespaces=tuple(dict.fromkeys(spec.namespaces or [home])),
        local=spec.quota is None or spec.namespaces is None or home in spec.namespaces,
    )


def flavors_of(spec: QueueSpec, context: Context, problems: Problems) -> tuple[FlavorQuota, ...]:
    """Return the quota of each entry that can be resolved, and report the others."""
    found: Sequence[FlavorQuota | None] = [
        problems.attempt(lambda entry=entry, path=path: flavor_quota(entry, context, path), None)  # type: ignore[misc]
        for path, entry in _entries(spec)
    ]
    first: dict[str, FlavorQuota] = {}
    for flavor in found:
        if flavor is not None and first.setdefault(flavor.suffix, flavor) is not flavor:
            message = f"another entry has the same nodes, `{flavor.suffix}`"
            problems.error(FLAVORS, message, flavor.path, "make one entry of both")
    return tuple(first.values())


def _entries(spec: QueueSpec) -> list[tuple[FieldPath, Quota]]:
    return [(("spec", "quota", number), entry) for number, entry in enumerate(spec.quota or ())]


def find_owner(name: str, namespace: str, context: Context) -> Queue | None:
    """Return the Queue of a name in a namespace, or else in another one: what it makes belongs to the whole cluster."""
    found = context.specs.find(Queue, namespace, name)
    for place in [] if found else context.specs.namespaces("Queue", name):
        found = found or context.specs.find(Queue, place, name)
    return found


def shared_spec(spec: QueueSpec, namespace: str, context: Context) -> QueueSpec:
    """Return the spec of the Queue that makes the flavors: another one, or this one."""
    other = find_owner(spec.flavors_of, namespace, context) if spec.flavors_of else None
    return other.spec if other is not None else spec
