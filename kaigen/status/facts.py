"""Facts of an app that no state of an object has: where it is reached, and what its Job measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.cluster.errors import Forbidden
from kaigen.cluster.states import State
from kaigen.kubernetes.manifest import Identity, Object, entries, mapping, text, type_of

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

DATA_ONLY = frozenset({"fileNames", "report.json", "report.md"})
"""Facts of a download, and of a gate, that only JSON has."""
_WORKSPACE = ("RESOURCEREADY", "INFERENCEREADY", "WORKSPACEREADY")
"""The columns of KAITO for a Workspace that serves."""
HIDDEN = DATA_ONLY | {
    *_WORKSPACE,
    *("source", "commit", "url", "seconds", "bytesPerSecond", "finished"),
    *("conversionSizeBytes", "conversionWeights", "conversionSeconds", "run"),
}
"""Facts of a download and a conversion that a narrow table leaves out."""

_SERVING = ("Deployment", "StatefulSet", "LeaderWorkerSet")
_PROGRESS = "progress"

_HTTP_ROUTE = "HTTPRoute.gateway.networking.k8s.io"
_ROLE = "Role.rbac.authorization.k8s.io"
_INGRESS = "Ingress.networking.k8s.io"


def endpoint_facts(name: str, namespace: str, objects: Iterable[Object]) -> dict[str, str]:
    """Return where an app is reached: at the host of its route, or at its Service inside the cluster.

    Args:
        name: name of the app.
        namespace: its namespace.
        objects: its rendered objects.
    """
    hosts: list[str] = []
    service = ""
    for obj in objects:
        spec = mapping(obj.get("spec"))
        type_ = type_of(obj)
        if type_ == _HTTP_ROUTE:
            hosts += [text(host) for host in _list(spec.get("hostnames"))]
        elif type_ == _INGRESS:
            secure = {text(host) for _, item in entries(spec.get("tls")) for host in _list(item.get("hosts"))}
            named = [text(rule.get("host")) for _, rule in entries(spec.get("rules"))]
            hosts += [f"http{'s' if host in secure else ''}://{host}" for host in named if host]
        elif type_ == "Service" and text(mapping(obj.get("metadata")).get("name")) == name:
            ports = [port.get("port") for _, port in entries(spec.get("ports"))]
            if ports and spec.get("clusterIP") != "None":
                service = f"http://{name}.{namespace}.svc:{ports[0]}"
    endpoint = next(filter(None, hosts), "") or service
    return {"endpoint": endpoint} if endpoint else {}


def workspace_facts(kind: str, states: Mapping[Identity, State], pods: Sequence[Object]) -> dict[str, str]:
    """Return the columns that KAITO prints for a Workspace; nothing for other kinds, and for one that trains.

    Args:
        kind: the kind that the app was written in.
        states: states of its objects.
        pods: its pods.
    """
    serving = [state for identity, state in states.items() if identity.kind in _SERVING]
    if kind != "Workspace" or not serving:
        return {}
    has_nodes = bool(pods) and all(mapping(pod.get("spec")).get("nodeName") for pod in pods)
    serves = all(state.name == "ready" for state in serving)
    is_ready = has_nodes and all(state.name == "ready" for state in states.values())
    return dict(zip(_WORKSPACE, map(str, (has_nodes, serves, is_ready)), strict=True))


def records_facts(name: str, objects: Iterable[Object]) -> bool:
    """Return whether a run of an app may write what it measured."""
    rules = (rule for obj in objects if type_of(obj) == _ROLE for _, rule in entries(obj.get("rules")))
    return any(f"{name}-facts" in _list(rule.get("resourceNames")) for rule in rules)


def recorded_facts(cluster: Cluster, name: str, namespace: str) -> Mapping[str, str]:
    """Return what the download of an app measured; it is in a ConfigMap, and stays when the pods are gone.

    Args:
        cluster: the cluster.
        name: name of the app.
        namespace: its namespace.
    """
    try:
        found = cluster.find("v1/ConfigMap", f"{name}-facts", namespace)
    except Forbidden:
        return {}
    return {key: text(value) for key, value in mapping((found or {}).get("data")).items()}


def current_facts(recorded: Mapping[str, str], *, running: bool) -> dict[str, str]:
    """Return recorded facts without the progress of a download that ended.

    Args:
        recorded: what the Job of an app recorded.
        running: whether it runs.
    """
    return {key: value for key, value in recorded.items() if running or key != _PROGRESS}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
