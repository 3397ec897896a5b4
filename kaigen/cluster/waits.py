"""What pods wait for: a node, a volume, an image, a Secret, a file, another Job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.cluster.clues import NOTHING, Clues, complaint, read_claims, read_events
from kaigen.core.text import printable
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Manifest, Object, api_path, entries, mapping, text

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_HOPELESS = {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"}
_STARTING = ("", "PodInitializing", "ContainerCreating")
_NO_IMAGE = re.compile(r"(?i)not ?found|manifest unknown|does not exist|denied|unauthorized")
"""What registries and containerd say of an image that is not there, or not for this user."""
_NO_OBJECT = re.compile(r'(?:storageclass\.storage\.k8s\.io|persistentvolumeclaim) "[^"]*" not found')
_RETRIES = re.compile(r"; attempt \d+ of \d+ follows")
"""In a line of kaigen's downloader: why an attempt failed."""
_LONGEST = 500
_CALLS = 4
"""Logs that are read at the same time."""
_LOG_S = 5
"""Seconds to wait for the last lines of a log."""


class Waiting(Struct, frozen=True):
    """Why a pod waits.

    Attributes:
        reason: in a word, such as `ImagePullBackOff`; may be empty.
        message: in a sentence; may be empty.
        container: the container that waits; empty if the pod has no node yet, or waits for something outside of it.
    """

    reason: str
    message: str = ""
    container: str = ""

    @property
    def line(self) -> str:
        """Reason and message."""
        return ": ".join(filter(None, (self.reason, self.message)))

    @property
    def is_hopeless(self) -> bool:
        """Whether the pod does not start by itself."""
        if self.reason == "ErrImagePull":
            return _NO_IMAGE.search(self.message) is not None
        return self.reason in _HOPELESS or _NO_OBJECT.search(self.message) is not None


def waiting(pod: Object, clues: Clues = NOTHING) -> Waiting | None:
    """Return why a pod waits; None when it does not, or is starting.

    Args:
        pod: the pod.
        clues: events about it and its volume claims, and these claims, if they were read.
    """
    if (found := _unscheduled(pod, clues)) is not None:
        return found
    for status in _container_statuses(pod):
        if text(_state(status, "waiting").get("reason")) not in _STARTING:
            return _stopped(status)
    for container, status in _running(pod, "initContainers"):
        if found := _awaited(container, status, retrying(pod, clues)):
            return found
    if mapping(pod.get("status")).get("phase") in (None, "Pending"):
        reason, message = complaint(pod, clues.events)
        return Waiting(reason, message) if reason else None
    return None


def retrying(pod: Object, clues: Clues) -> str:
    """Return why a pod tries a download again; empty if it does not, or its log was not read."""
    return clues.lines.get(_key(pod), "")


def _key(pod: Object) -> str:
    metadata = mapping(pod.get("metadata"))
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def of_event(obj: Object, clues: Clues) -> Waiting | None:
    """Return what the newest event about an object says is wrong; None if it says nothing of the kind."""
    reason, message = complaint(obj, clues.events)
    return Waiting(reason, message) if reason else None


def _unscheduled(pod: Object, clues: Clues) -> Waiting | None:
    """Return why a pod has no node. If it is for a volume, the events of the volume say why."""
    for _, condition in entries(mapping(pod.get("status")).get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            for name, claim in _unbound(pod, clues.claims):
                if found := of_event(claim, clues):
                    return Waiting(found.reason, f"PersistentVolumeClaim {name}: {found.message}")
            return Waiting(text(condition.get("reason")), text(condition.get("message")))
    return None


def _unbound(pod: Object, claims: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the volume claims of a pod that have no volume yet, by name."""
    mounted = {claim["claimName"] for claim in _mounted(pod)}
    for claim in claims:
        metadata = mapping(claim.get("metadata"))
        is_here = metadata.get("namespace") == mapping(pod.get("metadata")).get("namespace")
        if is_here and metadata.get("name") in mounted and mapping(claim.get("status")).get("phase") != "Bound":
            yield text(metadata.get("name")), claim


def _mounted(pod: Object) -> list[Object]:
    """Return the volumes of a pod that are claims."""
    volumes = entries(mapping(pod.get("spec")).get("volumes"))
    return [found for _, each in volumes if "claimName" in (found := mapping(each.get("persistentVolumeClaim")))]


def _container_statuses(pod: Object) -> list[Object]:
    """Return the statuses of the containers of a pod, init containers first."""
    status = mapping(pod.get("status"))
    return [each for field in ("initContainerStatuses", "containerStatuses") for _, each in entries(status.get(field))]


def _state(status: Object, name: str, field: str = "state") -> Object:
    return mapping(mapping(status.get(field)).get(name))


def _stopped(status: Object) -> Waiting:
    """Return why a container does not start."""
    found = _state(status, "waiting")
    reason, message = text(found.get("reason")), text(found.get("message"))
    if reason == "ImagePullBackOff" and "ErrImagePull: " in message:
        # The kubelet alternates between both, and says the same.
        reason, message = "ErrImagePull", message.partition("ErrImagePull: ")[2]
    ended = _state(status, "terminated", "lastState")
    if reason == "CrashLoopBackOff" and ended:
        message = ending(ended)
    return Waiting(reason, message, text(status.get("name")))


def ending(terminated: Object) -> str:
    """Return how a container ended: its exit code, and the end of what it said."""
    said = text(terminated.get("message")).strip()
    last = said.rpartition("\n")[2]
    if last.startswith("error: "):
        # The message may be the end of the log, of which this is what matters.
        said = last.removeprefix("error: ")
    reason = text(terminated.get("reason"))
    known = "" if reason in ("Error", "Completed") else reason
    said = printable(said[-_LONGEST:], "�", keep="\t\n")
    return ": ".join(filter(None, (f"exit code {terminated.get('exitCode')}", known, said)))


def _running(pod: Object, field: str) -> list[tuple[Object, Object]]:
    """Return the containers in a field of a pod that run until they have done their work, each with its status."""
    running = {
        text(each.get("name")): each for each in _container_statuses(pod) if "running" in mapping(each.get("state"))
    }
    return [
        (container, running[text(container.get("name"))])
        for _, container in entries(mapping(pod.get("spec")).get(field))
        if text(container.get("name")) in running and container.get("restartPolicy") != "Always"
    ]


def _awaited(container: Object, status: Object, line: str) -> Waiting | None:
    """Return what an init container waits for, or why its last attempt failed; None if nothing is known."""
    arguments = _arguments(container)
    if describe := _GATES.get(arguments[0]):
        return Waiting("", f"waits for {describe(_options(arguments))}")
    ended = _state(status, "terminated", "lastState")
    said = line or (ending(ended) if ended.get("exitCode") else "")
    return Waiting("", f"init container {container.get('name')}: {said}") if said else None


def _arguments(container: Object) -> list[str]:
    """Return the arguments of a container that runs the program of its image; at least an empty one."""
    words = container.get("args")
    return [str(word) for word in words] if isinstance(words, list) and words and "command" not in container else [""]


def _options(arguments: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the values of arguments of the form `--name=value`."""
    found: dict[str, list[str]] = {}
    for word in arguments[1:]:
        name, _, value = word.partition("=")
        found.setdefault(name, []).append(value)
    return found


def _files(options: Mapping[str, list[str]]) -> str:
    folder = "".join(options.get("--dest", ())).rstrip("/")
    return ", ".join(f"{folder}/{name}" for name in options.get("--file", ()))


def _run(options: Mapping[str, list[str]]) -> str:
    return f"{''.join(options.get('--kind', ('Job',)))} {''.join(options.get('--name', ()))}"


def _folder(options: Mapping[str, list[str]]) -> str:
    return f"the files of {''.join(options.get('--dest', ()))}"


_GATES: Mapping[str, Callable[[Mapping[str, list[str]]], str]] = {
    "wait": _folder,
    "wait-files": _files,
    "wait-job": _run,
}
"""Commands of kaigen's downloader that wait, with what each says of its options."""


def read_clues(cluster: Cluster, obj: Manifest) -> Clues:
    """Return the events about an object; of a pod, also about its volumes, and why its downloads are tried again.

    What the user may not read is left out.

    Args:
        cluster: the cluster.
        obj: a pod, or an object that makes pods.
    """
    metadata, spec = obj["metadata"], obj["spec"]
    mounted = [] if "nodeName" in spec else [str(claim["claimName"]) for claim in _mounted(obj)]
    claims = read_claims(cluster, metadata["namespace"], mounted)
    names = [metadata["name"], *(claim["metadata"]["name"] for claim in claims)]
    return Clues(read_events(cluster, metadata["namespace"], names), claims, retries(cluster, [obj]))


def retries(cluster: Cluster, pods: Iterable[Manifest]) -> dict[str, str]:
    """Return why pods try a download again, by namespace and name of the pod.

    Args:
        cluster: has their logs. What the user may not read is left out.
        pods: the pods; of other objects nothing is read.
    """
    found = [(pod, name) for pod in pods if (name := fetching(pod))]
    if not found:
        return {}
    with ThreadPoolExecutor(_CALLS) as pool:
        lines = pool.map(lambda each: _retry_line(cluster, *each), found)
        return {_key(pod): line for (pod, _), line in zip(found, lines, strict=True) if line}


def fetching(pod: Object) -> str:
    """Return the name of the container of a pod that downloads now; empty if none does."""
    running = [*_running(pod, "initContainers"), *_running(pod, "containers")]
    return next((text(each.get("name")) for each, _ in running if _arguments(each)[0] == "fetch"), "")


def _retry_line(cluster: Cluster, pod: Manifest, container: str) -> str:
    """Return the last line of a container, if it says why an attempt failed; else nothing."""
    metadata = pod["metadata"]
    path = api_path("v1/Pod", metadata["namespace"], metadata["name"], "log")
    try:
        lines = list(cluster.stream(path, [("container", container), ("tailLines", "1")], _LOG_S))
    except SystemFailure:
        return ""
    last = printable(lines[-1].decode(errors="replace"), "�") if lines else ""
    return last[-_LONGEST:] if _RETRIES.search(last) else ""
