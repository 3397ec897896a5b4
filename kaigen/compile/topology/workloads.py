"""What holds the pods of a Topology: a Deployment, StatefulSets, or a LeaderWorkerSet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.topology.parallel import Parallel
from kaigen.kinds.serving import CountOrShare, Rollout

WAVE = 3
SERVE = "serve"
WORKER = "worker"
_COUNT_OR_SHARE = {"type": ["integer", "string"]}


@dataclass(frozen=True, slots=True)
class Fleet:
    """What all workloads of an app have in common.

    Attributes:
        frame: the app.
        labels: more labels of the workload itself.
        annotations: of its pods.
        replicas: how many copies; None where a scaler decides.
        rollout: how a change reaches the pods.
        surge: another copy may start before an old one goes.
        startup: longest time until a pod is ready, in seconds.
        claims: templates of the volumes that each pod owns.
        retain: keep those volumes.
    """

    frame: Frame
    labels: Mapping[str, Tree]
    annotations: Mapping[str, str]
    replicas: int | None
    rollout: Rollout
    surge: bool
    startup: int
    claims: tuple[Tree, ...] = ()
    retain: bool = False

    def replica_count(self) -> dict[str, Tree]:
        """The field `replicas`; none where a scaler decides."""
        if self.replicas is None:
            return {}
        return {
            "replicas": settings.count(
                "replicas", self.replicas, "Copies of the model.", origin=("spec", "shape", "replicas")
            )
        }

    def template(self, pod: Mapping[str, Tree], component: str = SERVE) -> dict[str, Tree]:
        """A pod template."""
        return {
            "metadata": {
                "labels": self.frame.selector(component),
                **({"annotations": dict(self.annotations)} if self.annotations else {}),
            },
            "spec": dict(pod),
        }

    def moving(self) -> dict[str, Tree]:
        """How many may be away, and how many more there may be, while a change reaches the pods."""
        surge: CountOrShare | None = self.rollout.max_surge
        away: CountOrShare | None = self.rollout.max_unavailable
        if surge is None:
            surge = 1 if self.surge and away in (None, 0, "0%") else 0
        if away is None:
            away = 1 if surge in (0, "0%") else 0
        return {
            "maxSurge": Setting(
                "rollout.maxSurge",
                surge,
                "Copies above the wanted number while a change reaches the pods.",
                _COUNT_OR_SHARE,
                origin=("spec", "rollout", "maxSurge"),
            ),
            "maxUnavailable": Setting(
                "rollout.maxUnavailable",
                away,
                "Copies that may be away meanwhile.",
                _COUNT_OR_SHARE,
                origin=("spec", "rollout", "maxUnavailable"),
            ),
        }

    def retention(self) -> dict[str, Tree]:
        """What becomes of the volumes that pods own."""
        if not self.claims:
            return {}
        policy = "Retain" if self.retain else "Delete"
        return {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy}}


def deployment(fleet: Fleet, pod: Mapping[str, Tree]) -> Object:
    """Pods that own nothing."""
    return Object(
        role="deployment",
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": fleet.frame.metadata("", SERVE, wave=WAVE, labels=fleet.labels),
            "spec": {
                **fleet.replica_count(),
                # Above the time to load, else a rollout counts as failed while it is still loading.
                "progressDeadlineSeconds": settings.count(
                    "progressDeadlineSeconds",
                    fleet.startup + 600,
                    "Time after which a rollout counts as failed; above that of loading.",
                ),
                "revisionHistoryLimit": 3,
                "selector": {"matchLabels": fleet.frame.selector(SERVE)},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": fleet.moving()},
                "template": fleet.template(pod),
            },
        },
    )


def stateful_set(fleet: Fleet, pod: Mapping[str, Tree]) -> Object:
    """Pods that each own a volume, one node a copy."""
    return _stateful(
        fleet,
        pod,
        role="statefulset",
        suffix="",
        component=SERVE,
        counts=fleet.replica_count(),
        own={},
    )


def _stateful(
    fleet: Fleet,
    pod: Mapping[str, Tree],
    *,
    role: str,
    suffix: str,
    component: str,
    counts: Mapping[str, Tree],
    own: Mapping[str, Tree],
) -> Object:
    """A StatefulSet.

    Args:
        fleet: what all have in common.
        pod: the pod's spec.
        role: the object's role.
        suffix: ending of its name.
        component: value of its pods' component label.
        counts: its `replicas`, and at which number they begin.
        own: further labels of its pods, by which its selector tells them from those of its likes.
    """
    selector = fleet.frame.selector(component)
    labels = type(selector)(selector.common, {**selector.own, **own}, selector.helper)
    template = fleet.template(pod, component)
    template["metadata"] = {**template["metadata"], "labels": labels}  # type: ignore[dict-item]
    return Object(
        role=role,
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": fleet.frame.metadata(suffix, component, wave=WAVE, labels=fleet.labels),
            "spec": {
                **counts,
                "serviceName": Release("-nodes"),
                "podManagementPolicy": "Parallel",
                "revisionHistoryLimit": 3,
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "RollingUpdate"},
                **fleet.retention(),
                "template": template,
                **({"volumeClaimTemplates": list(fleet.claims)} if fleet.claims else {}),
            },
        },
    )


def groups_of_sets(
    fleet: Fleet,
    parallel: Parallel,
    copies: int,
    leader: Mapping[int, Mapping[str, Tree]],
    worker: Mapping[int, Mapping[str, Tree]],
) -> list[Object]:
    """Copies over several nodes where there is no LeaderWorkerSet: for each a set of one leader and one of its workers.

    Args:
        fleet: what all have in common.
        parallel: how one copy spreads.
        copies: how many.
        leader: spec of the leader's pod, by copy.
        worker: spec of the workers' pods, by copy.
    """
    made = []
    for copy in range(copies):
        own = {"kaigen.dev/group": str(copy)}
        made.append(
            _stateful(
                fleet,
                leader[copy],
                role=f"statefulset-{copy}",
                suffix=f"-{copy}",
                component=SERVE,
                counts={"replicas": 1},
                own=own,
            )
        )
        made.append(
            _stateful(
                fleet,
                worker[copy],
                role=f"statefulset-{copy}-workers",
                suffix=f"-{copy}-workers",
                component=WORKER,
                counts={"replicas": parallel.nodes - 1, "ordinals": {"start": 1}},
                own=own,
            )
        )
    return made


def leader_worker_set(
    fleet: Fleet, parallel: Parallel, leader: Mapping[str, Tree], worker: Mapping[str, Tree]
) -> Object:
    """Copies over several nodes; when a pod of one goes, all of its pods start anew together."""
    return Object(
        role="leaderworkerset",
        wave=WAVE,
        body={
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": fleet.frame.metadata("", SERVE, wave=WAVE, labels=fleet.labels),
            "spec": {
                **fleet.replica_count(),
                "startupPolicy": "LeaderCreated",
                "rolloutStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdateConfiguration": fleet.moving(),
                },
                "leaderWorkerTemplate": {
                    "size": parallel.nodes,
                    "restartPolicy": "RecreateGroupOnPodRestart",
                    "leaderTemplate": fleet.template(leader),
                    "workerTemplate": fleet.template(worker, WORKER),
                    **fleet.retention(),
                    **({"volumeClaimTemplates": list(fleet.claims)} if fleet.claims else {}),
                },
            },
        },
    )
