"""The state of apps in a cluster, as data, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from kaigen.cluster.states import State, StateName
from kaigen.kubernetes.kind_table import types
from kaigen.kubernetes.manifest import Identity
from kaigen.status.facts import DATA_ONLY, HIDDEN

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
        """The worst state of its objects, that of a workload first; `missing` only when none is in the cluster."""
        states = list(self.objects.values())
        missing = sum(state.name == "missing" for state in states)
        if missing and missing == len(states):
            return State("missing", "not in the cluster")
        ordered = sorted(self.objects.items(), key=lambda item: item[0].type not in _WORKLOADS)
        worst = max((state for _, state in ordered), key=_severity, default=State("ready"))
        if worst.name == "missing":
            return State("progressing", f"{missing} of {len(states)} objects are not in the cluster")
        return worst

    @property
    def outdated(self) -> bool:
        """Whether its objects are ready, but not what the syncer reads."""
        return self.state.name == "ready" and self.sync is not None and self.sync.name in ("failed", "out of sync")

    @property
    def ready(self) -> bool:
        """Whether everything is ready, and what is in the cluster is what the syncer reads."""
        return (self.state.name == "ready" or self.state.wanted) and (self.sync is None or self.sync.name == "synced")


def _severity(state: State) -> float:
    """Return how bad a state is; one that is wanted only stands out from those that are ready."""
    return 0.5 if state.wanted else _SEVERITY[state.name]


_WORKLOADS = types("run", "rolling", "serving")
"""Types of objects that say more of why an app is not ready than others do, such as volumes."""

_SEVERITY: Mapping[StateName, int] = {
    "ready": 0,
    "unknown": 1,
    "missing": 2,
    "progressing": 3,
    "suspended": 4,
    "failed": 5,
}


OUTDATED = "outdated"
"""What the table shows for an app whose objects are ready, as they were before a sync that failed."""
_SHORT_REVISION = 8


def status_rows(apps: Sequence[AppStatus], *, wide: bool = False) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table of apps, the header first.

    Args:
        apps: the apps.
        wide: show objects that are not ready, earlier runs and syncers, too.
    """
    several = len({app.environment for app in apps}) > 1
    environment = ("ENV",) if several else ()
    more = ("SYNCER",) if wide else ()
    yield (*environment, "NAMESPACE", "APP", "KIND", "STATUS", "RUN", "SYNC", *more, "FACTS", "MESSAGE")
    for app in apps:
        runs: list[Run | None] = [run for run in app.runs if run.current or wide]
        for index, run in enumerate(runs or [None]):
            head = ((app.environment,) if several else ()) + (app.namespace, app.name, app.kind or "-")
            state = app.state if index == 0 else run.state if run else app.state
            name = OUTDATED if index == 0 and app.outdated else state.name
            sync = (_sync(app.sync) if index == 0 else "-",)
            syncer = ((app.sync.syncer if app.sync and index == 0 else "-"),) if wide else ()
            known = {key: value for key, value in app.facts.items() if key not in (DATA_ONLY if wide else HIDDEN)}
            facts = {**(known if index == 0 else {}), **_short(run, wide=wide)}
            shown = ", ".join(f"{key} {value}" for key, value in facts.items()) or "-"
            yield (*head, name, run.name if run else "-", *sync, *syncer, shown, _message(app, state))
        if wide:
            yield from _objects(app, several=several)


def _objects(app: AppStatus, *, several: bool) -> Iterator[tuple[str, ...]]:
    """Return a row for each object that is not ready."""
    for identity, state in app.objects.items():
        if state.name != "ready" and len(app.objects) > 1:
            head = ((app.environment,) if several else ()) + (app.namespace, app.name)
            yield (*head, _title(identity), state.name, "-", "-", "-", "-", state.message or "-")


def _message(app: AppStatus, state: State) -> str:
    message = state.message or (app.sync.message if app.sync else "")
    return " ".join(message.split()) or "-"


def _sync(sync: Sync | None) -> str:
    if sync is None:
        return "-"
    return f"{sync.name} {_short_revision(sync.revision)}" if sync.revision else sync.name


def _short_revision(revision: str) -> str:
    """Return a revision with its digest shortened: `main@sha1:0123456789...` is `main@01234567`."""
    name, separator, digest = revision.rpartition("@")
    digest = digest.rpartition(":")[2]
    if len(digest) >= 2 * _SHORT_REVISION and all(letter in "0123456789abcdef" for letter in digest):
        digest = digest[:_SHORT_REVISION]
    return f"{name}{separator}{digest}"


def _short(run: Run | None, *, wide: bool) -> dict[str, str]:
    """Return the facts of a run; without times in a narrow table."""
    hidden = () if wide else ("started", "ended")
    return {key: value for key, value in run.facts.items() if key not in hidden} if run else {}


def _title(identity: Identity) -> str:
    return f"{identity.kind}/{identity.name}"


def render_json(apps: Sequence[AppStatus]) -> str:
    """Return the state of apps as a JSON list."""
    return json.dumps([app_data(app) for app in apps], indent=2, ensure_ascii=False) + "\n"


def app_data(app: AppStatus) -> dict[str, Any]:
    """Return the state of an app as plain data."""
    return {
        **({"environment": app.environment} if app.environment else {}),
        "namespace": app.namespace,
        "name": app.name,
        "kind": app.kind,
        **_state(app.state),
        "ready": app.ready,
        "sync": _described_sync(app.sync),
        "facts": dict(app.facts),
        "runs": [_run(run) for run in app.runs],
        "objects": [
            {"kind": identity.kind, "namespace": identity.namespace, "name": identity.name, **_state(state)}
            for identity, state in app.objects.items()
        ],
    }


def _state(state: State) -> dict[str, str]:
    return {"status": state.name, **({"message": state.message} if state.message else {})}


def _run(run: Run) -> dict[str, Any]:
    facts: Mapping[str, str] = run.facts
    return {"name": run.name, **_state(run.state), "current": run.current, "facts": dict(facts)}


def _described_sync(sync: Sync | None) -> dict[str, str] | None:
    if sync is None:
        return None
    optional = {"revision": sync.revision, "message": sync.message}
    return {"syncer": sync.syncer, "status": sync.name, **{key: value for key, value in optional.items() if value}}
