"""Behaviour of pods on simulated nodes: by default, pods that always restart become ready and others succeed.

Annotations of a pod request a different behaviour. kaigen's output contains none of them; an admission policy adds
them to the new pods of a namespace, so that the tested objects stay unchanged.

| annotation ``sim.kaigen.dev/…`` | meaning |
|---|---|
| ``state`` | ``ready``, ``completed``, ``failed``, or ``unready`` (runs and never becomes ready) |
| ``delay`` | duration (``1.5s``) from the start of the containers to that state |
| ``init-delay`` | run time of each init container |
| ``hold-init`` | name of the init container that runs until it is released; ``*`` for all |
| ``fail-init`` | name of the init container that fails |
| ``exit-code``, ``reason`` | of a failed container; default 1 and ``Error`` |
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.cluster.client import ApiError, Client, Object
from tests.cluster.processes import wait_until

PREFIX = "sim.kaigen.dev/"
_POLICY = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
_BINDING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding"


@dataclass(frozen=True, slots=True)
class Course:
    """Behaviour of pods. Empty fields leave the default.

    Attributes:
        state: ``ready``, ``completed``, ``failed`` or ``unready``.
        delay: Seconds from the start of the containers to that state.
        init_delay: Seconds that each init container runs.
        hold_init: Name of the init container that runs until it is released, ``*`` for all.
        fail_init: Name of the init container that fails.
        exit_code: Exit code of a failed container.
        reason: Reason of a failed container.
    """

    state: str = ""
    delay: float = 0
    init_delay: float = 0
    hold_init: str = ""
    fail_init: str = ""
    exit_code: int = 0
    reason: str = ""

    def annotations(self) -> dict[str, str]:
        """Return the annotations that request this behaviour."""
        values = {
            "state": self.state,
            "delay": f"{self.delay:g}s" if self.delay else "",
            "init-delay": f"{self.init_delay:g}s" if self.init_delay else "",
            "hold-init": self.hold_init,
            "fail-init": self.fail_init,
            "exit-code": str(self.exit_code) if self.exit_code else "",
            "reason": self.reason,
        }
        return {PREFIX + name: value for name, value in values.items() if value}


def pod(name: str, *, annotations: Mapping[str, str] | None = None, **spec: object) -> Object:
    """Return a pod that restricted admission accepts.

    Args:
        name: Its name.
        annotations: Its annotations.
        spec: Fields of its spec to override.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": pod_spec() | spec,
    }


def pod_spec() -> Object:
    """Return the spec of a pod that restricted admission accepts."""
    return {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": False,
        "containers": [container("main")],
    }


def container(name: str) -> Object:
    """Return a container that restricted admission accepts."""
    return {
        "name": name,
        "image": "registry.invalid/simulated:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def set_course(client: Client, namespace: str, course: Course, where: str = "true") -> str:
    """Set the behaviour of new pods in a namespace.

    Args:
        client: Client with all rights.
        namespace: Where.
        course: Their behaviour.
        where: CEL expression over ``object``, the pod, that selects pods. Pods of controllers have their
            name only as ``object.metadata.generateName``.

    Returns:
        The rule's name, for ``end_course``. A rule is deleted with its namespace.
    """
    name = f"sim-{uuid.uuid4().hex[:12]}"
    probe = f"{name}-probe"
    entries = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in course.annotations().items())
    space = client.get("v1/Namespace", namespace)["metadata"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": space["uid"]}
    metadata = {"name": name, "ownerReferences": [owner]}
    policy: Object = {
        "apiVersion": _POLICY.rpartition("/")[0],
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
            },
            "matchConditions": [
                {"name": "where", "expression": f"object.metadata.?name.orValue('') == '{probe}' || ({where})"}
            ],
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": f"Object{{metadata: Object.metadata{{annotations: {{{entries}}}}}}}"
                    },
                }
            ],
        },
    }
    binding: Object = {
        "apiVersion": _BINDING.rpartition("/")[0],
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name},
    }
    client.create(policy)
    client.create(binding)

    def taken_up() -> bool:
        made = client.create(pod(probe), namespace, dry_run=True)
        given = made["metadata"].get("annotations", {})
        return all(given.get(key) == value for key, value in course.annotations().items())

    wait_until(taken_up, f"the API server applies {name}", 15)
    return name


def end_course(client: Client, rule: str) -> None:
    """Delete a rule. Existing pods keep their annotations."""
    client.delete(_BINDING, rule)
    client.delete(_POLICY, rule)


def release(client: Client, namespace: str, labels: str = "") -> None:
    """Let the held init containers of a namespace's pods end.

    Args:
        client: Client with all rights.
        namespace: Where.
        labels: Label selector of the pods; empty for all.
    """
    for found in client.objects("v1/Pod", namespace, labels):
        metadata = found["metadata"]
        if PREFIX + "hold-init" in metadata.get("annotations", {}):
            try:
                client.patch(
                    "v1/Pod", metadata["name"], namespace, {"metadata": {"annotations": {PREFIX + "hold-init": None}}}
                )
            except ApiError as error:
                if error.code != 404:
                    raise


_QUEUED = "kueue.x-k8s.io/queue-name"


@contextmanager
def queues_full(client: Client) -> Iterator[None]:
    """Suspend new Jobs with a queue while in the context, as Kueue's webhook does until there is quota."""
    name = f"sim-{uuid.uuid4().hex[:12]}"
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-probe", "labels": {_QUEUED: "probe"}},
        "spec": {"template": {"spec": {**pod_spec(), "restartPolicy": "Never"}}},
    }
    policy: Object = {
        "apiVersion": _POLICY.rpartition("/")[0],
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "objectSelector": {"matchExpressions": [{"key": _QUEUED, "operator": "Exists"}]},
                "resourceRules": [
                    {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
                ],
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{spec: Object.spec{suspend: true}}"},
                }
            ],
        },
    }
    binding: Object = {
        "apiVersion": _BINDING.rpartition("/")[0],
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    client.create(policy)
    client.create(binding)
    try:
        wait_until(lambda: bool(client.create(job, "default", dry_run=True)["spec"].get("suspend")), "Jobs wait", 15)
        yield
    finally:
        end_course(client, name)
