"""What the pods of Jobs print."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError, StreamBroken
from kaigen.cluster.runs import ENDED, failure, run_state
from kaigen.cluster.waits import read_clues, waiting
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.diagnostics.suggest import nearest
from kaigen.kubernetes.manifest import Manifest, api_path
from kaigen.ops.helper import POD
from kaigen.ops.jobs import JOB, expiry_of_pods, pods_of, state_of

SILENCE_S = 60
"""Seconds without a line after which the connection is made again: the old one may be dead."""
PATIENCE_S = 120
"""Seconds for which a server that does not answer is asked again."""
POLL_S = 1.0

_STAMP = re.compile(rb"([0-9-]{10}T[0-9:]{8})(?:\.[0-9]+)?(Z|[+-][0-9:]{5})")


Command = Callable[..., str]
"""Returns a command line of the program that the user called, for hints; takes its words."""
Say = Callable[[str], object]


def _command(*words: str) -> str:
    return " ".join(("kaigen job", *words))


def logs(
    cluster: Cluster,
    job: Manifest,
    *,
    follow: bool,
    container: str = "",
    tail: int | None = None,
    command: Command = _command,
    name: str = "",
    say: Say = lambda text: None,
) -> Iterator[bytes]:
    """Yield the lines that the newest pod of a Job prints.

    Args:
        cluster: the cluster.
        job: the Job.
        follow: wait for the pod, and for more lines until it ends.
        container: name of the container; the main one when empty.
        tail: only so many of the last lines.
        command: makes the commands of hints.
        name: the name of the Job in these commands; its own when empty.
        say: receives what the container waits for, if it is waited for.

    Raises:
        CheckFailed: the Job has no pods, or no such container, or the container did not start.
        SystemFailure: the cluster cannot be reached, or the container has no log.
    """
    source = _Source(cluster, job, command, name, say)
    pod = source.pod(wait=follow)
    chosen = _container(pod, container)
    if follow:
        yield from _Follower(source, pod, chosen, tail).lines()
        return
    if not _has_log(pod, chosen):
        raise source.not_started(pod, chosen)
    metadata = pod["metadata"]
    query = [("container", chosen), *([("tailLines", str(tail))] if tail is not None else [])]
    yield from cluster.stream(api_path(POD, metadata["namespace"], metadata["name"], "log"), query)


def _container(pod: Manifest, name: str) -> str:
    """Return the name of a container of a pod; of the main one if none is named.

    Raises:
        CheckFailed: there is none of that name.
    """
    names = [each["name"] for field in ("containers", "initContainers") for each in pod["spec"].get(field) or ()]
    if name in names:
        return name
    if name:
        ordered = dict.fromkeys((*nearest(name, names, limit=len(names)), *names))
        hint = f"its containers are {', '.join(ordered)}"
        raise CheckFailed(f'pod {pod["metadata"]["name"]} has no container "{name}"', hint=hint)
    return str(names[0])


def _status(pod: Manifest, container: str) -> Manifest:
    """Return the status of a container; an empty one if it has none yet."""
    status = pod.get("status") or {}
    found = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return next((dict(each) for each in found if each["name"] == container), {})


def _has_log(pod: Manifest, container: str) -> bool:
    """Return whether a container runs or ran."""
    status = _status(pod, container)
    if not status:
        return (pod.get("status") or {}).get("phase") == "Running"
    return "waiting" not in (status.get("state") or {}) or "terminated" in (status.get("lastState") or {})


class _Source:
    """The pods of a Job, and why they print nothing."""

    def __init__(self, cluster: Cluster, job: Manifest, command: Command, name: str, say: Say) -> None:
        self.cluster = cluster
        self._job = job
        self._name = job["metadata"]["name"]
        self._shown = name or self._name
        self._command = command
        self._say = say
        self._said = ""

    def pod(self, *, wait: bool) -> Manifest:
        """Return the newest pod of the Job.

        Raises:
            CheckFailed: it has none any more, or none yet and `wait` is not set.
        """
        metadata = self._job["metadata"]
        while True:
            if pods := pods_of(self.cluster, self._job):
                return pods[-1]
            job = self.cluster.get(JOB, self._name, metadata["namespace"])
            state = state_of(self.cluster, job, ())
            if state.phase in ENDED:
                if state.phase == "Failed":
                    raise CheckFailed(f"{expiry_of_pods(job)}; it failed: {run_state(job).message}")
                hint = f"the results stay in its volume: {self._command('fetch', self._shown)}"
                raise CheckFailed(expiry_of_pods(job), hint=hint)
            if not wait:
                raise CheckFailed(f"Job {self._name} has no pods yet: {state.message}", hint=self._wait_hint())
            self._report(state.message)
            time.sleep(POLL_S)

    def not_started(self, pod: Manifest, container: str) -> CheckFailed:
        """Return the error for a container that has printed nothing because it has not started."""
        found = failure([pod])
        if found is not None:
            options = ["-c", found.container] if found.container not in ("", container) else []
            hint = f"read what it printed: {self._command('logs', self._shown, *options)}" if options else ""
            return CheckFailed(f'container "{container}" did not run: {found.text}', hint=hint)
        return CheckFailed(f'container "{container}" has not started: {self._why(pod)}', hint=self._wait_hint())

    def await_start(self, pod: Manifest, container: str) -> None:
        """Report what a container waits for.

        Raises:
            CheckFailed: it does not start, because the pod has ended.
        """
        is_final = pod["spec"].get("restartPolicy") == "Never" and failure([pod]) is not None
        if is_final or (pod.get("status") or {}).get("phase") in ENDED:
            raise self.not_started(pod, container)
        self._report(self._why(pod))

    def _why(self, pod: Manifest) -> str:
        found = waiting(pod, read_clues(self.cluster, pod))
        if found is not None:
            return found.line
        states = (pod.get("status") or {}).get("initContainerStatuses") or ()
        running = [each["name"] for each in states if "running" in (each.get("state") or {})]
        return f"init container {running[0]} runs" if running else "the pod is starting"

    def _report(self, why: str) -> None:
        if why != self._said:
            self._said = why
            self._say(f"waiting: {why}")

    def _wait_hint(self) -> str:
        return f"wait for it with: {self._command('logs', self._shown, '-f')}"


class _Follower:
    """The log of a container, over as many connections as it takes.

    The server selects lines by whole seconds. Lines of standard output and standard error may be out of order by a
    little, so each connection begins a second early, and lines that were seen are skipped.
    """

    def __init__(self, source: _Source, pod: Manifest, container: str, tail: int | None) -> None:
        self._source = source
        self._cluster = source.cluster
        self._namespace, self._name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._uid = pod["metadata"]["uid"]
        self._container = container
        self._tail = tail
        self._answered = time.monotonic()
        self._asked: datetime | None = None
        """Time of the first request, by the server's clock."""
        self._begin = b""
        """Time of the first line, if only the last lines are wanted."""
        self._seen: dict[datetime, Counter[bytes]] = {}
        """Digests of the lines of the last seconds."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines until the container has ended and all were read, or the pod is gone."""
        while True:
            try:
                pod = self._cluster.find(POD, self._name, self._namespace)
                if pod is None or pod["metadata"]["uid"] != self._uid:
                    return
                if not _has_log(pod, self._container):
                    self._source.await_start(pod, self._container)
                    self._answered = time.monotonic()
                else:
                    has_ended = _has_ended(pod, self._container)
                    yield from self._new()
                    if has_ended:
                        return
            except StreamBroken:
                self._answered = time.monotonic()
            except SystemFailure as error:
                self._check(error)
            time.sleep(POLL_S)

    def _new(self) -> Iterator[bytes]:
        """Yield the lines of one connection that were not seen yet."""
        begun = bool(self._seen)
        query = [("container", self._container), *self._selection(), ("follow", "true"), ("timestamps", "true")]
        known: Counter[bytes] = sum(self._seen.values(), Counter())
        path = api_path(POD, self._namespace, self._name, "log")
        for line in self._cluster.stream(path, query, SILENCE_S):
            self._answered = time.monotonic()
            digest = blake2b(line, digest_size=16).digest()
            if known[digest]:
                known[digest] -= 1
                continue
            stamp, _, text = line.partition(b" ")
            second = _second(stamp)
            if second is None:
                yield line
                continue
            if begun and stamp < self._begin:
                continue
            if self._tail is not None and not self._begin:
                self._begin = stamp
            self._remember(second, digest)
            yield text
        self._answered = time.monotonic()

    def _selection(self) -> list[tuple[str, str]]:
        """Return the parameters for the lines that are still wanted."""
        since = min(self._seen) if self._seen else self._asked if self._tail is not None else None
        self._asked = self._asked or self._cluster.clock
        if since is not None:
            return [("sinceTime", since.strftime("%Y-%m-%dT%H:%M:%SZ"))]
        return [] if self._tail is None else [("tailLines", str(self._tail))]

    def _remember(self, second: datetime, digest: bytes) -> None:
        if second not in self._seen:
            oldest = max((second, *self._seen)) - timedelta(seconds=1)
            self._seen = {each: lines for each, lines in self._seen.items() if each >= oldest}
            self._seen[second] = Counter()
        self._seen[second][digest] += 1

    def _check(self, error: SystemFailure) -> None:
        """Raise an error that does not go away by waiting."""
        if isinstance(error, ApiError) and error.code < 500:
            if not (error.code == 400 and "waiting to start" in str(error)):
                raise error
            self._answered = time.monotonic()
        if time.monotonic() - self._answered > PATIENCE_S:
            raise error


def _second(stamp: bytes) -> datetime | None:
    """Return the second of a line's time; None for a line without a time."""
    found = _STAMP.fullmatch(stamp)
    return datetime.fromisoformat((found[1] + found[2]).decode()).astimezone(UTC) if found else None


def _has_ended(pod: Manifest, container: str) -> bool:
    """Return whether a container prints no more."""
    status = pod.get("status") or {}
    if status.get("phase") in ENDED:
        return True
    if pod["spec"].get("restartPolicy") != "Never":
        return False
    return "terminated" in (_status(pod, container).get("state") or {})
