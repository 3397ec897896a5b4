"""Where a pod is looser than Pod Security "restricted", check by check.

What is allowed stands in `kaigen.check.podsecurity`, which judges what an object says at each of its places; this tells
what that comes to for each container. Windows pods (`os.name: windows`) are exempt from the checks that mean nothing
there, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import podsecurity
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import JsonMap, get, get_list, get_map, get_text
from kaigen.diff.pods import PodTemplate

_HANDLERS = ("httpGet", "tcpSocket")


def weaknesses(template: PodTemplate) -> list[str]:
    """Each way in which the pod is looser than restricted, in words; none when it meets restricted."""
    spec = template.spec
    found = list(_pod(spec, template.annotations))
    containers = list(template.containers())
    for name, container in containers:
        where = f"container {name} "
        found += [where + words for words in _container(container, spec)]
    return found


def _pod(spec: JsonMap, annotations: JsonMap) -> Iterator[str]:
    for field, words in (
        ("hostNetwork", "shares the node's network"),
        ("hostPID", "shares the node's processes"),
        ("hostIPC", "shares the node's IPC"),
    ):
        if spec.get(field) is True:
            yield f"pod {words} ({field})"
    for volume in get_list(spec, "volumes"):
        if not isinstance(volume, dict):
            continue
        if "hostPath" in volume:
            yield f"pod reads the node's disk (hostPath {get_text(volume, 'hostPath', 'path')})"
        else:
            for source in sorted(set(volume) - podsecurity.RESTRICTED_VOLUMES - {"name"}):
                yield f"pod mounts a volume of kind {source}"
    context = get_map(spec, "securityContext")
    for sysctl in get_list(context, "sysctls"):
        name = get_text(sysctl, "name")
        if name not in podsecurity.SAFE_SYSCTLS:
            yield f"pod sets the unsafe sysctl {name}"
    yield from (f"pod {words}" for words in _context(context))
    for key, item in annotations.items():
        if key.startswith(podsecurity.APPARMOR_ANNOTATION) and item == "unconfined":
            yield f"pod switches AppArmor off for container {key.rpartition('/')[2]}"


def _context(context: JsonMap) -> Iterator[str]:
    """What a pod's and a container's security context have in common."""
    if get(context, "appArmorProfile", "type") == "Unconfined":
        yield "switches AppArmor off"
    selinux = get_map(context, "seLinuxOptions")
    if (
        get_text(selinux, "type") not in podsecurity.SELINUX_TYPES
        or get_text(selinux, "user")
        or get_text(selinux, "role")
    ):
        yield "sets its own SELinux labels"
    if get(context, "windowsOptions", "hostProcess") is True:
        yield "is a Windows host process"


def _container(container: JsonMap, spec: JsonMap) -> Iterator[str]:
    context, pod = get_map(container, "securityContext"), get_map(spec, "securityContext")
    linux = get_text(spec, "os", "name") != "windows"
    yield from _context(context)
    if context.get("privileged") is True:
        yield "is privileged"
    # In a user namespace root inside is nobody outside.
    if spec.get("hostUsers") is not False:
        user = context.get("runAsUser", pod.get("runAsUser"))
        if user == 0 and not isinstance(user, bool):
            yield "runs as root (runAsUser: 0)"
        elif context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
            yield "may run as root (runAsNonRoot is not true)"
    added = {
        str(item) for item in get_list(context, "capabilities", "add")
    } - podsecurity.RESTRICTED_CAPABILITIES
    if added:
        yield f"gains capabilities {', '.join(sorted(added))}"
    if context.get("procMount", "Default") != "Default":
        yield f"mounts /proc {context['procMount']}"
    if linux:
        if "ALL" not in get_list(context, "capabilities", "drop"):
            yield "keeps capabilities (does not drop ALL)"
        if context.get("allowPrivilegeEscalation") is not False:
            yield "may gain privileges (allowPrivilegeEscalation is not false)"
        seccomp = get(context, "seccompProfile", "type")
        if seccomp is ABSENT:
            seccomp = get(pod, "seccompProfile", "type")
        if seccomp not in podsecurity.PROFILES:
            yield "runs without a seccomp profile"
    for port in get_list(container, "ports"):
        if get(port, "hostPort") not in (ABSENT, 0):
            yield f"takes port {get_text(port, 'hostPort')} of the node"
    for probe in (
        *(get_map(container, name) for name in podsecurity.PROBES),
        *(get_map(container, "lifecycle", hook) for hook in ("postStart", "preStop")),
    ):
        for handler in _HANDLERS:
            if host := get_text(probe, handler, "host"):
                yield f"probes another host ({host})"
