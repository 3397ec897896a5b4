"""Collects the state of the apps of an environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.cluster.clues import NOTHING, Clues, last_event
from kaigen.cluster.errors import Forbidden
from kaigen.cluster.runs import ended_containers, failure
from kaigen.cluster.states import MISSING, State, has_state, job_state, live_state
from kaigen.cluster.waits import of_event, retries, waiting
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Identity, Object, group_of, identity_of, mapping, text, type_of
from kaigen.kubernetes.runs import end_of, time_of
from kaigen.kubernetes.schemas import is_cluster_type
from kaigen.status.app_status import AppStatus, Run
from kaigen.status.batch import batch_progress
from kaigen.status.facts import current_facts, endpoint_facts, recorded_facts, records_facts, workspace_facts
from kaigen.status.schedules import JOB, SCHEDULE, before_first_run, is_started_by, label, with_newest_runs
from kaigen.status.syncers import find_sync, read_syncers

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.pipeline.result import Compilation, Compiled


_MOST_TEXT = 200
"""Most characters of a value that a container reports."""


def object_facts(objects: Iterable[Object]) -> dict[str, str]:
    """Return what objects report: the size of volumes, the last run of a schedule, and how many replicas are ready."""
    facts: dict[str, str] = {}
    for obj in objects:
        status = mapping(obj.get("status"))
        capacity = text(mapping(status.get("capacity")).get("storage"))
        if capacity:
            facts["storage"] = f"{facts['storage']}+{capacity}" if "storage" in facts else capacity
        if scheduled := text(status.get("lastScheduleTime")):
            facts["scheduled"] = scheduled
        wanted = mapping(obj.get("spec")).get("replicas")
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            ready = status.get("readyReplicas")
            facts["replicas"] = f"{ready if isinstance(ready, int) else 0}/{wanted}"
    return facts


def run_facts(run: Object, pods: Iterable[Object]) -> dict[str, str]:
    """Return start, end and duration of a run, and what the containers of its pods wrote as they ended.

    A container reports facts as a JSON object in its termination message.

    Args:
        run: the Job or JobSet.
        pods: the pods of the run that the cluster still has.
    """
    facts: dict[str, str] = {}
    started = text(mapping(run.get("status")).get("startTime"))
    ended = text((end_of(run) or {}).get("lastTransitionTime"))
    if started:
        facts["started"] = started
    if ended:
        facts["ended"] = ended
    if (begin := time_of(started)) and (end := time_of(ended)):
        facts["duration"] = _duration(int((end - begin).total_seconds()))
    for pod in pods:
        facts |= dict(_reported(pod))
    return facts


def _duration(seconds: int) -> str:
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"


def _reported(pod: Object) -> Iterator[tuple[str, str]]:
    for ended in ended_containers(pod, "initContainerStatuses", "containerStatuses"):
        try:
            data = json.loads(text(ended.get("message")))
        except ValueError:
            continue
        for key, value in data.items() if isinstance(data, Mapping) else ():
            if isinstance(value, str | int | float):
                yield str(key), str(value)[:_MOST_TEXT]


def waiting_reason(pods: Iterable[Object], clues: Clues = NOTHING) -> str:
    """Return why pods do not run: no node, no image, a container that crashes; empty when none is waiting.

    Args:
        pods: the pods.
        clues: events about them and their volumes, and these volumes.
    """
    for pod in pods:
        if found := waiting(pod, clues):
            return f"{found.container}: {found.line}" if found.container else found.line
    return ""


_CALLS = 4
"""Requests at the same time."""

_NOT_ALLOWED = State("unknown", "not allowed to read it")

_Place = tuple[str, str]
"""Type of objects, and their namespace; empty for objects of the cluster."""


class Live(Struct, frozen=True):
    """What a cluster has of some kinds.

    Attributes:
        objects: objects of kinds that have a state, by identity.
        names: objects of all other kinds.
        forbidden: what the user may not list.
    """

    objects: Mapping[Identity, Object] = field(default_factory=dict)
    names: frozenset[Identity] = frozenset()
    forbidden: frozenset[_Place] = frozenset()

    def state(self, identity: Identity) -> State:
        """Return the state of an object."""
        if identity in self.objects:
            return live_state(self.objects[identity])
        if (identity.type, identity.namespace) in self.forbidden:
            return _NOT_ALLOWED
        return State("ready") if identity in self.names else MISSING


def _read_live(cluster: Cluster, wanted: Mapping[Identity, Object]) -> Live:
    """Return what the cluster has of the kinds of objects, in their namespaces. Values of Secrets are not read.

    Args:
        cluster: the cluster.
        wanted: rendered objects by identity.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    stateful = {(each.type, each.namespace): has_state(body) for each, body in wanted.items()}
    stateful |= {("Job.batch", each.namespace): True for each in wanted if each.type == SCHEDULE}

    def read(place: _Place) -> Live:
        try:
            if stateful[place]:
                return Live({identity_of(item): item for item in cluster.objects_of_type(*place)})
            return Live(names=frozenset(Identity(*place, name) for name in cluster.names_of_type(*place)))
        except Forbidden:
            return Live(forbidden=frozenset({place}))

    with ThreadPoolExecutor(_CALLS) as pool:
        found = list(pool.map(read, sorted(stateful)))
    return Live(
        {identity: body for each in found for identity, body in each.objects.items()},
        frozenset().union(*(each.names for each in found)),
        frozenset().union(*(each.forbidden for each in found)),
    )


_NAME = "app.kubernetes.io/name"
_JOB_SET = "jobset.sigs.k8s.io/jobset-name"


def collect(compilation: Compilation, config: Config, cluster: Cluster, apps: Sequence[str] = ()) -> list[AppStatus]:
    """Return the state of the apps of an environment.

    Args:
        compilation: every app of the environment.
        config: its settings.
        cluster: the cluster.
        apps: only these apps, `NAME` or `NAMESPACE/NAME`; all when empty.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    chosen = [
        item
        for item in compilation.apps
        if not apps or {item.app.name, f"{item.app.namespace}/{item.app.name}"} & set(apps)
    ]
    wanted = {id(item): _objects(item) for item in chosen}
    live = _read_live(cluster, {key: body for found in wanted.values() for key, body in found.items()})
    namespaces = sorted({item.app.namespace for item in chosen})
    pods = {namespace: _pods(cluster, namespace) for namespace in namespaces}
    syncers = read_syncers(cluster, config.gitops, namespaces)
    every = [pod for found in pods.values() for pod in found]
    clues, progress = _clues(cluster, live, namespaces, every), batch_progress(cluster, every)
    result = []
    for item in chosen:
        own = wanted[id(item)]
        of_app = sorted((pod for pod in pods[item.app.namespace] if label(pod, _NAME) == item.app.name), key=_created)
        present = [live.objects[identity] for identity in own if identity in live.objects]
        states = before_first_run({identity: _state(live, identity, of_app, clues) for identity in own})
        states = {identity: _with_stop(cluster, identity, state) for identity, state in states.items()}
        states = with_newest_runs(states, live.objects.values(), of_app, clues)
        running = any(state.name == "progressing" for state in states.values())
        result.append(
            AppStatus(
                environment=config.environment,
                namespace=item.app.namespace,
                name=item.app.name,
                kind=item.app.kind,
                objects=states,
                runs=find_runs(item.app.namespace, item.app.name, own, live, of_app, clues, progress),
                sync=find_sync(own, syncers),
                facts={
                    **workspace_facts(item.app.kind, states, of_app),
                    **_facts(cluster, item, own, present, running=running),
                },
            )
        )
    return result


def _facts(
    cluster: Cluster, item: Compiled, own: Mapping[Identity, Object], present: Iterable[Object], *, running: bool
) -> dict[str, str]:
    """Return what an app reports: by its objects, by its download, and where it is reached."""
    name, namespace = item.app.name, item.app.namespace
    recorded = recorded_facts(cluster, name, namespace) if records_facts(name, own.values()) else {}
    return {
        **object_facts(present),
        **current_facts(recorded, running=running),
        **endpoint_facts(name, namespace, own.values()),
    }


def _objects(item: Compiled) -> dict[Identity, Object]:
    found = {}
    for rendered in item.objects:
        if rendered.object.test:
            continue
        body: Object = rendered.body
        identity = identity_of(body)
        is_global = is_cluster_type(identity.kind, group_of(body))
        namespace = "" if is_global else identity.namespace or item.app.namespace
        found[identity._replace(namespace=namespace)] = body
    return found


def _pods(cluster: Cluster, namespace: str) -> list[Object]:
    try:
        return cluster.objects("v1/Pod", namespace, _NAME)
    except Forbidden:
        return []


def _state(live: Live, identity: Identity, pods: Iterable[Object], clues: Clues) -> State:
    """Return the state of an object, with the reason why its pods wait or failed, or why it has none."""
    state = live.state(identity)
    if identity not in live.objects:
        return state
    body = live.objects[identity]
    if kind_of(body).lifecycle == "run":
        return _run_state(body, state, [pod for pod in pods if _is_of(pod, identity.name)], clues)
    if state.name != "progressing":
        return state
    if identity.type == "PersistentVolumeClaim":
        event = last_event(body, clues.events)
        said = " ".join(text(event.get("message")).split()) if event is not None else ""
        return State(state.name, said or state.message)
    if not kind_of(body).lifecycle:
        return state
    return _with_reason(body, state, pods, clues)


def _with_stop(cluster: Cluster, identity: Identity, state: State) -> State:
    """Return the state of a workload that was stopped on purpose, with the reason that its ConfigMap has."""
    if not state.wanted:
        return state
    try:
        found = cluster.find("v1/ConfigMap", f"{identity.name}-state", identity.namespace)
    except Forbidden:
        return state
    data = mapping((found or {}).get("data"))
    why = _STOPPED.get(text(data.get("stopped")))
    return State(state.name, f"{why} {text(data.get('at'))}", wanted=True) if why else state


_STOPPED = {"idle": "idle, stopped at", "hours": "its hours ended at"}
"""Why a Notebook has no pod, by what kaigen-reaper writes (source: runtimes/reaper, scale.py)."""


def _with_reason(body: Object, state: State, pods: Iterable[Object], clues: Clues) -> State:
    if reason := waiting_reason(pods, clues):
        return State(state.name, reason)
    found = of_event(body, clues)
    return State(state.name, found.line) if found is not None else state


def _run_state(body: Object, state: State, pods: list[Object], clues: Clues) -> State:
    """Return the state of a run."""
    if state.name not in ("progressing", "failed") or "deletionTimestamp" in mapping(body.get("metadata")):
        return state
    pods = sorted(pods, key=_created)
    if type_of(body) == "Job.batch":
        return job_state(body, pods or None, clues)
    if state.name == "failed":
        found = failure(pods)
        return State("failed", found.text) if found is not None else state
    return _with_reason(body, state, pods, clues)


def _is_of(pod: Object, run: str) -> bool:
    return run in (label(pod, JOB), label(pod, _JOB_SET))


def _clues(cluster: Cluster, live: Live, namespaces: Iterable[str], pods: Iterable[Object]) -> Clues:
    """Return the events of the namespaces in which something is not ready, all volume claims, and failed downloads."""
    waiting_in = {each.namespace for each in live.objects if live.state(each).name == "progressing"}
    events: list[Object] = []
    for namespace in sorted(waiting_in & set(namespaces)):
        with suppress(Forbidden):
            events += cluster.objects("v1/Event", namespace)
    claims = [body for identity, body in live.objects.items() if identity.type == "PersistentVolumeClaim"]
    return Clues(events, claims, retries(cluster, pods))


def find_runs(
    namespace: str,
    name: str,
    own: Mapping[Identity, Object],
    live: Live,
    pods: Sequence[Object],
    clues: Clues,
    progress: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> tuple[Run, ...]:
    """Return the runs of an app, the newest first: those that its specs make, and those that its schedule started.

    Args:
        namespace: of the app.
        name: of the app.
        own: its objects by identity.
        live: what the cluster has.
        pods: its pods.
        clues: events, and volume claims.
        progress: of batches that run, by namespace and name of the Job.
    """
    found = [
        (identity, body)
        for identity, body in live.objects.items()
        if kind_of(body).lifecycle == "run"
        and identity.namespace == namespace
        and (identity in own or label(body, _NAME) == name)
    ]
    found.sort(key=lambda each: _created(each[1]), reverse=True)
    newest = next((identity for identity, body in found if is_started_by(body, own)), None)
    return tuple(
        Run(
            identity.name,
            _state(live, identity, pods, clues),
            identity in own or identity == newest,
            {
                **run_facts(body, [pod for pod in pods if _is_of(pod, identity.name)]),
                **({"progress": done} if (done := progress.get((namespace, identity.name))) else {}),
            },
        )
        for identity, body in found
    )


def _created(obj: Object) -> str:
    return text(mapping(obj.get("metadata")).get("creationTimestamp"))
