"""The state of apps in a cluster, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from kaigen.cluster.states import State, StateName
from kaigen.kubernetes.manifest import Identity

SyncName = Literal["synced", "out of sync", "progressing", "failed", "suspended", "unknown"]


class Sync(Struct, frozen=True):
    """What a syncer reports of an app.

    Attributes:
        syncer: kind, namespace and name of its object, as in `Application argocd/team-app`.
        name: state of the sync.
        revision: the revision that it synced last; may be empty.
        message: why it is not synced; may be empty.
    """

    syncer: str
    name: SyncName
    revision: str = ""
    message: str = ""


class Run(Struct, frozen=True):
    """A run of an app: one Job or JobSet.

    Attributes:
        name: of the object.
        state: its state.
        current: whether the specs of the repository make this run; others are of earlier versions.
        facts: start, end and duration, and what its containers report.
    """

    name: str
    state: State
    current: bool
    facts: Mapping[str, str] = field(default_factory=dict)


class AppStatus(Struct, frozen=True):
    """The state of an app.

    Attributes:
        environment: name of the environment; empty for none.
        namespace: of the app.
        name: of the app.
        kind: of the spec.
        objects: state of each object that the repository makes.
        runs: its runs, the newest first.
        sync: what its syncer reports; None without one.
        facts: what its objects report, such as the size of volumes and the number of replicas.
    """

    environment: str
    namespace: str
    name: str
    kind: str
    objects: Mapping[Identity, State]
    runs: tuple[Run, ...] = ()
    sync: Sync | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The worst state of its objects; `missing` only when none of them is in the cluster."""
        states = list(self.objects.values())
        missing = sum(state.name == "missing" for state in states)
        if missing and missing == len(states):
            return State("missing", "not in the cluster")
        worst = max(states, key=lambda state: _SEVERITY[state.name], default=State("ready"))
        if worst.name == "missing":
            return State("progressing", f"{missing} of {len(states)} objects are not in the cluster")
        return worst

    @property
    def ready(self) -> bool:
        """Whether everything is ready, and what is in the cluster is what the syncer reads."""
        return self.state.name == "ready" and (self.sync is None or self.sync.name == "synced")


_SEVERITY: Mapping[StateName, int] = {
    "ready": 0,
    "unknown": 1,
    "missing": 2,
    "progressing": 3,
    "suspended": 4,
    "failed": 5,
}
