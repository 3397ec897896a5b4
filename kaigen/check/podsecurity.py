"""The Pod Security Standards, levels baseline and restricted, as Kubernetes 1.35 and later define them.

Source: the checks of k8s.io/pod-security-admission v0.36.3. The API server reports one reason a control and
pod; here every place is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kaigen.check import codes
from kaigen.check.pods import Container, Object, PodTemplate, entries, mapping
from kaigen.diagnostics.field_path import FieldPath as Path
from kaigen.diagnostics.problem import Problem

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
RESTRICTED_VOLUMES = frozenset(
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
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROFILES = ("RuntimeDefault", "Localhost")
APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"


def security_findings(template: PodTemplate, found: Sequence[Container], level: str) -> list[Problem]:
    """Every breach of a level of the Pod Security Standards in one pod.

    Args:
        template: the pod.
        found: its containers, of all roles.
        level: `baseline` or `restricted`.
    """
    pod = _Pod(template, level)
    findings = list(pod.spec_findings())
    for container in found:
        context = container.body.get("securityContext")
        findings += pod.context_findings(mapping(context), (*container.path, "securityContext"))
        findings += _host_findings(container)
        if pod.restricted:
            findings += pod.restricted_findings(container, mapping(context))
    return findings


class _Pod:
    """One pod under a level: what its containers inherit, and what exempts it."""

    def __init__(self, template: PodTemplate, level: str) -> None:
        self.template = template
        self.spec = template.spec
        self.path: Path = (*template.path, "spec")
        self.context = mapping(self.spec.get("securityContext"))
        self.restricted = level == "restricted"
        self.windows = mapping(self.spec.get("os")).get("name") == "windows"
        # In a user namespace root of the container is nobody on the node.
        self.own_users = self.spec.get("hostUsers") is False
        self.may_unmask = self.own_users and not self.restricted
        self.may_be_root = self.own_users or not self.restricted
        self.non_root = self.context.get("runAsNonRoot") is True
        self.seccomp = isinstance(self.context.get("seccompProfile"), dict)

    def spec_findings(self) -> Iterator[Problem]:
        """What is wrong with the pod itself."""
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if self.spec.get(field):
                message = f"{field} shares a namespace of the node with the pod"
                yield Problem(codes.HOST_NAMESPACES, message, (*self.path, field))
        volumes = self.spec.get("volumes")
        if isinstance(volumes, list):
            for number, volume in enumerate(volumes):
                if isinstance(volume, dict):
                    yield from self._volume(volume, (*self.path, "volumes", number))
        for number, sysctl in entries(self.context.get("sysctls")):
            if str(sysctl.get("name")) not in SAFE_SYSCTLS:
                path = (*self.path, "securityContext", "sysctls", number)
                yield Problem(
                    codes.SYSCTL, f"the sysctl {sysctl.get('name')} is not among the safe ones", path
                )
        for key, value in mapping(self.template.metadata.get("annotations")).items():
            if str(key).startswith(APPARMOR_ANNOTATION) and not _good_annotation(value):
                path = (*self.template.path, "metadata", "annotations", key)
                yield Problem(codes.APPARMOR, f"the AppArmor profile {value} is not allowed", path)
        if self.context:
            path = (*self.path, "securityContext")
            yield from self.context_findings(self.context, path)
            if self.restricted and not self.own_users and self.context.get("runAsNonRoot") is False:
                yield Problem(codes.RUN_AS_NON_ROOT, "runAsNonRoot must be true", (*path, "runAsNonRoot"))

    def _volume(self, volume: Object, path: Path) -> Iterator[Problem]:
        if volume.get("hostPath") is not None:
            yield Problem(codes.HOST_PATH, "hostPath mounts a folder of the node", (*path, "hostPath"))
        elif self.restricted:
            for source, value in volume.items():
                if source != "name" and value is not None and source not in RESTRICTED_VOLUMES:
                    message = f"volumes of type {source} are not allowed"
                    hint = "claim it through a PersistentVolumeClaim or an ephemeral or csi volume"
                    yield Problem(codes.VOLUME_TYPE, message, (*path, source), hint)

    def context_findings(self, context: Object, path: Path) -> Iterator[Problem]:
        """What is wrong with a security context, of the pod or of a container."""
        for field, value in context.items():
            if field == "privileged" and value:
                yield Problem(codes.PRIVILEGED, "a privileged container owns the node", (*path, field))
            elif field == "capabilities":
                yield from self._added_capabilities(mapping(value).get("add"), (*path, field, "add"))
            elif field in ("seccompProfile", "appArmorProfile") and isinstance(value, dict):
                kind = value.get("type")
                exempt = field == "seccompProfile" and self.restricted and self.windows
                if kind not in PROFILES and not exempt:
                    code = codes.SECCOMP if field == "seccompProfile" else codes.APPARMOR
                    message = f"the type {kind} of {field} is not allowed"
                    yield Problem(code, message, (*path, field), f"set type: {PROFILES[0]}")
            elif field == "seLinuxOptions":
                yield from _selinux(mapping(value), (*path, field))
            elif field == "windowsOptions" and mapping(value).get("hostProcess"):
                message = "a HostProcess container owns the node"
                yield Problem(codes.WINDOWS_HOST_PROCESS, message, (*path, field, "hostProcess"))
            elif field == "procMount" and value not in (None, "Default") and not self.may_unmask:
                yield Problem(codes.PROC_MOUNT, f"procMount {value} unmasks /proc", (*path, field))
            elif field == "runAsUser" and value == 0 and value is not False and not self.may_be_root:
                hint = "run as another user, such as 65532"
                yield Problem(codes.RUN_AS_ROOT_USER, "runAsUser 0 is root", (*path, field), hint)

    def _added_capabilities(self, added: object, path: Path) -> Iterator[Problem]:
        exempt = self.restricted and self.windows
        allowed = RESTRICTED_CAPABILITIES if self.restricted else BASELINE_CAPABILITIES
        for number, capability in enumerate(added if isinstance(added, list) and not exempt else ()):
            if str(capability) not in allowed:
                message = f"the capability {capability} must not be added"
                yield Problem(codes.CAPABILITIES, message, (*path, number))

    def restricted_findings(self, container: Container, context: Object) -> Iterator[Problem]:
        """What level restricted asks of each container beyond the limits of baseline."""
        path = (*container.path, "securityContext") if context else container.path
        non_root = context.get("runAsNonRoot")
        if not self.own_users and non_root is not True:
            if non_root is False:
                yield Problem(codes.RUN_AS_NON_ROOT, "runAsNonRoot must be true", (*path, "runAsNonRoot"))
            elif not self.non_root and self.context.get("runAsNonRoot") is None:
                yield self._missing(container, codes.RUN_AS_NON_ROOT, path, "runAsNonRoot: true")
        if self.windows:
            return
        if context.get("allowPrivilegeEscalation") is not False:
            yield self._missing(
                container, codes.PRIVILEGE_ESCALATION, path, "allowPrivilegeEscalation: false"
            )
        dropped = mapping(context.get("capabilities")).get("drop")
        if not isinstance(dropped, list) or "ALL" not in dropped:
            yield self._missing(container, codes.CAPABILITIES, path, "capabilities: {drop: [ALL]}")
        if not self.seccomp and not isinstance(context.get("seccompProfile"), dict):
            yield self._missing(container, codes.SECCOMP, path, "seccompProfile: {type: RuntimeDefault}")

    def _missing(self, container: Container, code: str, path: Path, setting: str) -> Problem:
        message = f"the container `{container.name}` must set {setting}"
        return Problem(code, message, path, f"set {setting} in its securityContext")


def _good_annotation(value: object) -> bool:
    return value in ("", "runtime/default") or str(value).startswith("localhost/")


def _selinux(options: Object, path: Path) -> Iterator[Problem]:
    if str(options.get("type") or "") not in SELINUX_TYPES:
        message = f"the SELinux type {options['type']} is not allowed"
        yield Problem(codes.SELINUX, message, (*path, "type"))
    for field in ("user", "role"):
        if options.get(field):
            yield Problem(codes.SELINUX, f"an SELinux {field} must not be set", (*path, field))


def _host_findings(container: Container) -> Iterator[Problem]:
    """Ports of the node, and probes and hooks that call another host."""
    body, path = container.body, container.path
    ports = body.get("ports")
    if isinstance(ports, list):
        for number, port in enumerate(ports):
            if isinstance(port, dict) and port.get("hostPort"):
                message = f"hostPort {port['hostPort']} opens a port of the node"
                yield Problem(codes.HOST_PORT, message, (*path, "ports", number, "hostPort"))
    handlers: list[tuple[Path, object]] = [((probe,), body[probe]) for probe in PROBES if probe in body]
    if "lifecycle" in body:
        handlers += [
            (("lifecycle", str(hook)), handler) for hook, handler in mapping(body["lifecycle"]).items()
        ]
    for place, handler in handlers:
        if not isinstance(handler, dict):
            continue
        for way in ("httpGet", "tcpSocket"):
            host = mapping(handler.get(way)).get("host")
            if host:
                message = f"the host {host} makes the node call another host"
                yield Problem(codes.PROBE_HOST, message, (*path, *place, way, "host"))
