"""Violations of each control of the Pod Security Standards, at the level that forbids them and the one below."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.policy import check_policy
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.pods import pod_templates
from tests.unit.check.example_objects import example, objects

Pod = dict[str, Any]
CODES = {value for name, value in vars(codes).items() if name.isupper()}
CONTROLS = {code for code in CODES if codes.HOST_NAMESPACES <= code <= codes.VOLUME_TYPE}


def pod(**spec: object) -> Pod:
    """A pod that keeps level restricted, with some fields of its spec set."""
    obj = example("Pod")
    obj["spec"].update(spec)
    return obj


def container(**fields: object) -> Pod:
    """The same with some fields of its container set."""
    obj = example("Pod")
    obj["spec"]["containers"][0].update(fields)
    return obj


def context(**fields: object) -> Pod:
    """The same with some fields of its container's security context set; None takes one away."""
    obj = example("Pod")
    found = obj["spec"]["containers"][0]["securityContext"]
    for name, value in fields.items():
        found[name] = value
        if value is None:
            del found[name]
    return obj


def pod_context(**fields: object) -> Pod:
    """The same with some fields of its own security context set; None takes one away."""
    obj = example("Pod")
    for name, value in fields.items():
        obj["spec"]["securityContext"][name] = value
        if value is None:
            del obj["spec"]["securityContext"][name]
    return obj


def found(obj: Pod, level: str) -> list[tuple[str, str]]:
    """The broken controls with their places."""
    return [(f.code, f.where) for f in check_policy(obj, pod_security=level) if f.code in CONTROLS]


C = "spec.containers[0]"
BASELINE = [
    (pod(hostNetwork=True), codes.HOST_NAMESPACES, "spec.hostNetwork"),
    (pod(hostPID=True), codes.HOST_NAMESPACES, "spec.hostPID"),
    (pod(hostIPC=True), codes.HOST_NAMESPACES, "spec.hostIPC"),
    (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), codes.HOST_PATH, "spec.volumes[0].hostPath"),
    (container(ports=[{"containerPort": 80, "hostPort": 80}]), codes.HOST_PORT, f"{C}.ports[0].hostPort"),
    (container(livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}}), codes.PROBE_HOST,
     f"{C}.livenessProbe.httpGet.host"),
    (container(startupProbe={"tcpSocket": {"port": 80, "host": "x"}}), codes.PROBE_HOST,
     f"{C}.startupProbe.tcpSocket.host"),
    (container(lifecycle={"preStop": {"httpGet": {"port": 80, "host": "x"}}}), codes.PROBE_HOST,
     f"{C}.lifecycle.preStop.httpGet.host"),
    (context(privileged=True), codes.PRIVILEGED, f"{C}.securityContext.privileged"),
    (context(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), codes.CAPABILITIES,
     f"{C}.securityContext.capabilities.add[0]"),
    (context(seccompProfile={"type": "Unconfined"}), codes.SECCOMP, f"{C}.securityContext.seccompProfile"),
    (pod_context(seccompProfile={"type": "Unconfined"}), codes.SECCOMP,
     "spec.securityContext.seccompProfile"),
    (context(procMount="Unmasked"), codes.PROC_MOUNT, f"{C}.securityContext.procMount"),
    (pod_context(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), codes.SYSCTL,
     "spec.securityContext.sysctls[0]"),
    (context(appArmorProfile={"type": "Unconfined"}), codes.APPARMOR, f"{C}.securityContext.appArmorProfile"),
    (context(seLinuxOptions={"type": "spc_t"}), codes.SELINUX, f"{C}.securityContext.seLinuxOptions.type"),
    (pod_context(seLinuxOptions={"user": "system_u"}), codes.SELINUX,
     "spec.securityContext.seLinuxOptions.user"),
    (context(seLinuxOptions={"role": "r"}), codes.SELINUX, f"{C}.securityContext.seLinuxOptions.role"),
    (context(windowsOptions={"hostProcess": True}), codes.WINDOWS_HOST_PROCESS,
     f"{C}.securityContext.windowsOptions.hostProcess"),
]  # fmt: skip
RESTRICTED = [
    (pod(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]), codes.VOLUME_TYPE,
     "spec.volumes[0].nfs"),
    (context(allowPrivilegeEscalation=None), codes.PRIVILEGE_ESCALATION, f"{C}.securityContext"),
    (context(allowPrivilegeEscalation=True), codes.PRIVILEGE_ESCALATION, f"{C}.securityContext"),
    (context(capabilities={"drop": ["NET_RAW"]}), codes.CAPABILITIES, f"{C}.securityContext"),
    (context(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), codes.CAPABILITIES,
     f"{C}.securityContext.capabilities.add[0]"),
    (pod_context(runAsNonRoot=None), codes.RUN_AS_NON_ROOT, f"{C}.securityContext"),
    (pod_context(runAsNonRoot=False), codes.RUN_AS_NON_ROOT, "spec.securityContext.runAsNonRoot"),
    (context(runAsNonRoot=False), codes.RUN_AS_NON_ROOT, f"{C}.securityContext.runAsNonRoot"),
    (pod_context(runAsUser=0), codes.RUN_AS_ROOT_USER, "spec.securityContext.runAsUser"),
    (context(runAsUser=0), codes.RUN_AS_ROOT_USER, f"{C}.securityContext.runAsUser"),
    (pod_context(seccompProfile=None), codes.SECCOMP, f"{C}.securityContext"),
]  # fmt: skip
KEPT = [
    pod(),
    pod(volumes=[{"name": "v"}]),
    pod(volumes=[{"name": "v", kind: {}} for kind in ("csi", "image", "ephemeral", "projected", "configMap")]),
    container(ports=[{"containerPort": 80, "hostPort": 0}]),
    container(readinessProbe={"httpGet": {"port": 80, "host": ""}}),
    context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    context(seccompProfile={"type": "Localhost", "localhostProfile": "p.json"}),
    context(procMount="Default", privileged=False),
    context(seLinuxOptions={"type": "container_t", "level": "s0:c1"}),
    context(appArmorProfile={"type": "Localhost", "localhostProfile": "p"}),
    context(windowsOptions={"hostProcess": False}),
    pod_context(sysctls=[{"name": "net.ipv4.tcp_syncookies", "value": "1"}]),
    pod_context(runAsNonRoot=None) | {"spec": {**pod_context(runAsNonRoot=None)["spec"], "hostUsers": False}},
]


@pytest.mark.parametrize(("obj", "code", "where"), BASELINE)
def test_baseline_forbids(obj: Pod, code: str, where: str) -> None:
    assert found(obj, "privileged") == []
    assert found(obj, "baseline") == [(code, where)]
    assert (code, where) in found(obj, "restricted")


@pytest.mark.parametrize(("obj", "code", "where"), RESTRICTED)
def test_restricted_forbids_what_baseline_allows(obj: Pod, code: str, where: str) -> None:
    assert found(obj, "baseline") == []
    assert found(obj, "restricted") == [(code, where)]


@pytest.mark.parametrize("obj", KEPT)
def test_restricted_allows(obj: Pod) -> None:
    assert found(obj, "restricted") == []


def test_every_control_has_a_case() -> None:
    assert {code for _, code, _ in BASELINE + RESTRICTED} == CONTROLS


@pytest.mark.parametrize("role", ["initContainers", "containers", "ephemeralContainers"])
def test_init_and_ephemeral_containers_are_checked_as_well(role: str) -> None:
    obj = pod()
    obj["spec"].setdefault(role, []).append({"name": "extra", "image": "x"})
    at = f"spec.{role}[{len(obj['spec'][role]) - 1}]"
    assert found(obj, "restricted") == [(codes.PRIVILEGE_ESCALATION, at), (codes.CAPABILITIES, at)]


def test_a_container_inherits_from_its_pod_and_may_set_its_own() -> None:
    obj = pod_context(runAsNonRoot=None, seccompProfile=None)
    assert {code for code, _ in found(obj, "restricted")} == {codes.RUN_AS_NON_ROOT, codes.SECCOMP}
    own = obj["spec"]["containers"][0]["securityContext"]
    own |= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert found(obj, "restricted") == []


def test_a_windows_pod_is_exempt_from_controls_of_linux() -> None:
    obj = pod(os={"name": "windows"}, containers=[{"name": "c", "image": "x"}])
    obj["spec"]["securityContext"] = {"runAsNonRoot": True}
    assert found(obj, "restricted") == []
    obj["spec"]["securityContext"] = {}
    assert found(obj, "restricted") == [(codes.RUN_AS_NON_ROOT, "spec.containers[0]")]


def test_root_is_allowed_in_a_user_namespace_but_an_unmasked_proc_is_not() -> None:
    obj = context(runAsUser=0, runAsNonRoot=False, procMount="Unmasked")
    obj["spec"]["hostUsers"] = False
    assert found(obj, "baseline") == []
    assert found(obj, "restricted") == [(codes.PROC_MOUNT, f"{C}.securityContext.procMount")]


def test_the_apparmor_annotation_is_checked() -> None:
    obj = pod()
    key = "container.apparmor.security.beta.kubernetes.io/shell"
    for value, allowed in (("runtime/default", True), ("localhost/p", True), ("", True), ("unconfined", False)):
        obj["metadata"]["annotations"] = {key: value}
        assert (found(obj, "baseline") == []) is allowed


def test_an_unknown_level_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no Pod Security level 'tight'; there are privileged, baseline, restricted"):
        check_policy(pod(), pod_security="tight")


def test_pods_are_found_in_every_kind_that_has_a_template() -> None:
    kinds = {obj["kind"] for obj in objects() if pod_templates(obj)}
    with_examples = {"CronJob", "DaemonSet", "Deployment", "Job", "JobSet", "LeaderWorkerSet", "Pod"}
    with_examples |= {"RayCluster", "StatefulSet"}
    assert kinds == with_examples
    assert with_examples <= {row.kind for row in KINDS.values() if row.pods}


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("CronJob", ["spec.jobTemplate.spec.template.spec.hostPID"]),
        ("JobSet", ["spec.replicatedJobs[0].template.spec.template.spec.hostPID"]),
        (
            "LeaderWorkerSet",
            [
                "spec.leaderWorkerTemplate.leaderTemplate.spec.hostPID",
                "spec.leaderWorkerTemplate.workerTemplate.spec.hostPID",
            ],
        ),
        ("RayCluster", ["spec.headGroupSpec.template.spec.hostPID", "spec.workerGroupSpecs[0].template.spec.hostPID"]),
    ],
)
def test_a_violation_inside_a_template_has_the_path_from_the_root(kind: str, places: list[str]) -> None:
    obj = example(kind)
    for template in pod_templates(obj):
        template.spec["hostPID"] = True
    assert found(obj, "baseline") == [(codes.HOST_NAMESPACES, where) for where in places]
