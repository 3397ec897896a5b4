"""What Pod Security forbids."""

from __future__ import annotations

from tests.tenancy.objects import container, deployment, pod, security_context
from tests.tenancy.tenants import Body


def _secure(**fields: object) -> Body:
    """Return the same with changes of its container's security context; None removes a field."""
    return pod(containers=[container(securityContext=security_context(**fields))])


def _pod_context(**fields: object) -> Body:
    """Return the same with changes of its own security context; None removes a field."""
    context = {**pod()["spec"]["securityContext"], **fields}
    return pod(securityContext={key: value for key, value in context.items() if value is not None})


_EVERY = {"drop": ["ALL"], "add": ["ALL"]}

_HOST_PROCESS: Body = pod(
    os={"name": "windows"},
    hostNetwork=True,
    securityContext={"runAsNonRoot": True, "windowsOptions": {"hostProcess": True}},
    containers=[{"name": "main", "image": "example.com/main:1"}],
)


def _pod_annotated(annotations: Body) -> Body:
    body = deployment()
    body["spec"]["template"]["metadata"]["annotations"] = annotations
    return body


DENIED: dict[str, tuple[Body, str]] = {
    "host network": (pod(hostNetwork=True), "a namespace of the node"),
    "privileged": (_secure(privileged=True, allowPrivilegeEscalation=None), "a privileged container"),
    "port of a node": (
        pod(containers=[container(ports=[{"containerPort": 10250, "hostPort": 10250}])]),
        "opens port 10250 of the node",
    ),
    "probe of another host": (
        pod(containers=[container(livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}})]),
        "call another host (10.0.0.1)",
    ),
    "capability": (_secure(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "adds the capability SYS_ADMIN"),
    "capability of baseline": (_secure(capabilities={"drop": ["ALL"], "add": ["CHOWN"]}), "adds the capability CHOWN"),
    "capability of an init container": (
        pod(initContainers=[container(name="i", securityContext=security_context(capabilities=_EVERY))]),
        "adds the capability ALL",
    ),
    "capabilities kept": (_secure(capabilities=None), "does not drop all capabilities"),
    "no security context": (deployment(containers=[container(securityContext=None)]), "may gain privileges"),
    "seccomp profile": (_secure(seccompProfile={"type": "Unconfined"}), "the seccomp profile Unconfined"),
    "no seccomp profile": (_pod_context(seccompProfile=None), "does not set a seccomp profile"),
    "AppArmor profile": (_secure(appArmorProfile={"type": "Unconfined"}), "the AppArmor profile Unconfined"),
    "AppArmor annotation": (
        _pod_annotated({"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
        "the AppArmor profile unconfined",
    ),
    "SELinux": (_pod_context(seLinuxOptions={"type": "spc_t"}), "the SELinux type spc_t"),
    "Windows HostProcess": (_HOST_PROCESS, "runs as a Windows HostProcess"),
    "unmasked proc": (
        {**_secure(procMount="Unmasked"), "spec": {**_secure(procMount="Unmasked")["spec"], "hostUsers": False}},
        "unmasks /proc",
    ),
    "sysctl": (_pod_context(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), "the unsafe sysctl kernel.msgmax"),
    "root": (_pod_context(runAsNonRoot=None), "may run as root"),
    "root by its id": (_secure(runAsUser=0, runAsNonRoot=True), "runs as root (runAsUser: 0)"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "capability": _secure(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "settings of each container": pod(
        securityContext={},
        containers=[
            container(
                securityContext=security_context(runAsNonRoot=True, seccompProfile={"type": "RuntimeDefault"}),
                ports=[{"containerPort": 80}],
                readinessProbe={"httpGet": {"port": 80}},
            )
        ],
    ),
    "root in a user namespace": pod(
        hostUsers=False, containers=[container(securityContext=security_context(runAsUser=0, runAsNonRoot=False))]
    ),
    "Windows": pod(
        os={"name": "windows"},
        securityContext={"runAsNonRoot": True},
        containers=[{"name": "main", "image": "example.com/main:1"}],
    ),
    "Deployment": deployment(),
}
"""Objects that the tenant may have."""
