"""Pods of a command of the user: they mount a volume, and are deleted when the command ends, however it ends."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import Unreachable
from kaigen.cluster.runs import ENDED, failure
from kaigen.cluster.waits import Waiting, read_clues, waiting
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.metadata_keys import RUN
from kaigen.ops.build import Claim, helper_pod
from kaigen.ops.creation import Creation
from kaigen.ops.interrupts import interruptible
from kaigen.ops.transfer import Mount

CLAIM = "v1/PersistentVolumeClaim"
POD = "v1/Pod"
START_S = 180
"""Seconds to wait for a pod to start: the image may have to be pulled, and the volume provisioned."""
SETTLE_S = 3.0
"""Seconds that a reason must last before it is reported."""
GONE_S = 60
"""Seconds to wait for an object that is being deleted: its pods have half a minute to end."""
LONGEST_S = 6 * 3600
"""Seconds after which a pod ends whose command was killed."""

_POLL_S = 0.5
_NO_CLASS = "storageclass.storage.k8s.io "
_CLASS_HINT = "list those of the cluster: kubectl get storageclass; and name one with --storage-class"
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}

Say = Callable[[str], object]


@contextmanager
def mount_volume(
    cluster: Cluster,
    namespace: str,
    claim: Claim,
    config: Config,
    *,
    purpose: str,
    image: str = "",
    name: str = "",
    keep: bool = False,
    say: Say = lambda text: None,
    warn: Say = lambda text: None,
    creation: Creation | None = None,
) -> Iterator[Mount]:
    """Run a pod that mounts a volume, and delete it at the end of the block.

    Args:
        cluster: the cluster.
        namespace: namespace of the volume.
        claim: the volume.
        config: settings of the repository.
        purpose: beginning of the pod's name.
        image: image of the pod; kaigen's downloader when empty.
        name: name of the pod; a new one when empty.
        keep: leave the pod when the block ends without an error.
        say: receives what happens.
        warn: receives what the pod waits for.
        creation: what deletes the pod after an error; the end of the block when None.

    Raises:
        SystemFailure: the pod does not start.
    """
    name = name or f"{purpose[:50].rstrip('-.')}-{secrets.token_hex(3)}"
    node = node_of(cluster, namespace, claim.name)
    pod = helper_pod(name, namespace, claim, config, image=image, seconds=LONGEST_S, node=node)
    made = creation or Creation(cluster, namespace)
    with interruptible():
        with made.undone_on_error(say) if creation is None else nullcontext():
            made.create(pod, grace=1)
            say(f"pod {name} is starting")
            wait_running(cluster, namespace, name, say=warn)
            yield Mount(cluster, namespace, name)
        if not keep:
            made.undo(lambda text: None, POD)
            _await_end(cluster, namespace, name)


def _await_end(cluster: Cluster, namespace: str, name: str) -> None:
    """Wait until a pod that was deleted is gone, so that its volume can be mounted elsewhere."""
    until = time.monotonic() + 30
    with suppress(Unreachable):
        while cluster.find(POD, name, namespace) is not None and time.monotonic() < until:
            time.sleep(_POLL_S)


def await_gone(cluster: Cluster, kind: str, name: str, namespace: str, say: Say, seconds: float = GONE_S) -> bool:
    """Wait until an object that is being deleted is gone; return whether there is none of that name.

    Args:
        cluster: the cluster.
        kind: apiVersion and kind of the object.
        name: its name.
        namespace: its namespace.
        say: receives that it waits.
        seconds: longest time to wait.

    Raises:
        CheckFailed: it is still being deleted.
    """
    until, is_said = time.monotonic() + seconds, False
    while (found := cluster.find(kind, name, namespace)) is not None:
        if "deletionTimestamp" not in found["metadata"]:
            return False
        what = f"{found['kind'].lower()}/{name}"
        if time.monotonic() > until:
            waits = ", ".join(found["metadata"].get("finalizers") or ("nothing",))
            hint = f"see what keeps it (its finalizers: {waits}): kubectl describe {what} -n {namespace}"
            raise CheckFailed(f"{what} is still being deleted after {seconds:g} s", hint=hint)
        if not is_said:
            say(f"{what} is being deleted; waiting until it is gone")
            is_said = True
        time.sleep(_POLL_S)
    return True


def existing_claim(cluster: Cluster, namespace: str, name: str) -> Manifest:
    """Return a volume claim.

    Raises:
        CheckFailed: there is none, or it is being deleted.
    """
    found = cluster.find(CLAIM, name, namespace)
    if found is not None and "deletionTimestamp" in found["metadata"]:
        raise CheckFailed(f'PersistentVolumeClaim "{name}" in namespace {namespace} is being deleted')
    if found is None:
        hint = "name the volume with --pvc-name, or list volumes: kubectl get pvc"
        raise CheckFailed(f'PersistentVolumeClaim "{name}" not found in namespace {namespace}', hint=hint)
    return found


def ensure_claim(
    cluster: Cluster,
    namespace: str,
    body: Manifest,
    say: Say = lambda text: None,
    create: Callable[[Manifest], object] | None = None,
) -> bool:
    """Create a volume claim unless it exists, and return whether it was created.

    One that is being deleted does not exist: what is written to it is lost.

    Args:
        cluster: the cluster.
        namespace: namespace of the claim.
        body: the claim.
        say: receives that it waits for the end of a deletion.
        create: creates the claim; the cluster when None.

    Raises:
        CheckFailed: it exists and belongs to another Job, or its deletion does not end.
    """
    name = body["metadata"]["name"]
    if await_gone(cluster, CLAIM, name, namespace, say):
        if create is None:
            cluster.create(body, namespace)
        else:
            create(body)
        return True
    found = cluster.get(CLAIM, name, namespace)
    owner = (found["metadata"].get("annotations") or {}).get(RUN)
    if owner not in (None, body["metadata"]["annotations"][RUN]):
        hint = "name another volume with --pvc-name"
        raise CheckFailed(f"PersistentVolumeClaim {name} belongs to Job {owner}", hint=hint)
    return False


def users_of(cluster: Cluster, namespace: str, claim: str) -> list[Manifest]:
    """Return the pods that have not ended and mount a volume."""
    return [
        pod
        for pod in cluster.objects(POD, namespace)
        if (pod.get("status") or {}).get("phase") not in ENDED and claim in claims_of(pod)
    ]


def claims_of(pod: Manifest) -> set[str]:
    """Return the names of the volume claims that a pod, or its template, mounts."""
    volumes = (pod.get("spec") or {}).get("volumes") or []
    return {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}


def node_of(cluster: Cluster, namespace: str, claim: str) -> str:
    """Return the node whose pods use a volume that only one node can mount; empty for any node."""
    found = cluster.find(CLAIM, claim, namespace)
    if found is None or _SHARED & set(found["spec"].get("accessModes") or ()):
        return ""
    nodes = [pod["spec"].get("nodeName", "") for pod in users_of(cluster, namespace, claim)]
    return next(filter(None, nodes), "")


def wait_running(
    cluster: Cluster, namespace: str, name: str, seconds: float = START_S, say: Say = lambda text: None
) -> None:
    """Wait until the container of a pod runs.

    Args:
        cluster: the cluster.
        namespace: namespace of the pod.
        name: its name.
        seconds: longest time to wait.
        say: receives what the pod waits for.

    Raises:
        SystemFailure: it ended, cannot start, or takes too long; the message says why.
    """
    until = time.monotonic() + seconds
    patience = Patience(say)
    while True:
        pod = cluster.get(POD, name, namespace)
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if phase == "Running":
            return
        if phase in ENDED:
            ended = failure([pod])
            raise SystemFailure(f"pod {name} does not start: {ended.text if ended is not None else phase}")
        found = waiting(pod, read_clues(cluster, pod))
        if patience.ends(found) or time.monotonic() > until:
            line = found.line if found is not None else phase
            raise SystemFailure(f"pod {name} does not start: {line}", hint=_CLASS_HINT if _NO_CLASS in line else "")
        time.sleep(_POLL_S)


class Patience:
    """Reports what a pod waits for once that has lasted a while, and ends where waiting is hopeless.

    In its first seconds, the scheduler may not have seen the volume of a pod, or the controller its StorageClass.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._line = ""
        self._since = 0.0
        self._said: set[str] = set()

    def ends(self, found: Waiting | None) -> bool:
        """Report what a pod waits for now, and return whether it does not start by itself."""
        line = found.line if found is not None else ""
        if line != self._line:
            self._line, self._since = line, time.monotonic()
        if found is None or not line or time.monotonic() - self._since < SETTLE_S:
            return False
        if found.is_hopeless:
            return True
        if line not in self._said:
            self._said.add(line)
            self._say(f"waiting: {line}")
        return False


def wait_end(cluster: Cluster, namespace: str, name: str) -> None:
    """Wait until a pod has ended or is deleted."""
    while True:
        pod = cluster.find(POD, name, namespace)
        if pod is None or (pod.get("status") or {}).get("phase") in ENDED:
            return
        time.sleep(2)
