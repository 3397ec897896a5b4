"""Jobs that are safe in Git: no TTL, a hash in the name, no retries that cannot succeed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.kubectl import kubectl_container, kubectl_pod
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Namespace, Release, Setting, Tree
from kaigen.compile.field_expressions import HashedName
from kaigen.core.json_types import FieldPath

TEST_HOOK = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
"""Annotations of the objects of `helm test`."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str | None) -> int:
    """Return a duration such as `1h30m` in seconds; 0 for None."""
    return sum(int(n) * _UNITS[unit] for n, unit in re.findall(r"([0-9]+)([smhd])", duration or ""))


def failure_policy(
    permanent: Mapping[str, tuple[int, ...]],
    *,
    disruption: Literal["Ignore", "FailJob"] = "Ignore",
    permanent_action: Literal["FailJob", "FailIndex"] = "FailJob",
) -> dict[str, Tree]:
    """Return the policy that fails the Job where a retry cannot succeed.

    Args:
        permanent: exit codes after which a retry cannot succeed, by container.
        disruption: what an evicted pod does: nothing, or fail the Job.
        permanent_action: what a permanent failure fails: the Job, or only the pod's index.
    """
    rules: list[Tree] = [{"action": disruption, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    for container, codes in permanent.items():
        rules.append(
            {
                "action": permanent_action,
                "onExitCodes": {"containerName": container, "operator": "In", "values": list(codes)},
            }
        )
    return {"rules": rules}


class Run(Struct, frozen=True):
    """What a Job runs.

    Attributes:
        frame: the app.
        role: role of the object, and the beginning of its helpers' names in the chart.
        component: value of the component label.
        wave: sync wave of the object.
        pod: spec of the pod.
        retries: how often failed pods are started again.
        deadline: longest duration.
        origin: the spec's block with `retries` and `deadline`; empty for none.
        prefix: prefix of the settings' paths.
        permanent: exit codes after which a retry cannot succeed, by container.
        nodes: number of pods that work together.
        shards: number of pods that share the work without each other.
        parallelism: number of shards that run at the same time; None for all.
        max_failed_shards: number of failed shards with which the others go on; None for any.
        labels: further labels of the object itself.
        annotations: further annotations of the object itself.
        pod_annotations: annotations of the pods.
        pod_labels: further labels of the pods, which do not select them.
        suffix: what precedes the hash in the name.
        name: a name without a hash, with which the API server rejects changes; None for one with a hash.
        template: the whole pod template, in place of `pod`, `pod_annotations` and labels.
    """

    frame: Frame
    role: str
    component: str
    wave: int
    pod: Mapping[str, Tree]
    retries: int
    deadline: str | None
    origin: FieldPath
    prefix: str = ""
    permanent: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    nodes: int = 1
    shards: int = 1
    parallelism: int | None = None
    max_failed_shards: int | None = None
    labels: Mapping[str, Tree] | None = None
    annotations: Mapping[str, Tree] | None = None
    pod_annotations: Mapping[str, str] | None = None
    pod_labels: Mapping[str, str] | None = None
    suffix: str = ""
    name: Tree = None
    template: Mapping[str, Tree] | None = None

    @property
    def retry_limit(self) -> Setting:
        """The setting `retries`."""
        return settings.count(
            f"{self.prefix}retries",
            self.retries,
            "How many times failed pods are retried.",
            origin=(*self.origin, "retries") if self.origin else (),
        )

    def job_spec(
        self,
        limits: Mapping[str, Tree],
        policy: Mapping[str, Tree],
        time_limit: str = "Time limit in seconds, retries included",
    ) -> dict[str, Tree]:
        """Return the spec of a Job.

        Args:
            limits: fields that limit its retries.
            policy: its `podFailurePolicy`.
            time_limit: describes the setting of its time limit.
        """
        pods = max(self.nodes, self.shards)
        own: dict[str, Tree] = {
            "metadata": self.frame.pod_metadata(self.component, self.pod_annotations or {}, labels=self.pod_labels),
            "spec": dict(self.pod),
        }
        return {
            **limits,
            "activeDeadlineSeconds": Setting(
                f"{self.prefix}deadlineSeconds",
                seconds(self.deadline),
                f"{time_limit}; 0 for no limit.",
                settings.SECONDS,
                optional=True,
                origin=(*self.origin, "deadline") if self.origin else (),
            ),
            "completions": pods,
            "parallelism": min(pods, self.parallelism or pods),
            "completionMode": "Indexed" if pods > 1 else "NonIndexed",
            "podFailurePolicy": dict(policy),
            "template": dict(self.template) if self.template is not None else own,
        }

    def object(self, types: Mapping[str, str], spec: Mapping[str, Tree]) -> Object:
        """Return the object with this spec.

        Args:
            types: its `apiVersion` and `kind`.
            spec: its spec.
        """
        name = self.name
        if name is None:
            name = HashedName(spec, f"{self.frame.name}.{self.role}.digest", self.suffix)
        return Object(
            role=self.role,
            wave=self.wave,
            body={
                **types,
                "metadata": self.frame.metadata(
                    "", self.component, wave=self.wave, labels=self.labels, annotations=self.annotations, name=name
                ),
                "spec": spec,
            },
        )


def job(run: Run) -> Object:
    """Return a Job; an Indexed Job for several nodes or shards."""
    return run.object({"apiVersion": "batch/v1", "kind": "Job"}, limited_spec(run))


def limited_spec(run: Run) -> dict[str, Tree]:
    """Return the spec of a Job with the limits of its retries.

    When one of several nodes fails, the others fail as well, so each may be retried as often as one alone. None is of
    use without the others, so the Job fails with the first that used up its retries. Shards go on without the others.
    """
    limits: dict[str, Tree] = {"backoffLimit": run.retry_limit}
    if run.nodes > 1:
        limits = {"backoffLimitPerIndex": run.retry_limit, "maxFailedIndexes": 0}
    elif run.shards > 1:
        limits = {"backoffLimitPerIndex": run.retry_limit}
        if run.max_failed_shards is not None:
            limits["maxFailedIndexes"] = run.max_failed_shards
    policy = failure_policy(run.permanent, permanent_action="FailIndex" if run.shards > 1 else "FailJob")
    return run.job_spec(limits, policy)


def completion_test(frame: Frame, watched: Object, context: Context) -> list[Object]:
    """Return the objects of `helm test` that wait until a run is complete, with access to it only.

    A CronJob has no such end, so the test of one asks whether it exists.
    """
    name = watched.name
    if watched.kind == "CronJob":
        find: list[Tree] = ["get", "cronjob", name]
        return watching_test(frame, context, group="batch", resource="cronjobs", name=name, command=find)
    condition = "completed" if watched.kind == "JobSet" else "complete"
    kind, group = watched.kind.lower(), str(watched.body["apiVersion"]).partition("/")[0]
    command: list[Tree] = ["wait", f"--for=condition={condition}", _timeout("1h", "the Job"), kind, name]
    return watching_test(frame, context, group=group, resource=f"{kind}s", name=name, command=command)


def readiness_test(frame: Frame, watched: Object, context: Context, *, minutes: int) -> list[Object]:
    """Return the objects of `helm test` that wait until a workload is ready, with access to that workload only.

    Args:
        frame: the app.
        watched: the Deployment, StatefulSet or LeaderWorkerSet.
        context: has the image of kubectl.
        minutes: longest time to wait.
    """
    name = watched.name
    timeout = _timeout(f"{minutes}m", "the pods")
    kind = watched.kind.lower()
    command: list[Tree] = (
        ["wait", "--for=condition=Available", timeout, kind, name]
        if watched.kind == "LeaderWorkerSet"
        else ["rollout", "status", timeout, kind, name]
    )
    group = str(watched.body["apiVersion"]).partition("/")[0]
    return watching_test(frame, context, group=group, resource=f"{kind}s", name=name, command=command)


def _timeout(default: str, what: str) -> Tree:
    setting = settings.text("test.timeout", default, f"How long `helm test` waits for {what}.")
    return Joined(("--timeout=", setting))


def watching_test(
    frame: Frame, context: Context, *, group: str, resource: str, name: Tree, command: list[Tree]
) -> list[Object]:
    """Return a pod of `helm test` that watches one object with kubectl, and its access to that object only.

    Args:
        frame: the app.
        context: has the image of kubectl.
        group: API group of the object.
        resource: plural name of its kind.
        name: name of the object.
        command: arguments of kubectl.
    """
    account = Release("-test")

    def test_object(role: str, weight: str, **body: Tree) -> Object:
        metadata = frame.metadata("-test", "test", annotations={**TEST_HOOK, "helm.sh/hook-weight": weight})
        api_version, kind = body.pop("apiVersion"), body.pop("kind")
        return Object(
            role=f"tests/{role}",
            test=True,
            body={"apiVersion": api_version, "kind": kind, "metadata": metadata, **body},
        )

    rbac = "rbac.authorization.k8s.io"
    return [
        test_object("serviceaccount", "-2", apiVersion="v1", kind="ServiceAccount", automountServiceAccountToken=False),
        test_object(
            "role",
            "-2",
            apiVersion=f"{rbac}/v1",
            kind="Role",
            rules=[
                {
                    "apiGroups": [group],
                    "resources": [resource],
                    "resourceNames": [name],
                    "verbs": ["get", "list", "watch"],
                }
            ],
        ),
        test_object(
            "rolebinding",
            "-1",
            apiVersion=f"{rbac}/v1",
            kind="RoleBinding",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": account},
            subjects=[{"kind": "ServiceAccount", "name": account, "namespace": Namespace()}],
        ),
        test_object("pod", "0", apiVersion="v1", kind="Pod", spec=_test_pod(account, context, command)),
    ]


def _test_pod(account: Tree, context: Context, command: list[Tree]) -> dict[str, Tree]:
    prefix, whose = "test.", "the `helm test` pod"
    return kubectl_pod(prefix, whose, account, [kubectl_container(prefix, whose, "test", command, context)])


def test_hook(frame: Frame, pod: Mapping[str, Any], annotations: Mapping[str, str]) -> Object:
    """Return a pod of `helm test`, with further annotations."""
    return Object(
        role="tests/pod",
        test=True,
        body={
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": frame.metadata("-test", "test", annotations={**TEST_HOOK, **annotations}),
            "spec": dict(pod),
        },
    )
