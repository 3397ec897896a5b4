"""The Notebooks of a cluster: their StatefulSets, tokens and volumes."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.waits import Waiting, of_event, read_clues, waiting
from kaigen.compile.notebook.pod import HOME, TOKEN_VOLUME
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.requests import is_scaled_live
from kaigen.kubernetes.runs import time_of, tracked_by
from kaigen.ops.helper import CLAIM, POD, Patience

STATEFUL_SET = "apps/v1/StatefulSet"
SECRET = "v1/Secret"

_OURS = "app.kubernetes.io/managed-by=kaigen,app.kubernetes.io/component=notebook"
_APP = "app.kubernetes.io/name"
_OBJECTS = (
    STATEFUL_SET,
    "v1/Service",
    "networking.k8s.io/v1/NetworkPolicy",
    "v1/ConfigMap",
    "v1/ServiceAccount",
    SECRET,
)
"""Kinds of the objects of a Notebook, apart from its volume, in the order in which they are deleted."""
_POLL_S = 1.0

Say = Callable[[str], object]


class Row(Struct, frozen=True):
    """A Notebook as a row of a table.

    Attributes:
        name: its name.
        namespace: its namespace.
        phase: `Ready`, `Starting`, `Suspending` or `Suspended`.
        gpu: number of its GPUs.
        managed_by: the syncer that manages it; empty for none.
        created: when it was created.
    """

    name: str
    namespace: str
    phase: str
    gpu: str
    managed_by: str
    created: datetime | None


def notebooks(cluster: Cluster, namespace: str) -> list[Manifest]:
    """Return the StatefulSets of all Notebooks, by namespace and name; an empty namespace is all of them."""
    found = cluster.objects(STATEFUL_SET, namespace, _OURS)
    return sorted(found, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))


def find_notebook(cluster: Cluster, namespace: str, name: str) -> Manifest:
    """Return the StatefulSet of a Notebook.

    Raises:
        CheckFailed: there is none.
    """
    found = cluster.find(STATEFUL_SET, name, namespace)
    labels = (found or {}).get("metadata", {}).get("labels") or {}
    wanted = dict(pair.split("=") for pair in _OURS.split(","))
    if found is None or not wanted.items() <= labels.items():
        hint = f"list the Notebooks of the namespace: kaigen notebook list -n {namespace}"
        raise CheckFailed(f'Notebook "{name}" not found in namespace {namespace}', hint=hint)
    return found


def row_of(notebook: Manifest) -> Row:
    """Return a Notebook as a row of a table."""
    metadata, spec = notebook["metadata"], notebook["spec"]
    status = notebook.get("status") or {}
    if spec.get("replicas") == 0:
        phase = "Suspending" if status.get("replicas") else "Suspended"
    else:
        phase = "Ready" if status.get("readyReplicas") else "Starting"
    container = spec["template"]["spec"]["containers"][0]
    limits = (container.get("resources") or {}).get("limits") or {}
    return Row(
        name=metadata["name"],
        namespace=metadata["namespace"],
        phase=phase,
        gpu=next((str(value) for key, value in limits.items() if key.endswith("/gpu")), "0"),
        managed_by=tracked_by(notebook),
        created=time_of(metadata.get("creationTimestamp")),
    )


def scale(cluster: Cluster, notebook: Manifest, *, suspend: bool) -> bool:
    """Suspend or resume a Notebook, and return whether it changed.

    Raises:
        CheckFailed: a syncer manages it, and would undo the change: the number of pods is in Git.
    """
    metadata, replicas = notebook["metadata"], 0 if suspend else 1
    if notebook["spec"].get("replicas") == replicas:
        return False
    syncer = tracked_by(notebook)
    if syncer and not is_scaled_live(notebook):
        value = str(suspend).lower()
        raise CheckFailed(
            f"Notebook {metadata['name']} is managed by {syncer}, which would undo the change",
            hint=f"set `suspend: {value}` in its spec, render and commit",
        )
    change: Manifest = {"spec": {"replicas": replicas}}
    cluster.patch(STATEFUL_SET, metadata["name"], metadata["namespace"], change)
    return True


def apply_notebook(
    cluster: Cluster, objects: list[Manifest], namespace: str, name: str, program: str = "kaigen notebook open"
) -> None:
    """Create or change the objects of a Notebook, with its pod.

    Args:
        cluster: the cluster.
        objects: the objects.
        namespace: their namespace.
        name: name of the Notebook.
        program: the command that opens it, for hints.

    Raises:
        CheckFailed: a syncer manages it.
    """
    found = cluster.find(STATEFUL_SET, name, namespace)
    if found is not None and (syncer := tracked_by(found)):
        raise CheckFailed(
            f"Notebook {name} is managed by {syncer}",
            hint=f"commit the change of its spec, then run: {program} {name} -n {namespace}",
        )
    for body in objects:
        if body["kind"] == "StatefulSet":
            body = {**body, "spec": {**body["spec"], "replicas": 1}}
        cluster.apply(body, namespace)


def volume_of(cluster: Cluster, notebook: Manifest) -> Manifest:
    """Return the claim with the files of a Notebook.

    Raises:
        CheckFailed: there is none.
    """
    name = _volume(notebook, HOME)["persistentVolumeClaim"]["claimName"]
    found = cluster.find(CLAIM, name, notebook["metadata"]["namespace"])
    if found is None:
        raise CheckFailed(f"PersistentVolumeClaim {name} not found", hint="apply the objects of the notebook")
    return found


def token_of(cluster: Cluster, notebook: Manifest, say: Say = lambda text: None) -> str:
    """Return the token of a Notebook; create its Secret if there is none and no syncer manages the Notebook.

    Raises:
        CheckFailed: there is no such Secret or key.
    """
    metadata, source = notebook["metadata"], _volume(notebook, TOKEN_VOLUME)["secret"]
    name, key = source["secretName"], source["items"][0]["key"]
    found = cluster.find(SECRET, name, metadata["namespace"])
    if found is None and not tracked_by(notebook):
        found = cluster.create(_new_secret(name, key, metadata), metadata["namespace"])
        say(f"secret/{name} created")
    stored = ((found or {}).get("data") or {}).get(key)
    token = base64.b64decode(stored).decode(errors="replace").strip() if stored else ""
    if not token:
        command = f"kubectl create secret generic {name} -n {metadata['namespace']} --from-literal={key}=TOKEN"
        raise CheckFailed(f"Secret {name} has no token in its key {key}", hint=f"create it: {command}")
    return token


def _new_secret(name: str, key: str, metadata: Manifest) -> Manifest:
    labels = {_APP: metadata["name"], "app.kubernetes.io/managed-by": "kaigen"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": labels},
        "stringData": {key: secrets.token_hex(24)},
    }


def pod_name(notebook: Manifest) -> str:
    """Return the name of the pod of a Notebook."""
    return f"{notebook['metadata']['name']}-0"


def wait_ready(cluster: Cluster, notebook: Manifest, seconds: float, say: Say) -> None:
    """Wait until the server of a Notebook answers, and report what it waits for.

    Raises:
        SystemFailure: it cannot start, or takes too long.
    """
    namespace, name = notebook["metadata"]["namespace"], pod_name(notebook)
    until = time.monotonic() + seconds
    patience = Patience(say)
    while True:
        pod = cluster.find(POD, name, namespace)
        if pod is not None and _is_ready(pod) and _is_current(cluster, notebook):
            return
        found = _waits_for(cluster, notebook, pod)
        if patience.ends(found) or time.monotonic() > until:
            why = found.line if found is not None else "it is not ready in time"
            raise SystemFailure(f"Notebook {notebook['metadata']['name']} does not start: {why}")
        time.sleep(_POLL_S)


def _waits_for(cluster: Cluster, notebook: Manifest, pod: Manifest | None) -> Waiting | None:
    if pod is not None:
        return waiting(pod, read_clues(cluster, pod))
    return of_event(notebook, read_clues(cluster, notebook))


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _is_current(cluster: Cluster, notebook: Manifest) -> bool:
    """Return whether the pod is of the newest template."""
    metadata = notebook["metadata"]
    found = cluster.get(STATEFUL_SET, metadata["name"], metadata["namespace"])
    status = found.get("status") or {}
    return bool(
        status.get("observedGeneration") == found["metadata"]["generation"]
        and status.get("currentRevision") == status.get("updateRevision")
        and status.get("readyReplicas")
    )


def delete_notebook(cluster: Cluster, notebook: Manifest, *, volume: bool) -> Iterator[str]:
    """Delete the objects of a Notebook, and yield the name of each.

    Args:
        cluster: the cluster.
        notebook: its StatefulSet.
        volume: delete the volume with its files, too.

    Raises:
        CheckFailed: a syncer manages it.
    """
    metadata = notebook["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    if syncer := tracked_by(notebook):
        raise CheckFailed(f"Notebook {name} is managed by {syncer}", hint="delete its spec from the repository")
    home = _volume(notebook, HOME)["persistentVolumeClaim"]["claimName"]
    for kind in _OBJECTS:
        for item in cluster.objects(kind, namespace, f"{_APP}={name},app.kubernetes.io/managed-by=kaigen"):
            own = item["metadata"]
            if not tracked_by(item) and cluster.delete(kind, own["name"], namespace, uid=own["uid"]):
                yield f"{kind.rpartition('/')[2].lower()}/{own['name']}"
    if volume and cluster.delete(CLAIM, home, namespace):
        yield f"persistentvolumeclaim/{home}"


def _volume(notebook: Manifest, name: str) -> Manifest:
    volumes = notebook["spec"]["template"]["spec"].get("volumes") or []
    for volume in volumes:
        if volume["name"] == name:
            return dict(volume)
    raise CheckFailed(
        f"Notebook {notebook['metadata']['name']} has no volume `{name}`", hint="render it with this kaigen"
    )
