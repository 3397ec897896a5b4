"""Collects the state of the apps of an environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.cluster.errors import Forbidden
from kaigen.cluster.states import State, live_state
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Identity, Object, group_of, identity_of, mapping, text
from kaigen.kubernetes.schemas import is_cluster_type
from kaigen.status.facts import object_facts, run_facts, waiting_reason
from kaigen.status.live import Live, read_live
from kaigen.status.model import AppStatus, Run
from kaigen.status.syncers import find_sync, read_syncers

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.pipeline.result import Compilation, Compiled

_NAME = "app.kubernetes.io/name"
_JOB = "batch.kubernetes.io/job-name"
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
    live = read_live(cluster, {key: body for found in wanted.values() for key, body in found.items()})
    namespaces = sorted({item.app.namespace for item in chosen})
    pods = {namespace: _pods(cluster, namespace) for namespace in namespaces}
    syncers = read_syncers(cluster, config.gitops, namespaces)
    result = []
    for item in chosen:
        own = wanted[id(item)]
        of_app = [pod for pod in pods[item.app.namespace] if _label(pod, _NAME) == item.app.name]
        present = [live.objects[identity] for identity in own if identity in live.objects]
        result.append(
            AppStatus(
                environment=config.environment,
                namespace=item.app.namespace,
                name=item.app.name,
                kind=item.app.kind,
                objects={identity: _state(live, identity, of_app) for identity in own},
                runs=_runs(item, own, live, of_app),
                sync=find_sync(own, syncers),
                facts=object_facts(present),
            )
        )
    return result


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


def _label(obj: Object, name: str) -> str:
    return text(mapping(mapping(obj.get("metadata")).get("labels")).get(name))


def _state(live: Live, identity: Identity, pods: Iterable[Object]) -> State:
    """Return the state of an object, with the reason why its pods wait."""
    state = live.state(identity)
    if state.name != "progressing" or identity not in live.objects:
        return state
    body = live.objects[identity]
    if not kind_of(body).lifecycle:
        return state
    own = pods if kind_of(body).lifecycle != "run" else [pod for pod in pods if _is_of(pod, identity.name)]
    reason = waiting_reason(own)
    return State(state.name, reason) if reason else state


def _is_of(pod: Object, run: str) -> bool:
    return run in (_label(pod, _JOB), _label(pod, _JOB_SET))


def _runs(item: Compiled, own: Mapping[Identity, Object], live: Live, pods: Sequence[Object]) -> tuple[Run, ...]:
    found = [
        (identity, body)
        for identity, body in live.objects.items()
        if kind_of(body).lifecycle == "run"
        and identity.namespace == item.app.namespace
        and (identity in own or _label(body, _NAME) == item.app.name)
    ]
    found.sort(key=lambda each: _created(each[1]), reverse=True)
    return tuple(
        Run(
            identity.name,
            live_state(body),
            identity in own,
            run_facts(body, [pod for pod in pods if _is_of(pod, identity.name)]),
        )
        for identity, body in found
    )


def _created(obj: Object) -> str:
    return text(mapping(obj.get("metadata")).get("creationTimestamp"))
