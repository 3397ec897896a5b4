"""What each violation of the Pod Security Standards says, for the pod and for a container."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.policy import check_policy
from kaigen.kubernetes.pod_security import violations
from kaigen.kubernetes.pods import pod_templates

CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
MEETS = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def violated(level: str = "restricted", annotations: object = None, **spec: Any) -> list[tuple[str, ...]]:
    """Control, place below `spec`, problem, container and hint of each violation."""
    fields = {"securityContext": MEETS, "containers": [{"name": "main", "securityContext": CONTEXT}]}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"annotations": annotations},
        "spec": {**fields, **spec},
    }
    (template,) = pod_templates(pod)
    return [
        (each.control.name, ".".join(map(str, each.path)), each.problem, each.container, each.hint)
        for each in violations(template, level)
    ]


def of_container(level: str = "restricted", context: Any = None, **fields: Any) -> list[tuple[str, ...]]:
    """The violations of a container with these fields."""
    security = {**CONTEXT, **(context or {})}
    return violated(level, containers=[{"name": "main", "securityContext": security, **fields}])


def test_a_pod_that_meets_the_level_has_no_violations() -> None:
    assert violated() == []
    assert violated("privileged", hostNetwork=True) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hostNetwork": True},
         ("HOST_NAMESPACES", "spec.hostNetwork", "uses the network namespace of the node (hostNetwork)", "", "")),
        ({"hostPID": True},
         ("HOST_NAMESPACES", "spec.hostPID", "uses the process namespace of the node (hostPID)", "", "")),
        ({"hostIPC": True},
         ("HOST_NAMESPACES", "spec.hostIPC", "uses the IPC namespace of the node (hostIPC)", "", "")),
        ({"volumes": [{"name": "a", "hostPath": {"path": "/x"}}]},
         ("HOST_PATH", "spec.volumes.0.hostPath", "mounts /x of the node (hostPath)", "", "")),
        ({"volumes": [{"name": "a", "hostPath": {}}]},
         ("HOST_PATH", "spec.volumes.0.hostPath", "mounts a folder of the node (hostPath)", "", "")),
        ({"volumes": [{"name": "b", "emptyDir": {}}, {"name": "a", "secret": None, "nfs": {}}]},
         ("VOLUME_TYPE", "spec.volumes.1.nfs", "mounts a volume of type nfs", "",
          "use a PersistentVolumeClaim, or an ephemeral or csi volume")),
        ({"securityContext": {**MEETS, "sysctls": [{"name": "kernel.msgmax"}]}},
         ("SYSCTL", "spec.securityContext.sysctls.0", "sets the unsafe sysctl kernel.msgmax", "", "")),
        ({"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined", "a": "b"}},
         ("APPARMOR", "metadata.annotations.container.apparmor.security.beta.kubernetes.io/main",
          "uses the AppArmor profile unconfined", "main", "")),
        ({"securityContext": {**MEETS, "seccompProfile": {"type": "Unconfined"}}},
         ("SECCOMP", "spec.securityContext.seccompProfile", "uses the seccomp profile Unconfined", "",
          "set seccompProfile.type: RuntimeDefault")),
        ({"securityContext": {**MEETS, "runAsUser": 0}},
         ("RUN_AS_ROOT_USER", "spec.securityContext.runAsUser", "runs as root (runAsUser: 0)", "",
          "set another user, such as 65532")),
    ],
)  # fmt: skip
def test_a_violation_of_the_pod_is_described(spec: Any, expected: tuple[str, ...]) -> None:
    assert violated(**spec) == [expected]


@pytest.mark.parametrize(
    ("context", "place", "control", "problem", "hint"),
    [
        ({"privileged": True}, ".privileged", "PRIVILEGED", "is privileged", ""),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SYS_ADMIN"]}}, ".capabilities.add.1",
         "CAPABILITIES", "adds the capability SYS_ADMIN", ""),
        ({"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}, ".capabilities.add.0",
         "CAPABILITIES", "adds the capability CHOWN", ""),
        ({"capabilities": {"drop": ["KILL"]}}, "", "CAPABILITIES", "does not drop all capabilities",
         "set securityContext.capabilities: {drop: [ALL]}"),
        ({"seccompProfile": {"type": "Unconfined"}}, ".seccompProfile", "SECCOMP",
         "uses the seccomp profile Unconfined", "set seccompProfile.type: RuntimeDefault"),
        ({"appArmorProfile": {"type": "Unconfined"}}, ".appArmorProfile", "APPARMOR",
         "uses the AppArmor profile Unconfined", "set appArmorProfile.type: RuntimeDefault"),
        ({"seLinuxOptions": {"type": "spc_t"}}, ".seLinuxOptions.type", "SELINUX", "sets the SELinux type spc_t", ""),
        ({"seLinuxOptions": {"user": "u"}}, ".seLinuxOptions.user", "SELINUX", "sets the SELinux user u", ""),
        ({"seLinuxOptions": {"role": "r"}}, ".seLinuxOptions.role", "SELINUX", "sets the SELinux role r", ""),
        ({"windowsOptions": {"hostProcess": True}}, ".windowsOptions.hostProcess", "WINDOWS_HOST_PROCESS",
         "runs as a Windows HostProcess", ""),
        ({"procMount": "Unmasked"}, ".procMount", "PROC_MOUNT", "unmasks /proc (procMount: Unmasked)", ""),
        ({"runAsUser": 0}, ".runAsUser", "RUN_AS_ROOT_USER", "runs as root (runAsUser: 0)",
         "set another user, such as 65532"),
        ({"runAsNonRoot": False}, ".runAsNonRoot", "RUN_AS_NON_ROOT", "may run as root (runAsNonRoot is not true)",
         "set securityContext.runAsNonRoot: true"),
        ({"allowPrivilegeEscalation": True}, "", "PRIVILEGE_ESCALATION",
         "may gain privileges (allowPrivilegeEscalation is not false)",
         "set securityContext.allowPrivilegeEscalation: false"),
    ],
)  # fmt: skip
def test_a_violation_in_a_security_context_is_described(
    context: Any, place: str, control: str, problem: str, hint: str
) -> None:
    where = f"spec.containers.0.securityContext{place}"
    assert of_container(context=context) == [(control, where, problem, "main", hint)]


@pytest.mark.parametrize(
    ("fields", "place", "control", "problem"),
    [
        ({"ports": [{"hostPort": 0}, {"hostPort": 80}]}, "ports.1.hostPort", "HOST_PORT",
         "opens port 80 of the node (hostPort)"),
        ({"livenessProbe": {"httpGet": {"host": "x"}}}, "livenessProbe.httpGet.host", "PROBE_HOST",
         "makes the node call another host (x)"),
        ({"readinessProbe": {"tcpSocket": {"host": "x"}}}, "readinessProbe.tcpSocket.host", "PROBE_HOST",
         "makes the node call another host (x)"),
        ({"lifecycle": {"postStart": {"tcpSocket": {"host": "x"}}}}, "lifecycle.postStart.tcpSocket.host",
         "PROBE_HOST", "makes the node call another host (x)"),
    ],
)  # fmt: skip
def test_use_of_the_node_by_a_container_is_described(fields: Any, place: str, control: str, problem: str) -> None:
    expected = [(control, f"spec.containers.0.{place}", problem, "main", "")]
    assert of_container(**fields) == expected
    assert of_container("baseline", **fields) == expected


def test_a_container_without_settings_lacks_all_of_them() -> None:
    found = violated(securityContext={}, containers=[{"name": "main"}])
    assert [(each[0], each[1], each[3]) for each in found] == [
        (control, "spec.containers.0", "main")
        for control in ("RUN_AS_NON_ROOT", "PRIVILEGE_ESCALATION", "CAPABILITIES", "SECCOMP")
    ]
    assert found[-1][2:] == (
        "does not set a seccomp profile", "main", "set securityContext.seccompProfile: {type: RuntimeDefault}",
    )  # fmt: skip


def test_a_pod_that_may_run_as_root_is_reported_once() -> None:
    found = violated(securityContext={**MEETS, "runAsNonRoot": False})
    assert [(each[1], each[3]) for each in found] == [("spec.securityContext.runAsNonRoot", "")]


@pytest.mark.parametrize(
    ("spec", "subject"),
    [({"hostPID": True}, "the pod uses"), ({"containers": [{"name": "a"}]}, "the container `a` may")],
)
def test_a_finding_names_the_pod_or_the_container(spec: Any, subject: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    assert any(each.message.startswith(subject) for each in check_policy(pod))
