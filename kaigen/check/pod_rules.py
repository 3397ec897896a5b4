"""Rules between the fields of a pod that the API server enforces and no schema contains.

Source: pkg/apis/core/validation/validation.go of k8s.io/kubernetes v1.36.3; each function names the one it follows.
"""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.pods import PROBES, Container, PodTemplate
from kaigen.kubernetes.quantities import nano

HUGE_PAGES = "hugepages-"


def pod_rule_findings(template: PodTemplate, found: list[Container]) -> Iterator[Problem]:
    """Check the fields of a pod and its containers against each other."""
    spec, path = template.spec, template.spec_path
    host = spec.get("hostNetwork") is True
    for number, term in _node_terms(spec):
        yield from _match_fields(term, (*path, "affinity", "nodeAffinity", *number))
    dns = mapping(spec.get("dnsConfig"))
    if spec.get("dnsPolicy") == "None" and dns and not dns.get("nameservers"):
        message = "missing field `nameservers` where `dnsPolicy` is None"
        yield Problem(codes.MISSING_FIELD, message, (*path, "dnsConfig"))
    if spec.get("runtimeClassName") == "":
        yield Problem(codes.OUT_OF_RANGE, "must not be empty", (*path, "runtimeClassName"), "leave it out")
    yield from _pod_resources(mapping(spec.get("resources")), (*path, "resources"))
    for container in found:
        yield from _probes(container)
        yield from _security(container, users=spec.get("hostUsers") is not False)
        yield from _huge_pages(container)
        yield from _mounts(container)
        if host and container.field == "containers":
            yield from _host_ports(container)


def _conflict(message: str, path: FieldPath, hint: str = "") -> Problem:
    return Problem(codes.FIELD_CONFLICT, message, path, hint)


def _is_sidecar(container: Container) -> bool:
    return container.field != "initContainers" or container.body.get("restartPolicy") == "Always"


def _probes(container: Container) -> Iterator[Problem]:
    """Follow `validateLivenessProbe`, `validateStartupProbe`, `validateReadinessProbe` and `validateInitContainers`."""
    body = container.body
    if not _is_sidecar(container):
        for field in (*PROBES, "lifecycle"):
            if body.get(field) is not None:
                message = f"`{field}` must not be set in an init container without restartPolicy Always"
                yield _conflict(message, (*container.path, field))
        return
    for name in ("livenessProbe", "startupProbe"):
        count = mapping(body.get(name)).get("successThreshold")
        if isinstance(count, int) and count > 1:
            yield _conflict(f"must be 1 in a {name}, not {count}", (*container.path, name, "successThreshold"))
    if mapping(body.get("readinessProbe")).get("terminationGracePeriodSeconds") is not None:
        path = (*container.path, "readinessProbe", "terminationGracePeriodSeconds")
        yield _conflict("must not be set in a readinessProbe, which ends no container", path)


def _security(container: Container, *, users: bool) -> Iterator[Problem]:
    """Follow `ValidateSecurityContext`."""
    context = mapping(container.body.get("securityContext"))
    path = (*container.path, "securityContext")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged") is True:
            yield _conflict("`privileged` needs `allowPrivilegeEscalation`", (*path, "allowPrivilegeEscalation"))
        added = mapping(context.get("capabilities")).get("add")
        if isinstance(added, list) and "CAP_SYS_ADMIN" in added:
            yield _conflict("CAP_SYS_ADMIN needs `allowPrivilegeEscalation`", (*path, "allowPrivilegeEscalation"))
    if users and context.get("procMount") == "Unmasked":
        yield _conflict("procMount Unmasked needs `hostUsers: false` of the pod", (*path, "procMount"))


def _pod_resources(resources: Object, path: FieldPath) -> Iterator[Problem]:
    """Follow `validatePodResources`."""
    for field in ("limits", "requests"):
        for name in mapping(resources.get(field)):
            if name not in ("cpu", "memory") and not str(name).startswith(HUGE_PAGES):
                message = f"`{name}` can be set for containers, not for the whole pod"
                yield Problem(codes.RESOURCE_NAME_INVALID, message, (*path, field, str(name)))
    if resources.get("claims"):
        yield _conflict("`claims` can be set for containers, not for the whole pod", (*path, "claims"))


def _huge_pages(container: Container) -> Iterator[Problem]:
    """Follow `validateResourceRequirements` and `IsHugePageResourceValueDivisible`."""
    resources = mapping(container.body.get("resources"))
    names = {str(name) for field in ("limits", "requests") for name in mapping(resources.get(field))}
    pages = [name for name in names if name.startswith(HUGE_PAGES)]
    if pages and not names & {"cpu", "memory"}:
        yield _conflict("huge pages need an amount of cpu or memory", (*container.path, "resources"))
    for field in ("limits", "requests"):
        for name, value in mapping(resources.get(field)).items():
            size = nano(str(name).removeprefix(HUGE_PAGES)) if name in pages else None
            amount = nano(value)
            if size and amount is not None and (amount <= 0 or amount % size):
                message = f"{value} is not a multiple of pages of {str(name).removeprefix(HUGE_PAGES)}"
                yield Problem(codes.AMOUNT_DOUBTFUL, message, (*container.path, "resources", field, str(name)))


def _mounts(container: Container) -> Iterator[Problem]:
    """Follow `validateMountPropagation`."""
    if mapping(container.body.get("securityContext")).get("privileged") is True:
        return
    for number, mount in entries(container.body.get("volumeMounts")):
        if mount.get("mountPropagation") == "Bidirectional":
            path = (*container.path, "volumeMounts", number, "mountPropagation")
            yield _conflict("Bidirectional needs a privileged container", path)


def _host_ports(container: Container) -> Iterator[Problem]:
    """Follow `validatePodHostNetworkDeps`; where `hostPort` is absent, the API server sets it."""
    for number, port in entries(container.body.get("ports")):
        given, own = port.get("hostPort"), port.get("containerPort")
        if isinstance(given, int) and given and given != own:
            path = (*container.path, "ports", number, "hostPort")
            yield _conflict(f"must be {own} as `containerPort`, because the pod has `hostNetwork`", path)


def _node_terms(spec: Object) -> Iterator[tuple[FieldPath, Object]]:
    """Yield the terms of a pod's node affinity, with their places."""
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required, preferred = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
    for number, term in entries(mapping(affinity.get(required)).get("nodeSelectorTerms")):
        yield (required, "nodeSelectorTerms", number), term
    for number, entry in entries(affinity.get(preferred)):
        yield (preferred, number, "preference"), mapping(entry.get("preference"))


def _match_fields(term: Object, path: FieldPath) -> Iterator[Problem]:
    """Follow `ValidateNodeFieldSelectorRequirement` and `ValidateNodeSelectorRequirement`."""
    for number, entry in entries(term.get("matchFields")):
        place = (*path, "matchFields", number)
        if entry.get("key") != "metadata.name":
            yield Problem(codes.BAD_VALUE, "must be metadata.name, the only field", (*place, "key"))
        elif entry.get("operator") not in ("In", "NotIn"):
            yield Problem(codes.BAD_VALUE, "must be In or NotIn", (*place, "operator"))
        elif isinstance(values := entry.get("values"), list) and len(values) != 1:
            yield Problem(codes.OUT_OF_RANGE, "must have one value", (*place, "values"))
    for number, entry in entries(term.get("matchExpressions")):
        values = entry.get("values")
        if entry.get("operator") in ("Gt", "Lt") and isinstance(values, list) and len(values) != 1:
            path_of = (*path, "matchExpressions", number, "values")
            yield Problem(codes.OUT_OF_RANGE, f"must have one value where `operator` is {entry['operator']}", path_of)
