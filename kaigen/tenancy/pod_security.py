"""CEL expressions of the Pod Security Standards, which refuse what `kaigen.kubernetes.pod_security` reports.

An expression is about `variables.pods`, the `spec` of each pod. The controls that every level of a tenant forbids are
rows of `kaigen.tenancy.table` in place of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kaigen.kubernetes.pod_security import (
    APPARMOR_ANNOTATION,
    BASELINE_CAPABILITIES,
    PROFILES,
    RESTRICTED_CAPABILITIES,
    SAFE_SYSCTLS,
    SELINUX_TYPES,
)
from kaigen.kubernetes.pods import CONTAINER_FIELDS, PROBES

_CONTAINERS = "(" + " + ".join(f"pod.?{field}.orValue([])" for field in CONTAINER_FIELDS) + ")"
_POD_CONTEXT = "pod.?securityContext"
_CONTEXTS = f"([{_POD_CONTEXT}.orValue({{}})] + {_CONTAINERS}.map(c, c.?securityContext.orValue({{}})))"
_OWN_USERS = "pod.?hostUsers.orValue(true) == false"
_WINDOWS = "pod.?os.?name.orValue('') == 'windows'"


class SecurityRule(NamedTuple):
    """One control of the standards.

    Attributes:
        name: of the rule; unique.
        what: it forbids.
        expression: true for an object whose pods satisfy the control.
    """

    name: str
    what: str
    expression: str


def security_rules(level: str) -> Iterator[SecurityRule]:
    """Yield the controls of a level.

    Args:
        level: `privileged`, which has none, `baseline` or `restricted`.
    """
    if level != "privileged":
        yield from _baseline(restricted=level == "restricted")
    if level == "restricted":
        yield from _only_restricted()


def _baseline(*, restricted: bool) -> Iterator[SecurityRule]:
    """Yield the controls of both levels, some of which are stricter or have another exemption in restricted."""
    allowed = RESTRICTED_CAPABILITIES if restricted else BASELINE_CAPABILITIES
    on_linux = f"{_WINDOWS} || " if restricted else ""
    unmasked = "" if restricted else f"{_OWN_USERS} || "
    ports = "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)"
    yield _rule("pod-host-port", "ports of the node", _in_containers(ports))
    hosts = [
        f"c.?{where}.?{action}.?host.orValue('') == ''"
        for where in (*PROBES, "lifecycle.?postStart", "lifecycle.?preStop")
        for action in ("httpGet", "tcpSocket")
    ]
    yield _rule("pod-probe-host", "probes and hooks of other hosts", _in_containers(" && ".join(hosts)))
    added = f"k.?capabilities.?add.orValue([]).all(a, a in {_listed(allowed)})"
    yield _rule("pod-capability", "the capabilities", on_linux + _in_contexts(added))
    yield _rule("pod-seccomp", "the seccomp profile", on_linux + _in_contexts(_is_profile("seccompProfile")))
    yield SecurityRule(
        "pod-apparmor",
        "the AppArmor profile",
        f"{_in_pods(_in_contexts(_is_profile('appArmorProfile')))} && variables.annotations.all(a, a.all(key, "
        f"!key.startsWith({_text(APPARMOR_ANNOTATION)}) || a[key] in ['', 'runtime/default'] || "
        "a[key].startsWith('localhost/')))",
    )
    selinux = (
        f"k.?seLinuxOptions.?type.orValue('') in {_listed(SELINUX_TYPES)}"
        " && k.?seLinuxOptions.?user.orValue('') == '' && k.?seLinuxOptions.?role.orValue('') == ''"
    )
    yield _rule("pod-selinux", "the SELinux options", _in_contexts(selinux))
    host_process = "k.?windowsOptions.?hostProcess.orValue(false) != true"
    yield _rule("pod-host-process", "a Windows HostProcess", _in_contexts(host_process))
    proc_mount = _in_contexts("k.?procMount.orValue('Default') == 'Default'")
    yield _rule("pod-proc-mount", "an unmasked /proc", unmasked + proc_mount)
    sysctls = f"{_POD_CONTEXT}.?sysctls.orValue([]).all(s, s.?name.orValue('') in {_listed(SAFE_SYSCTLS)})"
    yield _rule("pod-sysctl", "the sysctl", sysctls)


def _only_restricted() -> Iterator[SecurityRule]:
    """Yield the controls of restricted alone."""
    of_pod = f"{_POD_CONTEXT}.?runAsNonRoot"
    of_container = f"c.?securityContext.?runAsNonRoot.orValue({of_pod}.orValue(false)) == true"
    non_root = f"{_OWN_USERS} || ({of_pod}.orValue(true) != false && {_in_containers(of_container)})"
    yield _rule("pod-non-root", "pods without runAsNonRoot", non_root)
    user = _in_contexts("k.?runAsUser.orValue(1) != 0")
    yield _rule("pod-root-user", "the user root", f"{_OWN_USERS} || {user}")
    escalation = _in_containers("c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false")
    yield _rule("pod-escalation", "containers that may gain privileges", f"{_WINDOWS} || {escalation}")
    drops = _in_containers("'ALL' in c.?securityContext.?capabilities.?drop.orValue([])")
    yield _rule("pod-drop", "containers that keep capabilities", f"{_WINDOWS} || {drops}")
    has_profile = _in_containers("c.?securityContext.?seccompProfile.hasValue()")
    seccomp = f"{_WINDOWS} || {_POD_CONTEXT}.?seccompProfile.hasValue() || {has_profile}"
    yield _rule("pod-no-seccomp", "containers without a seccomp profile", seccomp)


def _rule(name: str, what: str, of_pod: str) -> SecurityRule:
    return SecurityRule(name, what, _in_pods(of_pod))


def _in_pods(expression: str) -> str:
    return f"variables.pods.all(pod, {expression})"


def _in_containers(expression: str) -> str:
    return f"{_CONTAINERS}.all(c, {expression})"


def _in_contexts(expression: str) -> str:
    return f"{_CONTEXTS}.all(k, {expression})"


def _is_profile(field: str) -> str:
    return f"!k.?{field}.hasValue() || k.{field}.?type.orValue('') in {_listed(PROFILES)}"


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, sorted(values)))}]"


def _text(value: str) -> str:
    return json.dumps(value)
