"""What starts, stops, restarts and scales."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.diff.diff_cases import container, deployment, job, obj, stateful, template, with_
from tests.unit.diff.rule_cases.objects import Case, hpa, keda, lws, ray

TTL = "Argo CD or Flux then runs it again, endlessly"
WEB = deployment(replicas=2)
RUN = "spec/template/spec/containers/0"

QUEUED = {"kueue.x-k8s.io/queue-name": "a"}
QUEUED_GROUPS = with_(lws(), "metadata/labels", QUEUED)
QUEUED_SET = with_(stateful(replicas=1), "metadata/labels", QUEUED)
GROUP_POD = "spec/leaderWorkerTemplate/workerTemplate/spec"
FORCED = {"argocd.argoproj.io/sync-options": "Force=true"}

WRITER = template(
    container(
        volumeMounts=[
            {"name": "output", "mountPath": "/output"},
            {"name": "model", "mountPath": "/model", "readOnly": True},
        ]
    ),
    container(args=["fetch"], volumeMounts=[{"name": "weights", "mountPath": "/weights"}]),
    volumes=[
        {"name": name, "persistentVolumeClaim": {"claimName": f"run-{name}"}} for name in ("output", "model", "weights")
    ],
)


def _claim(ttl: str, size: str, name: str = "run-1a2b3c4d") -> dict[str, Any]:
    """Return a Job that creates a volume."""
    metadata = {"name": "run-output", "annotations": {"kaigen.dev/ttl": ttl, "kaigen.dev/failed-ttl": "never"}}
    volume = {"metadata": metadata, "spec": {"resources": {"requests": {"storage": size}}}}
    return job(name, template(container(args=["claim", f"--volume={json.dumps(volume)}"])))


SCRATCH = template(
    container(volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}]), volumes=[{"name": "scratch", "emptyDir": {}}]
)

CASES: list[Case] = [
    Case(
        "pod-ttl",
        "pods that expire",
        job(),
        with_(job(), "metadata/annotations", {"kaigen.dev/pod-ttl": "60", "kaigen.dev/failed-pod-ttl": "never"}),
        [("info", "time until pods of a completed run are deleted: from never to 60 s, no new run")],
    ),
    Case(
        "volume-ttl",
        "a volume with another lifetime and size",
        _claim("60", "1Gi"),
        _claim("90", "2Gi", "run-5e6f7a8b"),
        [
            ("notice", "a volume run-output that exists keeps its size, class and access modes"),
            ("info", "time until volume run-output is deleted after a completed run: from 60 s to 90 s"),
        ],
    ),
    Case(
        "new-run",
        "another image and another variable",
        job(pod=template(container(env=[{"name": "EPOCHS", "value": "3"}]))),
        job("run-5e6f7a8b", template(container(image="repo/app:v2", env=[{"name": "EPOCHS", "value": "5"}]))),
        [("notice", "new run: Job run-1a2b3c4d ends, Job run-5e6f7a8b starts (image and env EPOCHS changed)")],
    ),
    Case(
        "new-run",
        "a name alone",
        job(),
        job("run-5e6f7a8b"),
        [("notice", "new run: Job run-1a2b3c4d ends, Job run-5e6f7a8b starts")],
    ),
    Case(
        "new-run",
        "the same volumes, of which one is written",
        job(pod=WRITER),
        job("run-5e6f7a8b", pod=WRITER),
        [
            ("notice", "new run: Job run-1a2b3c4d ends, Job run-5e6f7a8b starts"),
            (
                "info",
                "if Job run-1a2b3c4d still runs, it writes to PersistentVolumeClaim run-output until its pods "
                "have ended",
            ),
        ],
    ),
    Case(
        "new-run",
        "a volume that ends with its pod",
        job(pod=SCRATCH),
        job("run-5e6f7a8b", pod=SCRATCH),
        [("notice", "new run: Job run-1a2b3c4d ends, Job run-5e6f7a8b starts")],
    ),
    Case(
        "new-run",
        "a suspended one",
        job(),
        job("run-5e6f7a8b", suspend=True),
        [("notice", "new run: Job run-1a2b3c4d ends, Job run-5e6f7a8b is created suspended (suspend changed)")],
    ),
    Case("run-added", "a Job", None, job(), [("info", "first run: Job run-1a2b3c4d starts")]),
    Case(
        "run-added",
        "a suspended Job",
        None,
        job(suspend=True),
        [("info", "Job run-1a2b3c4d is created suspended and waits to be resumed")],
    ),
    Case(
        "run-removed",
        "a Job",
        job(),
        None,
        [("notice", "Job run-1a2b3c4d and its pods are deleted, running or finished")],
    ),
    Case(
        "run-controls",
        "a Job that is suspended",
        job(parallelism=1),
        job(parallelism=2, suspend=True),
        [("notice", "suspended: running pods are stopped"), ("info", "parallel pods: from 1 to 2, no new run")],
    ),
    *(
        Case(
            "run-controls",
            label,
            with_(job(), f"spec/{field}", 1),
            with_(job(), f"spec/{field}", 2),
            [("info", f"{label}: from 1 to 2, no new run")],
        )
        for field, label in (
            ("parallelism", "parallel pods"),
            ("activeDeadlineSeconds", "deadline in seconds"),
            ("backoffLimit", "retries"),
        )
    ),
    Case("run-controls", "a Job that is resumed", job(suspend=True), job(), [("notice", "resumed: its pods start")]),
    Case(
        "run-ttl",
        "a TTL that comes",
        job(),
        job(ttlSecondsAfterFinished=60),
        [("danger", f"it is deleted 60 s after it finishes (ttlSecondsAfterFinished), and {TTL}")],
    ),
    Case("run-ttl", "a TTL that stays", job(ttlSecondsAfterFinished=60), job("b", ttlSecondsAfterFinished=60), []),
    Case(
        "run-ttl",
        "a Helm hook",
        None,
        job(ttlSecondsAfterFinished=60) | {"metadata": {"name": "x", "annotations": {"helm.sh/hook": "test"}}},
        [],
    ),
    Case(
        "cron",
        "another time and another template",
        obj(
            "CronJob",
            "c",
            "batch/v1",
            spec={"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": template()}}},
        ),
        obj(
            "CronJob",
            "c",
            "batch/v1",
            spec={
                "schedule": "0 2 * * *",
                "suspend": True,
                "jobTemplate": {"spec": {"template": template(container(command=["b"]))}},
            },
        ),
        [
            ("notice", "runs at 0 2 * * * instead of 0 1 * * *"),
            ("notice", "suspended: no further runs start"),
            ("info", "the next run uses it; a run in progress continues unchanged: command changed"),
        ],
    ),
    Case(
        "restart",
        "another image",
        WEB,
        with_(WEB, f"{RUN}/image", "b"),
        [("notice", "pods restart (rolling): image changed")],
    ),
    Case(
        "restart",
        "a pod label",
        WEB,
        with_(WEB, "spec/template/metadata", {"labels": {"a": "b"}}),
        [("notice", "pods restart (rolling): pod metadata changed")],
    ),
    Case(
        "restart",
        "a volume",
        deployment(pod=template(volumes=[{"name": "v", "emptyDir": {}}])),
        deployment(pod=template(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}])),
        [("notice", "pods restart (rolling): volume v changed")],
    ),
    Case(
        "restart",
        "a Deployment that recreates",
        deployment(strategy={"type": "Recreate"}),
        deployment(strategy={"type": "Recreate"}, pod=template(container(args=["b"]))),
        [("notice", "pods restart (all at once: Recreate stops the old ones first): args changed")],
    ),
    Case(
        "restart",
        "a StatefulSet that waits for hands",
        stateful(updateStrategy={"type": "OnDelete"}),
        with_(stateful(updateStrategy={"type": "OnDelete"}), f"{RUN}/args", ["b"]),
        [("notice", "pods change only when they are deleted manually (OnDelete): args changed")],
    ),
    Case(
        "restart",
        "a paused Deployment",
        deployment(paused=True),
        deployment(paused=True, pod=template(container(args=["b"]))),
        [("notice", "pods restart once the paused Deployment is resumed: args changed")],
    ),
    Case(
        "restart",
        "a Deployment that sleeps",
        deployment(replicas=0),
        deployment(replicas=0, pod=template(container(args=["b"]))),
        [("info", "no pod runs (0 replicas); new pods use it: args changed")],
    ),
    Case(
        "restart",
        "a group",
        lws(),
        lws(image="b@sha256:" + "b" * 64),
        [("notice", "pods restart (rolling, group by group): image changed")],
    ),
    Case("restart", "replicas alone", WEB, deployment(replicas=4), []),
    Case("restart", "a group's size", lws(), lws(size=4), []),
    Case("scale", "more", WEB, deployment(replicas=4), [("info", "scales from 2 to 4, no restart")]),
    Case("scale", "none", WEB, deployment(replicas=0), [("notice", "scales from 2 to 0: it stops")]),
    Case("scale", "groups", lws(), lws(replicas=2), [("info", "scales from 1 to 2 groups, no restart")]),
    Case(
        "scale",
        "replicas left to a scaler",
        WEB,
        deployment(),
        [("info", "replicas (2) are no longer set here: the autoscaler decides")],
    ),
    Case(
        "scale",
        "replicas left to what a notebook does when it is idle",
        WEB,
        with_(deployment(), "metadata/annotations", {"kaigen.dev/scaled-by": "idle, hours"}),
        [("info", "replicas (2) are no longer set here: the cluster (idle, hours) decides")],
    ),
    Case(
        "scale",
        "replicas against a scaler",
        deployment(),
        WEB,
        [("notice", "every sync resets replicas to 2, against HorizontalPodAutoscaler web")],
        (hpa(1, 4),),
    ),
    Case(
        "scale",
        "replicas against a scaler of a Deployment that does not name its kind",
        deployment(),
        WEB,
        [("notice", "every sync resets replicas to 2, against ScaledObject web")],
        (keda(),),
    ),
    Case(
        "scale",
        "replicas next to a scaler of another kind",
        deployment(),
        WEB,
        [("info", "scales from 1 to 2, no restart")],
        (with_(hpa(1, 4), "spec/scaleTargetRef/kind", "StatefulSet"),),
    ),
    Case("scale", "replicas without a scaler", deployment(), WEB, [("info", "scales from 1 to 2, no restart")]),
    Case("scale", "one replica, now written", deployment(), deployment(replicas=1), []),
    Case(
        "group-size",
        "larger groups",
        lws(),
        lws(size=4),
        [("notice", "group size changes from 2 to 4 pods: every pod is recreated, group by group")],
    ),
    Case("serving-added", "a Deployment", None, WEB, [("info", "starts 2 pods")]),
    Case("serving-added", "groups", None, lws(), [("notice", "starts 1 group of 2 pods that work as one")]),
    Case(
        "serving-added",
        "no replicas",
        None,
        deployment(replicas=0),
        [("info", "is created with 0 replicas: nothing starts")],
    ),
    Case("serving-added", "unsaid replicas", None, deployment(), [("info", "starts")]),
    Case("serving-removed", "a Deployment", WEB, None, [("notice", "it stops: its pods are deleted")]),
    Case(
        "serving-renamed",
        "a Deployment",
        deployment("a"),
        deployment("b"),
        [("notice", "Deployment a stops and Deployment b starts: no pods are reused")],
    ),
    Case(
        "ray-service",
        "another image",
        ray(),
        ray(image="ray:2"),
        [
            (
                "notice",
                "a second Ray cluster starts and takes over the traffic once it is ready: both need "
                "capacity: image changed",
            )
        ],
    ),
    Case("ray-service", "more workers", ray(), ray(replicas=2), [("info", "Ray workers scale, no restart")]),
    Case(
        "ray-service",
        "applications",
        ray(),
        ray(serve="b"),
        [("notice", "Ray Serve reloads its applications in place")],
    ),
    Case(
        "queue",
        "another queue",
        obj("Job", "j", "batch/v1", metadata={"labels": {"kueue.x-k8s.io/queue-name": "a"}}),
        obj("Job", "j", "batch/v1", metadata={"labels": {"kueue.x-k8s.io/queue-name": "b"}}),
        [
            ("danger", "is rejected by Kueue once its pods run; then delete Job j first"),
            ("notice", "waits in Kueue's queue b instead of a"),
        ],
    ),
    Case(
        "queue",
        "no queue",
        obj("Job", "j", "batch/v1", metadata={"labels": {"kueue.x-k8s.io/queue-name": "a"}}),
        obj("Job", "j", "batch/v1"),
        [
            ("danger", "is rejected by Kueue once its pods run; then delete Job j first"),
            ("notice", "leaves Kueue's queue a: it no longer waits for quota"),
        ],
    ),
    Case(
        "queue",
        "no queue of groups, and no priority",
        with_(QUEUED_GROUPS, "metadata/labels", {**QUEUED, "kueue.x-k8s.io/priority-class": "high"}),
        with_(QUEUED_GROUPS, "metadata/labels", {}),
        [
            (
                "danger",
                "will be rejected: Kueue does not let it lose its priority class; delete LeaderWorkerSet llm first",
            ),
            ("danger", "will be rejected: Kueue does not let its queue change; delete LeaderWorkerSet llm first"),
            ("notice", "leaves Kueue's queue a: it no longer waits for quota"),
        ],
    ),
    Case(
        "queue",
        "a first queue of a LeaderWorkerSet",
        lws(),
        QUEUED_GROUPS,
        [
            ("danger", "is rejected by Kueue once its pods run; then delete LeaderWorkerSet llm first"),
            ("notice", "waits in Kueue's queue a"),
        ],
    ),
    Case(
        "admitted",
        "more nodes of queued groups",
        QUEUED_GROUPS,
        with_(QUEUED_GROUPS, "spec/leaderWorkerTemplate/size", 3),
        [
            (
                "danger",
                "will be rejected: Kueue does not let the size of a group change in place; "
                "delete LeaderWorkerSet llm first",
            )
        ],
    ),
    Case(
        "admitted",
        "memory of queued groups",
        QUEUED_GROUPS,
        with_(QUEUED_GROUPS, f"{GROUP_POD}/containers/0/resources/requests/memory", "2Gi"),
        [
            (
                "danger",
                "will be rejected: Kueue does not let resource requests change in place; "
                "delete LeaderWorkerSet llm first",
            )
        ],
    ),
    Case(
        "admitted",
        "replicas and nodes of a queued StatefulSet",
        QUEUED_SET,
        with_(with_(QUEUED_SET, "spec/replicas", 2), "spec/template/spec/nodeSelector", {"gpu": "L4"}),
        [
            (
                "danger",
                "will be rejected: Kueue does not let replicas and nodeSelector change in place; "
                "delete StatefulSet db first",
            )
        ],
    ),
    Case(
        "admitted",
        "a forced change",
        QUEUED_SET,
        with_(with_(QUEUED_SET, "spec/replicas", 2), "metadata/annotations", FORCED),
        [("notice", "is deleted and created again: Kueue does not let replicas change in place, and force is set")],
    ),
    Case(
        "scale",
        "a queued StatefulSet to zero",
        QUEUED_SET,
        with_(QUEUED_SET, "spec/replicas", 0),
        [("notice", "scales from 1 to 0: it stops")],
    ),
    Case(
        "restart",
        "the image of queued groups",
        QUEUED_GROUPS,
        with_(QUEUED_GROUPS, f"{GROUP_POD}/containers/0/image", "b@sha256:" + "b" * 64),
        [("notice", "pods restart (rolling, group by group): image changed")],
    ),
]
