"""Each check of Pod Security restricted, on a pod that meets all the others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kaigen.diff.objects import Obj
from kaigen.diff.pods import PodTemplate, pod_templates, weaknesses
from tests.unit.diff.diff_cases import container, template, with_

RUN = "spec/containers/0"


def found(pod: dict[str, Any]) -> list[str]:
    return weaknesses(PodTemplate("", pod))


def test_a_hardened_pod_has_none() -> None:
    assert found(template()) == []


@pytest.mark.parametrize(
    ("way", "value", "expected"),
    [
        ("spec/hostNetwork", True, "pod uses the network namespace of the node (hostNetwork)"),
        ("spec/hostPID", True, "pod uses the process namespace of the node (hostPID)"),
        ("spec/hostIPC", True, "pod uses the IPC namespace of the node (hostIPC)"),
        ("spec/volumes", [{"name": "v", "hostPath": {"path": "/etc"}}], "pod mounts /etc of the node (hostPath)"),
        ("spec/volumes", [{"name": "v", "nfs": {"server": "s"}}], "pod mounts a volume of type nfs"),
        (
            "spec/securityContext/sysctls",
            [{"name": "kernel.msgmax", "value": "1"}],
            "pod sets the unsafe sysctl kernel.msgmax",
        ),
        ("spec/securityContext/appArmorProfile", {"type": "Unconfined"}, "pod uses the AppArmor profile Unconfined"),
        ("spec/securityContext/seLinuxOptions", {"user": "u"}, "pod sets the SELinux user u"),
        (
            "metadata/annotations",
            {"container.apparmor.security.beta.kubernetes.io/run": "unconfined"},
            "container run uses the AppArmor profile unconfined",
        ),
        (f"{RUN}/securityContext/privileged", True, "container run is privileged"),
        (f"{RUN}/securityContext/runAsUser", 0, "container run runs as root (runAsUser: 0)"),
        (f"{RUN}/securityContext/runAsNonRoot", False, "container run may run as root (runAsNonRoot is not true)"),
        (
            f"{RUN}/securityContext/capabilities/add",
            ["SYS_ADMIN", "NET_BIND_SERVICE"],
            "container run adds the capability SYS_ADMIN",
        ),
        (f"{RUN}/securityContext/capabilities/drop", [], "container run does not drop all capabilities"),
        (f"{RUN}/securityContext/procMount", "Unmasked", "container run unmasks /proc (procMount: Unmasked)"),
        (
            f"{RUN}/securityContext/allowPrivilegeEscalation",
            None,
            "container run may gain privileges (allowPrivilegeEscalation is not false)",
        ),
        (
            f"{RUN}/securityContext/seccompProfile",
            {"type": "Unconfined"},
            "container run uses the seccomp profile Unconfined",
        ),
        ("spec/securityContext/seccompProfile", None, "container run does not set a seccomp profile"),
        (f"{RUN}/securityContext/windowsOptions", {"hostProcess": True}, "container run runs as a Windows HostProcess"),
        (f"{RUN}/ports", [{"hostPort": 80}], "container run opens port 80 of the node (hostPort)"),
        (
            f"{RUN}/livenessProbe",
            {"httpGet": {"host": "a.example"}},
            "container run makes the node call another host (a.example)",
        ),
        (
            f"{RUN}/lifecycle",
            {"preStop": {"tcpSocket": {"host": "b.example"}}},
            "container run makes the node call another host (b.example)",
        ),
    ],
)
def test_each_looseness_is_found(way: str, value: Any, expected: str) -> None:
    pod = with_(template(), way, value)
    assert found(pod) == [expected]


@pytest.mark.parametrize(
    ("way", "value"),
    [
        ("spec/volumes", [{"name": kind, kind: {}} for kind in ("emptyDir", "secret", "projected", "csi", "image")]),
        ("spec/securityContext/sysctls", [{"name": "net.ipv4.tcp_rmem", "value": "1"}]),
        ("spec/securityContext/seLinuxOptions", {"type": "container_t", "level": "s0"}),
        (f"{RUN}/securityContext/capabilities/add", ["NET_BIND_SERVICE"]),
        (f"{RUN}/securityContext/seccompProfile", {"type": "Localhost", "localhostProfile": "a"}),
        (f"{RUN}/securityContext/runAsUser", 1000),
        (f"{RUN}/ports", [{"containerPort": 80, "hostPort": 0}]),
        (f"{RUN}/livenessProbe", {"httpGet": {"port": 80}}),
        ("spec/hostNetwork", False),
    ],
)
def test_settings_that_restricted_allows_are_not_reported(way: str, value: Any) -> None:
    pod = with_(template(), way, value)
    assert found(pod) == []


def test_init_containers_are_looked_at_too() -> None:
    init = with_(container("init"), "securityContext/privileged", True)
    assert found(template(initContainers=[init])) == ["container init is privileged"]


def test_a_container_may_loosen_what_its_pod_tightens() -> None:
    pod = with_(template(), "spec/securityContext/runAsUser", 1000)
    assert found(with_(pod, f"{RUN}/securityContext/runAsUser", 0)) == ["container run runs as root (runAsUser: 0)"]


def test_root_in_a_user_namespace_is_not_reported() -> None:
    pod = with_(template(hostUsers=False), f"{RUN}/securityContext/runAsUser", 0)
    assert found(pod) == []


def test_windows_pods_need_no_linux_profile() -> None:
    bare = {"name": "run", "securityContext": {"runAsNonRoot": True}}
    assert found({"spec": {"os": {"name": "windows"}, "containers": [bare]}}) == []


POD = template()


@pytest.mark.parametrize(
    ("api", "kind", "spec", "roles"),
    [
        ("apps/v1", "Deployment", {"template": POD}, [""]),
        ("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": POD}}}, [""]),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"leaderTemplate": POD, "workerTemplate": POD}},
            ["leader", "worker"],
        ),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{"name": name, "template": {"spec": {"template": POD}}} for name in "ab"]},
            ["a", "b"],
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"groupName": "gpu", "template": POD}]},
            ["head", "gpu"],
        ),
        ("keda.sh/v1alpha1", "ScaledJob", {"jobTargetRef": {"template": POD}}, [""]),
        ("v1", "ConfigMap", {"template": POD}, []),
    ],
)
def test_pods_are_found_wherever_their_kind_keeps_them(
    api: str, kind: str, spec: dict[str, Any], roles: list[str]
) -> None:
    item = Obj({"apiVersion": api, "kind": kind, "spec": copy.deepcopy(spec)}, "x.yaml")
    templates = pod_templates(item)
    assert list(templates) == roles
    assert all(template.spec == POD["spec"] for template in templates.values())


def test_a_pod_is_its_own_template() -> None:
    item = Obj({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": POD["spec"]}, "x.yaml")
    assert [name for name, _ in pod_templates(item)[""].containers()] == ["run"]
