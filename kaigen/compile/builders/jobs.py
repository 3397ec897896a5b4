"""Jobs that are safe in Git: no TTL, a hash in the name, no retries that cannot succeed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import DEFAULT_USER, container_security
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Namespace, Release, Setting, SpecPath, Tree
from kaigen.compile.field_expressions import HashedName

TEST_HOOK = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
"""Annotations of the objects of `helm test`."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration: str | None) -> int:
    """Return a duration such as `1h30m` in seconds; 0 for None."""
    return sum(int(n) * _UNITS[unit] for n, unit in re.findall(r"([0-9]+)([smhd])", duration or ""))


def failure_policy(permanent: Mapping[str, tuple[int, ...]]) -> dict[str, Tree]:
    """Return the policy that ignores evictions, and fails the Job where a retry cannot succeed.

    Args:
        permanent: exit codes after which a retry cannot succeed, by container.
    """
    rules: list[Tree] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
    for container, codes in permanent.items():
        rules.append(
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": container, "operator": "In", "values": list(codes)},
            }
        )
    return {"rules": rules}


def job(
    frame: Frame,
    pod: Mapping[str, Tree],
    *,
    role: str,
    component: str,
    wave: int,
    retries: int,
    deadline: str | None,
    prefix: str = "",
    origin: SpecPath,
    permanent: Mapping[str, tuple[int, ...]] | None = None,
    nodes: int = 1,
    labels: Mapping[str, Tree] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
    hashed: bool = True,
    template: Mapping[str, Tree] | None = None,
) -> Object:
    """Return a Job.

    Args:
        frame: the app.
        pod: spec of the pod.
        role: the object's role, and the beginning of its helpers' names in the chart.
        component: value of the component label.
        wave: its sync wave.
        retries: number of failed pods that are replaced.
        deadline: longest duration.
        prefix: prefix of its settings' paths.
        origin: the spec's block with `retries` and `deadline`.
        permanent: exit codes after which a retry cannot succeed, by container.
        nodes: number of pods that work together; several need an Indexed Job.
        labels: further labels of the Job itself.
        pod_annotations: annotations of its pods.
        hashed: whether its name ends in a hash; without one, the API server rejects changes.
        template: the whole pod template, in place of `pod`, `pod_annotations` and labels.
    """
    own: dict[str, Tree] = {
        "metadata": {
            "labels": frame.selector(component),
            **({"annotations": dict(pod_annotations)} if pod_annotations else {}),
        },
        "spec": dict(pod),
    }
    spec: dict[str, Tree] = {
        "backoffLimit": settings.count(
            f"{prefix}retries",
            retries,
            "How many times failed pods are retried.",
            origin=(*origin, "retries"),
        ),
        "activeDeadlineSeconds": Setting(
            f"{prefix}deadlineSeconds",
            seconds(deadline),
            "Time limit in seconds, retries included; 0 for no limit.",
            settings.SECONDS,
            optional=True,
            origin=(*origin, "deadline"),
        ),
        "completions": nodes,
        "parallelism": nodes,
        "completionMode": "Indexed" if nodes > 1 else "NonIndexed",
        "podFailurePolicy": failure_policy(permanent or {}),
        "template": dict(template) if template is not None else own,
    }
    name = HashedName(spec, f"{frame.name}.{role}.digest") if hashed else Release()
    return Object(
        role=role,
        wave=wave,
        body={
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": frame.metadata("", component, wave=wave, labels=labels, name=name),
            "spec": spec,
        },
    )


def completion_test(frame: Frame, watched: Object, context: Context) -> list[Object]:
    """Return the objects of `helm test` that wait until a Job is complete, with access to that Job only."""
    name = watched.body["metadata"]["name"]  # type: ignore[index, call-overload]
    command: list[Tree] = ["wait", "--for=condition=complete", _timeout("1h", "the Job"), "job", name]
    return watching_test(frame, context, group="batch", resource="jobs", name=name, command=command)


def readiness_test(frame: Frame, watched: Object, context: Context, *, minutes: int) -> list[Object]:
    """Return the objects of `helm test` that wait until a workload is ready, with access to that workload only.

    Args:
        frame: the app.
        watched: the Deployment, StatefulSet or LeaderWorkerSet.
        context: has the image of kubectl.
        minutes: longest time to wait.
    """
    name = watched.body["metadata"]["name"]  # type: ignore[index, call-overload]
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
        test_object(
            "serviceaccount", "-2", apiVersion="v1", kind="ServiceAccount", automountServiceAccountToken=False
        ),
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
    return {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": DEFAULT_USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "test",
                "image": settings.text(
                    "test.image", context.images["kubectl"], "Image of the `helm test` pod."
                ),
                "args": command,
                "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
                "securityContext": container_security(read_only=True),
            }
        ],
    }


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
