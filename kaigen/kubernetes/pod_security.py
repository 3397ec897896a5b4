"""The Pod Security Standards, levels baseline and restricted, as Kubernetes 1.35 and later define them.

Source: the checks of k8s.io/pod-security-admission v0.36.3. The API server reports one reason for each control and
pod; here every field that violates a control is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.pods import PROBES, Container, PodTemplate, containers

LEVELS = ("privileged", "baseline", "restricted")
BASELINE_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
SAFE_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    ]
)
SELINUX_TYPES = frozenset({"", "container_engine_t", "container_init_t", "container_kvm_t", "container_t"})
_RESTRICTED_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
PROFILES = ("RuntimeDefault", "Localhost")
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


class Control(Enum):
    """The controls of the standards."""

    HOST_NAMESPACES = auto()
    HOST_PATH = auto()
    HOST_PORT = auto()
    PROBE_HOST = auto()
    PRIVILEGED = auto()
    CAPABILITIES = auto()
    SECCOMP = auto()
    RUN_AS_NON_ROOT = auto()
    RUN_AS_ROOT_USER = auto()
    PRIVILEGE_ESCALATION = auto()
    PROC_MOUNT = auto()
    SYSCTL = auto()
    APPARMOR = auto()
    SELINUX = auto()
    WINDOWS_HOST_PROCESS = auto()
    VOLUME_TYPE = auto()


class Violation(Struct, frozen=True):
    """One field of a pod that violates a control.

    Attributes:
        control: the control.
        path: the field in the object; the mapping that lacks the field when it is missing.
        problem: what the pod or container does, as in `is privileged`.
        container: name of the container; empty for the pod itself.
        hint: how to fix it; may be empty.
    """

    control: Control
    path: FieldPath
    problem: str
    container: str = ""
    hint: str = ""


def violations(template: PodTemplate, level: str) -> list[Violation]:
    """Return every violation of a level in one pod.

    Args:
        template: the pod.
        level: `baseline` or `restricted`; `privileged` allows everything.
    """
    if level == "privileged":
        return []
    pod = _Pod(template, level)
    found = list(pod.own_violations())
    for container in containers(template):
        context = mapping(container.body.get("securityContext"))
        if context:
            found += pod.context_violations(context, (*container.path, "securityContext"), container.name)
        found += _host_violations(container)
        if pod.restricted:
            found += pod.missing_settings(container, context)
    return found


class _Pod:
    """One pod under a level: what its containers inherit, and what exempts it."""

    def __init__(self, template: PodTemplate, level: str) -> None:
        self.template = template
        self.spec = template.spec
        self.path: FieldPath = template.spec_path
        self.context = mapping(self.spec.get("securityContext"))
        self.restricted = level == "restricted"
        self.windows = mapping(self.spec.get("os")).get("name") == "windows"
        # In a user namespace, root of the container is an unprivileged user of the node.
        self.own_users = self.spec.get("hostUsers") is False
        self.may_unmask = self.own_users and not self.restricted
        self.may_be_root = self.own_users or not self.restricted
        self.non_root = self.context.get("runAsNonRoot") is True
        self.seccomp = isinstance(self.context.get("seccompProfile"), dict)

    def own_violations(self) -> Iterator[Violation]:
        """Yield the violations of the pod itself."""
        for field, namespace in (("hostNetwork", "network"), ("hostPID", "process"), ("hostIPC", "IPC")):
            if self.spec.get(field):
                problem = f"uses the {namespace} namespace of the node ({field})"
                yield Violation(Control.HOST_NAMESPACES, (*self.path, field), problem)
        for number, volume in entries(self.spec.get("volumes")):
            yield from self._volume(volume, (*self.path, "volumes", number))
        for number, sysctl in entries(self.context.get("sysctls")):
            if str(sysctl.get("name")) not in SAFE_SYSCTLS:
                path = (*self.path, "securityContext", "sysctls", number)
                yield Violation(Control.SYSCTL, path, f"sets the unsafe sysctl {sysctl.get('name')}")
        for key, value in mapping(self.template.metadata.get("annotations")).items():
            if str(key).startswith(APPARMOR_ANNOTATION) and not _is_safe_profile(value):
                path = (*self.template.path, "metadata", "annotations", key)
                container = str(key).removeprefix(APPARMOR_ANNOTATION)
                yield Violation(Control.APPARMOR, path, f"uses the AppArmor profile {value}", container)
        if self.context:
            path = (*self.path, "securityContext")
            yield from self.context_violations(self.context, path, "")
            if self.restricted and not self.own_users and self.context.get("runAsNonRoot") is False:
                yield _root_allowed((*path, "runAsNonRoot"), "")

    def _volume(self, volume: Object, path: FieldPath) -> Iterator[Violation]:
        host_path = volume.get("hostPath")
        if host_path is not None:
            problem = f"mounts {mapping(host_path).get('path', 'a folder')} of the node (hostPath)"
            yield Violation(Control.HOST_PATH, (*path, "hostPath"), problem)
        elif self.restricted:
            for source, value in volume.items():
                if source != "name" and value is not None and source not in _RESTRICTED_VOLUMES:
                    hint = "use a PersistentVolumeClaim, or an ephemeral or csi volume"
                    problem = f"mounts a volume of type {source}"
                    yield Violation(Control.VOLUME_TYPE, (*path, source), problem, hint=hint)

    def context_violations(self, context: Object, path: FieldPath, container: str) -> Iterator[Violation]:
        """Yield the violations in a security context of the pod or of a container."""
        for field, value in context.items():
            check = _CONTEXT_FIELDS.get(field)
            if check is not None:
                yield from check(self, value, (*path, field), container)

    def missing_settings(self, container: Container, context: Object) -> Iterator[Violation]:
        """Yield what level restricted requires of each container beyond the limits of baseline."""
        name = container.name
        path = (*container.path, "securityContext") if context else container.path
        non_root = context.get("runAsNonRoot")
        if not self.own_users and non_root is not True:
            if non_root is False:
                yield _root_allowed((*path, "runAsNonRoot"), name)
            elif not self.non_root and self.context.get("runAsNonRoot") is None:
                yield _root_allowed(path, name)
        if self.windows:
            return
        if context.get("allowPrivilegeEscalation") is not False:
            yield Violation(
                Control.PRIVILEGE_ESCALATION,
                path,
                "may gain privileges (allowPrivilegeEscalation is not false)",
                name,
                "set securityContext.allowPrivilegeEscalation: false",
            )
        dropped = mapping(context.get("capabilities")).get("drop")
        if not isinstance(dropped, list) or "ALL" not in dropped:
            hint = "set securityContext.capabilities: {drop: [ALL]}"
            yield Violation(Control.CAPABILITIES, path, "does not drop all capabilities", name, hint)
        if not self.seccomp and not isinstance(context.get("seccompProfile"), dict):
            hint = "set securityContext.seccompProfile: {type: RuntimeDefault}"
            yield Violation(Control.SECCOMP, path, "does not set a seccomp profile", name, hint)


def _root_allowed(path: FieldPath, container: str) -> Violation:
    problem = "may run as root (runAsNonRoot is not true)"
    return Violation(Control.RUN_AS_NON_ROOT, path, problem, container, "set securityContext.runAsNonRoot: true")


def _privileged(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if value:
        yield Violation(Control.PRIVILEGED, path, "is privileged", container)


def _capabilities(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    added = mapping(value).get("add")
    exempt = pod.restricted and pod.windows
    allowed = RESTRICTED_CAPABILITIES if pod.restricted else BASELINE_CAPABILITIES
    for number, capability in enumerate(added if isinstance(added, list) and not exempt else ()):
        if str(capability) not in allowed:
            problem = f"adds the capability {capability}"
            yield Violation(Control.CAPABILITIES, (*path, "add", number), problem, container)


def _seccomp(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if not (pod.restricted and pod.windows):
        yield from _profile(Control.SECCOMP, "seccomp", value, path, container)


def _apparmor(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    yield from _profile(Control.APPARMOR, "AppArmor", value, path, container)


def _profile(control: Control, what: str, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if isinstance(value, dict) and value.get("type") not in PROFILES:
        problem = f"uses the {what} profile {value.get('type')}"
        yield Violation(control, path, problem, container, f"set {path[-1]}.type: {PROFILES[0]}")


def _selinux(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    options = mapping(value)
    if str(options.get("type") or "") not in SELINUX_TYPES:
        problem = f"sets the SELinux type {options['type']}"
        yield Violation(Control.SELINUX, (*path, "type"), problem, container)
    for field in ("user", "role"):
        if options.get(field):
            problem = f"sets the SELinux {field} {options[field]}"
            yield Violation(Control.SELINUX, (*path, field), problem, container)


def _windows(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if mapping(value).get("hostProcess"):
        problem = "runs as a Windows HostProcess"
        yield Violation(Control.WINDOWS_HOST_PROCESS, (*path, "hostProcess"), problem, container)


def _proc_mount(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if value not in (None, "Default") and not pod.may_unmask:
        yield Violation(Control.PROC_MOUNT, path, f"unmasks /proc (procMount: {value})", container)


def _user(pod: _Pod, value: object, path: FieldPath, container: str) -> Iterator[Violation]:
    if value == 0 and value is not False and not pod.may_be_root:
        hint = "set another user, such as 65532"
        yield Violation(Control.RUN_AS_ROOT_USER, path, "runs as root (runAsUser: 0)", container, hint)


_CONTEXT_FIELDS = {
    "privileged": _privileged,
    "capabilities": _capabilities,
    "seccompProfile": _seccomp,
    "appArmorProfile": _apparmor,
    "seLinuxOptions": _selinux,
    "windowsOptions": _windows,
    "procMount": _proc_mount,
    "runAsUser": _user,
}


def _is_safe_profile(value: object) -> bool:
    return value in ("", "runtime/default") or str(value).startswith("localhost/")


def _host_violations(container: Container) -> Iterator[Violation]:
    """Yield ports of the node, and probes and hooks that call another host."""
    body, path, name = container.body, container.path, container.name
    for number, port in entries(body.get("ports")):
        if port.get("hostPort"):
            place = (*path, "ports", number, "hostPort")
            yield Violation(Control.HOST_PORT, place, f"opens port {port['hostPort']} of the node (hostPort)", name)
    handlers: list[tuple[FieldPath, object]] = [((probe,), body[probe]) for probe in PROBES if probe in body]
    if "lifecycle" in body:
        handlers += [(("lifecycle", str(hook)), handler) for hook, handler in mapping(body["lifecycle"]).items()]
    for where, handler in handlers:
        for action in ("httpGet", "tcpSocket"):
            host = mapping(mapping(handler).get(action)).get("host")
            if host:
                problem = f"makes the node call another host ({host})"
                yield Violation(Control.PROBE_HOST, (*path, *where, action, "host"), problem, name)
