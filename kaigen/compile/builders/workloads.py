"""Workloads that serve: a Deployment, StatefulSets, or a LeaderWorkerSet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.setting_expressions import Unless
from kaigen.kinds.operation import CountOrShare, Rollout

WAVE = 3
SERVE = "serve"
WORKER = "worker"
POD_SUFFIX: Mapping[str, str] = {
    # The hash of the ReplicaSet, and five characters; none is a vowel (source: k8s.io/apimachinery, pkg/util/rand). The
    # API server cuts long names before these five, with the hyphen.
    "Deployment": "[b-df-hj-np-tv-z2456789]{1,10}-?[b-df-hj-np-tv-z2456789]{5}",
    "StatefulSet": "[0-9]+",
    # Its workers do not serve; they are called NAME-GROUP-INDEX.
    "LeaderWorkerSet": "[0-9]+",
}
"""Ends of the names of the pods that serve, by the kind of the workload: other apps' names may begin alike."""

_COUNT_OR_SHARE = {"type": ["integer", "string"]}


def autoscaling_switch() -> Setting:
    """Return the setting that decides whether a scaler sets the number of replicas."""
    return settings.flag("autoscaling.enabled", True, "Let the number of replicas follow the load.")


class WorkloadSettings(Struct, frozen=True):
    """Settings that all workloads of an app share.

    Attributes:
        frame: the app.
        labels: further labels of the workload itself.
        annotations: annotations of its pods.
        replicas: number of replicas; with a scaler, its least number.
        scaled: whether a scaler decides.
        rollout: how a change reaches the pods.
        surge: whether a new replica may start before an old one stops.
        startup: longest time until a pod is ready, in seconds.
        claims: templates of the volumes that each pod owns.
        retain: whether those volumes outlive their pods.
    """

    frame: Frame
    labels: Mapping[str, Tree]
    annotations: Mapping[str, str]
    replicas: int
    scaled: bool
    rollout: Rollout
    surge: bool
    startup: int
    claims: tuple[Tree, ...] = ()
    retain: bool = False

    def replica_count(self) -> dict[str, Tree]:
        """Return the field `replicas`, which is left out where a scaler decides."""
        if self.scaled:
            doc = "Number of replicas without autoscaling."
            count = Setting("replicas", max(1, self.replicas), doc, {"type": "integer", "minimum": 1})
            return {"replicas": Unless(autoscaling_switch(), count)}
        return {
            "replicas": settings.count(
                "replicas", self.replicas, "Number of replicas.", origin=("spec", "shape", "replicas")
            )
        }

    def template(
        self, pod: Mapping[str, Tree], component: str = SERVE, own: Mapping[str, Tree] | None = None
    ) -> dict[str, Tree]:
        """Return a pod template."""
        return {"metadata": self.frame.pod_metadata(component, self.annotations, own), "spec": dict(pod)}

    def rollout_limits(self) -> dict[str, Tree]:
        """Return `maxSurge` and `maxUnavailable` of a rollout."""
        surge: CountOrShare | None = self.rollout.max_surge
        unavailable: CountOrShare | None = self.rollout.max_unavailable
        if surge is None:
            surge = 1 if self.surge and unavailable in (None, 0, "0%") else 0
        if unavailable is None:
            unavailable = 1 if surge in (0, "0%") else 0
        return {
            "maxSurge": Setting(
                "rollout.maxSurge",
                surge,
                "Replicas above the desired number during a rollout.",
                _COUNT_OR_SHARE,
                origin=("spec", "rollout", "maxSurge"),
            ),
            "maxUnavailable": Setting(
                "rollout.maxUnavailable",
                unavailable,
                "Replicas that may be unavailable during a rollout.",
                _COUNT_OR_SHARE,
                origin=("spec", "rollout", "maxUnavailable"),
            ),
        }

    def retention(self) -> dict[str, Tree]:
        """Return what happens to the volumes that pods own."""
        if not self.claims:
            return {}
        policy = "Retain" if self.retain else "Delete"
        return {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy}}


def deployment(common: WorkloadSettings, pod: Mapping[str, Tree]) -> Object:
    """Return the Deployment of pods without volumes of their own."""
    return Object(
        role="deployment",
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": common.frame.metadata("", SERVE, wave=WAVE, labels=common.labels),
            "spec": {
                **common.replica_count(),
                # Above the time to load, else a rollout counts as failed while it is still loading.
                "progressDeadlineSeconds": settings.count(
                    "progressDeadlineSeconds",
                    common.startup + 600,
                    "Seconds after which a rollout counts as failed; longer than loading the model takes.",
                ),
                "revisionHistoryLimit": 3,
                "selector": {"matchLabels": common.frame.selector(SERVE)},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": common.rollout_limits()},
                "template": common.template(pod),
            },
        },
    )


def stateful_set(common: WorkloadSettings, pod: Mapping[str, Tree]) -> Object:
    """Return the StatefulSet of pods that each own a volume, with one pod for each replica."""
    return _stateful(common, pod, role="statefulset", suffix="", component=SERVE, counts=common.replica_count(), own={})


def _stateful(
    common: WorkloadSettings,
    pod: Mapping[str, Tree],
    *,
    role: str,
    suffix: str,
    component: str,
    counts: Mapping[str, Tree],
    own: Mapping[str, Tree],
) -> Object:
    """Return a StatefulSet.

    Args:
        common: settings of all workloads of the app.
        pod: the pod's spec.
        role: the object's role.
        suffix: end of its name.
        component: value of its pods' component label.
        counts: its `replicas`, and the first ordinal.
        own: further labels of its pods, which distinguish them from those of its siblings.
    """
    return Object(
        role=role,
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": common.frame.metadata(suffix, component, wave=WAVE, labels=common.labels),
            "spec": {
                **_stateful_fields(common.frame, component, counts, own),
                **common.retention(),
                "template": common.template(pod, component, own),
                **({"volumeClaimTemplates": list(common.claims)} if common.claims else {}),
            },
        },
    )


def _stateful_fields(
    frame: Frame, component: str, counts: Mapping[str, Tree], own: Mapping[str, Tree]
) -> dict[str, Tree]:
    """Return the fields of a StatefulSet besides its template and its volumes."""
    return {
        **counts,
        "serviceName": frame.headless_service,
        # A pod that never becomes ready is replaced, too, when the template changes.
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": frame.selector(component, own)},
        "updateStrategy": {"type": "RollingUpdate"},
    }


def single_stateful_set(
    frame: Frame,
    component: str,
    pod: Mapping[str, Tree],
    replicas: Tree | None,
    *,
    labels: Mapping[str, Tree],
    annotations: Mapping[str, str],
    notes: Mapping[str, Tree] | None = None,
) -> Object:
    """Return the StatefulSet of one pod without volumes of its own.

    Args:
        frame: the app.
        component: value of the component label.
        pod: the pod's spec.
        replicas: 1, or 0 for no pod; None where something in the cluster sets it.
        labels: further labels of the StatefulSet itself.
        annotations: annotations of the pod.
        notes: further annotations of the StatefulSet itself.
    """
    return Object(
        role="statefulset",
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": frame.metadata("", component, wave=WAVE, labels=labels, annotations=notes),
            "spec": {
                **_stateful_fields(frame, component, {} if replicas is None else {"replicas": replicas}, {}),
                "template": {"metadata": frame.pod_metadata(component, annotations), "spec": dict(pod)},
            },
        },
    )


def stateful_set_groups(
    common: WorkloadSettings, nodes: int, leaders: Sequence[Mapping[str, Tree]], workers: Sequence[Mapping[str, Tree]]
) -> list[Object]:
    """Return two StatefulSets for each replica, one of the leader and one of its workers.

    They replace a LeaderWorkerSet in clusters without its controller.

    Args:
        common: settings of all workloads of the app.
        nodes: pods of each replica.
        leaders: spec of the leader's pod, by replica.
        workers: spec of the workers' pods, by replica.
    """
    sets = []
    for index, (leader, worker) in enumerate(zip(leaders, workers, strict=True)):
        own = {"kaigen.dev/group": str(index)}
        sets.append(
            _stateful(
                common,
                leader,
                role=f"statefulset-{index}",
                suffix=f"-{index}",
                component=SERVE,
                counts={"replicas": 1},
                own=own,
            )
        )
        sets.append(
            _stateful(
                common,
                worker,
                role=f"statefulset-{index}-workers",
                suffix=f"-{index}-workers",
                component=WORKER,
                counts={"replicas": nodes - 1, "ordinals": {"start": 1}},
                own=own,
            )
        )
    return sets


def leader_worker_set(
    common: WorkloadSettings, nodes: int, leader: Mapping[str, Tree], worker: Mapping[str, Tree]
) -> Object:
    """Return the LeaderWorkerSet of replicas on several nodes; one failed pod restarts all pods of its replica."""
    # Webhooks that change anything else write this too, and Argo CD compares the list as a whole with Git.
    claims = [{**claim, "status": {}} for claim in common.claims if isinstance(claim, Mapping)]
    return Object(
        role="leaderworkerset",
        wave=WAVE,
        body={
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": common.frame.metadata("", SERVE, wave=WAVE, labels=common.labels),
            "spec": {
                **common.replica_count(),
                "startupPolicy": "LeaderCreated",
                # A headless Service for all replicas would have the name of the app's Service. LeaderWorkerSet takes
                # an existing one for it, and the leaders' host names would not resolve.
                "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
                "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": common.rollout_limits()},
                "leaderWorkerTemplate": {
                    "size": nodes,
                    "restartPolicy": "RecreateGroupOnPodRestart",
                    "leaderTemplate": common.template(leader),
                    "workerTemplate": common.template(worker, WORKER),
                    **common.retention(),
                    **({"volumeClaimTemplates": claims} if claims else {}),
                },
            },
        },
    )
