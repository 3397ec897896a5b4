"""Random histories of a cluster, with a reaper that works, fails and restarts in between.

What it deletes is judged by an oracle that reads the plain objects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

from fake_cluster import Cluster, Object
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kaigen_reaper.errors import ApiUnavailable
from kaigen_reaper.events import Events
from kaigen_reaper.follow import Follower
from kaigen_reaper.index import JOBS, VOLUMES, Index
from kaigen_reaper.metrics import Metrics
from kaigen_reaper.reap import Options, Reaper
from objects import CLAIMS, add_job, add_pod, add_volume, rfc3339

START = 1_800_000_000.0
NAMES = st.sampled_from(["a", "b"])
TTLS = st.sampled_from(["0", "5", "5", "60", "60", "never", "", "1h"])
FAULTS = st.sampled_from([403, 409, 410, 429, 500, 0, 0, 0])
PODS = ["p0", "p1", "p2"]
TRACKING = st.sampled_from(
    [
        ("annotations", "argocd.argoproj.io/tracking-id"),
        ("annotations", "kustomize.toolkit.fluxcd.io/name"),
        ("labels", "kustomize.toolkit.fluxcd.io/name"),
    ]
)
PREFIX = "kaigen.dev/"


class Direct:
    """The API of a cluster, without a network."""

    namespace = "models"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def now(self) -> float:
        assert self.cluster.time is not None
        return self.cluster.time

    def call(
        self, method: str, path: str, body: Object | None = None, kind: str = "", accept: str = ""
    ) -> tuple[int, Object]:
        return self.cluster.answer(method, path, body or {})


def seconds(text: str | None) -> float | None:
    """Return the seconds of a lifetime; None for never."""
    if text is None or not text.isdecimal() or len(text) > 12:
        return None
    return float(text)


def is_tracked(obj: Object) -> bool:
    return any(
        word in key
        for field in ("labels", "annotations")
        for key in obj["metadata"].get(field, {})
        for word in ("argocd.argoproj.io", "fluxcd.io")
    )


def end_of(job: Object | None) -> tuple[float, bool] | None:
    if job is None or job["metadata"]["labels"].get(f"{PREFIX}expires") != "true":
        return None
    for each in job["status"]["conditions"]:
        if each["type"] in ("Complete", "Failed"):
            return datetime.fromisoformat(each["lastTransitionTime"]).timestamp(), each["type"] == "Failed"
    return None


def has_expired(job: Object | None, annotations: dict[str, str], name: str, failed_name: str, now: float) -> bool:
    """Return whether the time is over that annotations set from the end of a Job."""
    values = [annotations.get(PREFIX + name, "never"), annotations.get(PREFIX + failed_name, "never")]
    if any(value != "never" and seconds(value) is None for value in values):
        return False
    end = end_of(job)
    if end is None:
        return False
    text = annotations.get(PREFIX + name)
    if end[1] and PREFIX + failed_name in annotations:
        text = annotations[PREFIX + failed_name]
    ttl = seconds(text)
    return ttl is not None and now >= end[0] + ttl


def pod_may_go(cluster: Cluster, pod: Object) -> bool:
    """Return whether the reaper may delete a pod, by the plain objects."""
    owners = [each for each in pod["metadata"].get("ownerReferences", []) if each.get("controller")]
    if not owners or pod["status"]["phase"] not in ("Succeeded", "Failed") or is_tracked(pod):
        return False
    job = cluster.get("jobs", owners[0]["name"], pod["metadata"]["namespace"])
    if job is None or job["metadata"]["uid"] != owners[0]["uid"]:
        return False
    annotations = job["metadata"]["annotations"]
    return has_expired(job, annotations, "pod-ttl", "failed-pod-ttl", cluster.now())


def held_volumes(cluster: Cluster, pod: Object) -> set[tuple[str, str]]:
    """Return the volumes that a finished pod of a Job holds, each with the name of the Job."""
    owners = [each for each in pod["metadata"].get("ownerReferences", []) if each.get("controller")]
    if not owners or pod["status"]["phase"] not in ("Succeeded", "Failed") or is_tracked(pod):
        return set()
    job = cluster.get("jobs", owners[0]["name"], pod["metadata"]["namespace"])
    if job is None or job["metadata"]["uid"] != owners[0]["uid"]:
        return set()
    return {(each["persistentVolumeClaim"]["claimName"], owners[0]["name"]) for each in pod["spec"]["volumes"]}


def volume_may_go(cluster: Cluster, volume: Object) -> bool:
    """Return whether the reaper may delete a volume, by the plain objects."""
    metadata = volume["metadata"]
    if metadata["labels"].get(f"{PREFIX}expires") != "true" or is_tracked(volume):
        return False
    for (plural, namespace, _), pod in cluster.objects.items():
        if plural == "pods" and namespace == metadata["namespace"]:
            claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"]]
            if metadata["name"] in claims and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                return False
    annotations = metadata["annotations"]
    if at := annotations.get(f"{PREFIX}expires-at"):
        return at.endswith("Z") and cluster.now() >= datetime.fromisoformat(at).timestamp()
    job = cluster.get("jobs", annotations.get(f"{PREFIX}job", ""), metadata["namespace"])
    return has_expired(job, annotations, "ttl", "failed-ttl", cluster.now())


JUDGES: dict[str, Callable[[Cluster, Object], bool]] = {"pods": pod_may_go, CLAIMS: volume_may_go}


class Judged(Cluster):
    """A cluster that judges each object at the moment of its deletion.

    Attributes:
        changes: plural, name and kind of changes that happen just before the next deletion.
        freed: name of the last volume that was deleted, and of its Job. The pods that hold it may go.
    """

    changes: list[tuple[str, str, str]]
    freed: tuple[str, str]

    def _answer(self, method: str, path: str, body: Object) -> tuple[int, Object]:
        if method != "DELETE":
            return super()._answer(method, path, body)
        self._interfere()
        *_, namespace, plural, name = path.split("/")
        found = self.get(plural, name, namespace)
        may_go = found is not None and JUDGES[plural](self, found)
        if found is not None and plural == "pods":
            may_go |= self.freed in held_volumes(self, found)
        status, answer = super()._answer(method, path, body)
        assert may_go or status != 200, path
        if found is not None and plural == CLAIMS and status == 200:
            self.freed = name, found["metadata"]["annotations"].get(f"{PREFIX}job", "")
        assert set(body["preconditions"]) == {"uid", "resourceVersion"}
        return status, answer

    def _interfere(self) -> None:
        while self.changes:
            plural, name, how = self.changes.pop()
            if (obj := self.get(plural, name)) is None:
                continue
            metadata = obj["metadata"]
            if how == "replace":
                self.remove(plural, name)
                metadata.pop("uid")
                metadata["annotations"] = {}
                metadata.pop("ownerReferences", None)
            elif how == "track":
                metadata["annotations"]["argocd.argoproj.io/tracking-id"] = "x"
            elif plural == CLAIMS:
                metadata["annotations"][f"{PREFIX}expires-at"] = rfc3339(self.now() + 1000)
            self.put(plural, obj)


class Histories(RuleBasedStateMachine):
    """A cluster with Jobs, pods and volumes of few names, and a reaper."""

    @initialize()
    def begin(self) -> None:
        self.cluster = Judged(time=START)
        self.cluster.changes, self.cluster.freed = [], ("", "")
        self.asleep, self.rerun = 0, ""
        self.restart()

    @rule()
    def restart(self) -> None:
        """A new process that knows nothing."""
        api: Any = Direct(self.cluster)
        self.metrics = Metrics()
        self.index = Index()
        options = Options(rate=10_000, page=2, retry=30, recheck=60)
        self.reaper = Reaper(api, self.index, options, self.metrics, Events(api, self.metrics, "test"))
        self.followers = {
            plural: Follower(api, self.index, kind, "", page=2, metrics=self.metrics)
            for plural, kind in (("jobs", JOBS), (CLAIMS, VOLUMES))
        }
        self.place = 0
        self.is_listed = False
        self.relist()

    @rule()
    def relist(self) -> None:
        place = len(self.cluster.history)
        with contextlib.suppress(ApiUnavailable):
            for follower in self.followers.values():
                follower.list()
            self.place, self.is_listed = place, True

    @rule(
        name=NAMES,
        ttl=TTLS,
        failed=TTLS,
        ours=st.sampled_from(["true", "true", "true", "false"]),
        end=st.sampled_from([None, "Complete", "Complete", "Failed"]),
        ago=st.sampled_from([0, 0, 4, 59]),
        recreate=st.booleans(),
    )
    def job(self, name: str, ttl: str, failed: str, ours: str, end: str | None, ago: int, recreate: bool) -> None:
        if recreate:
            self.delete_job(name)
        annotations: dict[str, Any] = {
            key: text for key, text in (("pod_ttl", ttl), ("failed_pod_ttl", failed)) if text
        }
        ended = self.cluster.now() - ago if end else None
        labels = {f"{PREFIX}expires": ours}
        add_job(self.cluster, name, ended=ended, failed=end == "Failed", labels=labels, **annotations)

    def delete_job(self, name: str) -> None:
        """Delete a Job, and keep its pods for a while, as the garbage collector may."""
        if self.cluster.get("jobs", name):
            self.cluster.remove("jobs", name)

    @rule(
        name=st.sampled_from(PODS),
        job=NAMES,
        phase=st.sampled_from(["Running", "Succeeded", "Succeeded", "Failed"]),
        claim=st.sampled_from(["", "a", "b"]),
        tracked=st.sampled_from([False, False, True]),
    )
    def pod(self, name: str, job: str, phase: str, claim: str, tracked: bool) -> None:
        add_pod(self.cluster, name, self.cluster.get("jobs", job), phase=phase, claim=claim)
        if tracked:
            self.track("pods", name, ("annotations", "argocd.argoproj.io/tracking-id"))

    @rule(name=NAMES, job=NAMES, ttl=TTLS, failed=TTLS)
    def volume(self, name: str, job: str, ttl: str, failed: str) -> None:
        annotations = {key: text for key, text in (("ttl", ttl), ("failed_ttl", failed)) if text}
        add_volume(self.cluster, name, job=job, **annotations)

    @rule(name=NAMES, at=st.sampled_from(["soon", "past", "nonsense", "2026-01-01T00:00:00"]))
    def volume_with_a_time(self, name: str, at: str) -> None:
        times = {"soon": rfc3339(self.cluster.now() + 50), "past": rfc3339(self.cluster.now() - 50)}
        add_volume(self.cluster, name, expires_at=times.get(at, at))

    @rule(
        name=NAMES,
        ttls=st.tuples(TTLS, TTLS, TTLS, TTLS),
        end=st.sampled_from(["Complete", "Failed"]),
        ago=st.sampled_from([0, 4, 59, 100]),
        pods=st.lists(st.sampled_from(["Succeeded", "Failed", "Running"]), min_size=1, max_size=3),
        claim=st.sampled_from(["", "", "a", "b"]),
        tracked=st.sampled_from(["", "", "p0", "a", "b"]),
        recreate=st.booleans(),
    )
    def ended_run(
        self,
        name: str,
        ttls: tuple[str, str, str, str],
        end: str,
        ago: int,
        pods: list[str],
        claim: str,
        tracked: str,
        recreate: bool,
    ) -> None:
        """A Job that ended, with its pods and its volume."""
        self.job(name, ttls[0], ttls[1], "true", None, 0, recreate)
        for number, phase in enumerate(pods):
            self.pod(PODS[number], name, phase, claim, tracked == PODS[number])
        self.volume(name, name, ttls[2], ttls[3])
        if tracked == name:
            self.track(CLAIMS, name, ("labels", "kustomize.toolkit.fluxcd.io/name"))
        self.job(name, ttls[0], ttls[1], "true", end, ago, recreate=ago == 100)

    @rule(plural=st.sampled_from(["pods", CLAIMS]), name=st.sampled_from(["a", "b", *PODS]), how=TRACKING)
    def track(self, plural: str, name: str, how: tuple[str, str]) -> None:
        if obj := self.cluster.get(plural, name):
            obj["metadata"].setdefault(how[0], {})[how[1]] = "x"
            self.cluster.put(plural, obj)

    @rule(seconds=st.sampled_from([1, 3, 5, 29, 60]))
    def later(self, seconds: int) -> None:
        assert self.cluster.time is not None
        self.cluster.time += seconds

    @rule(statuses=st.lists(FAULTS, max_size=5), expired=st.integers(0, 2))
    def faults(self, statuses: list[int], expired: int) -> None:
        self.cluster.statuses, self.cluster.expired = statuses, expired

    @rule(
        changes=st.lists(
            st.tuples(
                st.sampled_from(["pods", CLAIMS]),
                st.sampled_from(["a", "b", *PODS]),
                st.sampled_from(["replace", "track", "touch"]),
            ),
            max_size=4,
        )
    )
    def change_in_between(self, changes: list[tuple[str, str, str]]) -> None:
        self.cluster.changes = changes

    @rule(job=NAMES)
    def run_again_before_a_deletion(self, job: str) -> None:
        """A Job runs again, after what the watch has seen and before the volumes are looked at."""
        self.rerun = job

    @rule(steps=st.integers(1, 4))
    def sleep(self, steps: int) -> None:
        self.asleep = steps

    @invariant()
    def work(self) -> None:
        """The reaper works after each change, unless it sleeps."""
        self.asleep -= 1
        if self.asleep < 0:
            self.reap(sweep=False)

    @rule()
    def sweep(self) -> None:
        self.reap(sweep=True)

    def reap(self, sweep: bool) -> None:
        if not self.is_listed:
            return
        self._deliver()
        if self.rerun:
            self._run_again(self.rerun)
            self.rerun = ""
        with contextlib.suppress(ApiUnavailable):
            if sweep:
                self.reaper.sweep("")
            self.reaper.reap_due_volumes()
            self.reaper.reap_due_jobs()

    def _run_again(self, name: str) -> None:
        """Replace a Job by a new one. Pods of the old one are garbage, of which nothing is asked: they are removed."""
        if old := self.cluster.get("jobs", name):
            uid = old["metadata"]["uid"]
            for plural, _, pod in list(self.cluster.objects):
                found = self.cluster.get(plural, pod) if plural == "pods" else None
                if found and any(each["uid"] == uid for each in found["metadata"].get("ownerReferences", [])):
                    self.cluster.remove(plural, pod)
            self.cluster.remove("jobs", name)
        add_job(self.cluster, name)

    def _deliver(self) -> None:
        """Deliver what the watches have seen."""
        for plural, type_, obj in self.cluster.history[self.place :]:
            if plural in self.followers:
                self.followers[plural]._apply({"type": type_, "object": obj})
        self.place = len(self.cluster.history)

    def teardown(self) -> None:
        """In the end, everything that may go is gone."""
        if not hasattr(self, "cluster"):
            return
        self.cluster.statuses, self.cluster.expired, self.cluster.changes = [], 0, []
        if not self.is_listed:
            self.relist()
        for _ in range(3):
            self.reap(sweep=False)
            self.later(61)
        # A pod that was created after its Job ended is found by the next look at all pods.
        self.reap(sweep=True)
        assert not [key for key, obj in self.cluster.objects.items() if self._may_go(key[0], obj)]

    def _may_go(self, plural: str, obj: Object) -> bool:
        return plural in JUDGES and JUDGES[plural](self.cluster, obj)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=3 * settings().max_examples, stateful_step_count=40)
