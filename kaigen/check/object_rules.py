"""Rules between the fields of one object that the API server enforces and no schema contains.

Those of single kinds are in `kaigen.check.kind_rules` and `kaigen.check.controller_rules`, those of single pods in
`kaigen.check.pod_rules`; here are those between names, and between a pod and its controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kaigen.check import codes
from kaigen.check.controller_rules import CONTROLLER_RULES
from kaigen.check.kind_rules import KIND_RULES
from kaigen.check.kueue_rules import queued_findings
from kaigen.check.pod_rules import pod_rule_findings
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import MOST, Problem
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.claims import listed_claims
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries, mapping, names_of
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.pods import PROBES, Container, PodTemplate, containers, pod_templates

_RULES = KIND_RULES | CONTROLLER_RULES
_RESTART_POLICIES = ("Always", "OnFailure", "Never")


class _UnknownName(Problem, frozen=True, kw_only=True):
    """A name that is not among those of its object.

    Attributes:
        name: the name.
        known: names of the object.
    """

    name: str
    known: Collection[str]

    def with_hint(self) -> Problem:
        """Return the problem with the name that is probably meant."""
        meant = did_you_mean(self.name, self.known)
        return Problem(self.code, self.message, self.path, meant)


def rule_findings(obj: Object) -> list[Problem]:
    """Check an object against all rules; the schema check reports values of the wrong type."""
    found = _rule_findings(obj)
    # Only problems that are reported need hints, and finding one takes time.
    return [
        item.with_hint() if isinstance(item, _UnknownName) and number < MOST else item
        for number, item in enumerate(found)
    ]


def _rule_findings(obj: Object) -> list[Problem]:
    row = kind_of(obj)
    rules = _RULES.get(row.type)
    findings: list[Problem] = list(rules(obj)) if rules else []
    templates = pod_templates(obj)
    if not templates:
        return findings
    findings += queued_findings(obj)
    claimed = _claimed_volumes(obj)
    for template in templates:
        if row.restart_policies:
            findings += _restart_policy(template, row)
        found = containers(template)
        if not template.single:  # its controller adds volumes
            findings += _mounts(template, found, claimed)
            findings += pod_rule_findings(template, found)
        for container in found:
            findings += _probe_ports(container)
            findings += _claims(template, container)
            findings += _sleep(template, container)
    if row.group == "batch":
        findings += _failure_policy_names(obj, templates)
    if row.selector is not None and row.selector.own:
        findings += _own_selector(obj, templates[0])
    return findings


def _restart_policy(template: PodTemplate, row: ObjectKind) -> list[Problem]:
    policy, allowed = template.spec.get("restartPolicy") or row.default_restart_policy, row.restart_policies
    if policy in allowed or policy not in _RESTART_POLICIES:
        return []
    path = template.spec_path
    if "restartPolicy" in template.spec:
        path = (*path, "restartPolicy")
    listed = " or ".join(allowed)
    given = f"not {policy}" if template.spec.get("restartPolicy") else f"and {policy} is the default"
    message = f"a {row.kind}'s pods need restartPolicy {listed}, {given}"
    return [Problem(codes.FIELD_CONFLICT, message, path, f"set restartPolicy: {allowed[0]}")]


def _claimed_volumes(obj: Object) -> set[str]:
    """Return the names of the volumes that claim templates add to each pod."""
    return names_of([claim.get("metadata") for _, claim in listed_claims(obj)])


def _mounts(template: PodTemplate, found: list[Container], claimed: set[str]) -> Iterator[Problem]:
    """Check that each mounted volume is in the pod."""
    volumes = names_of(template.spec.get("volumes")) | claimed
    for container in found:
        for field in ("volumeMounts", "volumeDevices"):
            mounts = container.body.get(field)
            if not isinstance(mounts, list):
                continue
            for number, mount in enumerate(mounts):
                if not isinstance(mount, dict):
                    continue
                name = mount.get("name")
                if isinstance(name, str) and name not in volumes:
                    yield _unknown(
                        f"no volume `{name}` in the pod", (*container.path, field, number, "name"), name, volumes
                    )


def _probe_ports(container: Container) -> Iterator[Problem]:
    """Check that each port that a probe names is in the container."""
    body = container.body
    for probe_name in PROBES:
        probe = body.get(probe_name)
        if not isinstance(probe, dict):
            continue
        for way in ("httpGet", "tcpSocket"):
            port = mapping(probe.get(way)).get("port")
            if isinstance(port, str):
                names = names_of(body.get("ports"))
                if port not in names:
                    path = (*container.path, probe_name, way, "port")
                    yield _unknown(f"no port `{port}` in the container", path, port, names)


def _claims(template: PodTemplate, container: Container) -> Iterator[Problem]:
    """Check that each device claim of a container is in its pod."""
    resources = container.body.get("resources")
    if isinstance(resources, dict) and "claims" in resources:
        known = names_of(template.spec.get("resourceClaims"))
        for number, claim in entries(resources["claims"]):
            name = claim.get("name")
            if isinstance(name, str) and name not in known:
                path = (*container.path, "resources", "claims", number, "name")
                yield _unknown(f"no resource claim `{name}` in the pod", path, name, known)


def _sleep(template: PodTemplate, container: Container) -> Iterator[Problem]:
    """Check that a preStop sleep fits into the grace period."""
    if "lifecycle" not in container.body:
        return
    hook = mapping(mapping(container.body["lifecycle"]).get("preStop"))
    seconds = mapping(hook.get("sleep")).get("seconds")
    grace = template.spec.get("terminationGracePeriodSeconds")
    grace = 30 if grace is None else grace
    if isinstance(seconds, int) and isinstance(grace, int) and seconds > grace >= 0:
        path = (*container.path, "lifecycle", "preStop", "sleep", "seconds")
        message = f"preStop sleeps {seconds} seconds, but the grace period of the pod is {grace}"
        yield Problem(codes.FIELD_CONFLICT, message, path, "raise terminationGracePeriodSeconds")


def _failure_policy_names(obj: Object, templates: list[PodTemplate]) -> Iterator[Problem]:
    """Check that each container that the failure policy of a Job names is in the pod."""
    path: FieldPath = ("spec",)
    spec = mapping(obj.get("spec"))
    if obj.get("kind") == "CronJob":
        path = ("spec", "jobTemplate", "spec")
        spec = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    if "podFailurePolicy" not in spec:
        return
    known = {c.name for c in containers(templates[0])}
    for number, rule in entries(mapping(spec["podFailurePolicy"]).get("rules")):
        name = mapping(rule.get("onExitCodes")).get("containerName")
        if isinstance(name, str) and name not in known:
            place = (*path, "podFailurePolicy", "rules", number, "onExitCodes", "containerName")
            yield _unknown(f"no container `{name}` in the pod", place, name, known)


def _unknown(message: str, path: FieldPath, name: str, known: set[str]) -> Problem:
    return _UnknownName(codes.UNKNOWN_NAME_IN_POD, message, path, name=name, known=known)


def _own_selector(obj: Object, template: PodTemplate) -> Iterator[Problem]:
    """Check that the pods of a controller have the labels that it selects."""
    selector = mapping(mapping(obj.get("spec")).get("selector"))
    labels = mapping(template.metadata.get("labels"))
    selected = mapping(selector.get("matchLabels"))
    for key, value in selected.items():
        if labels.get(key) != value:
            message = f"the pods of the template lack the label {key}: {value}"
            yield Problem(codes.SELECTOR_MISMATCH, message, ("spec", "selector", "matchLabels", key))
    if not selector.get("matchExpressions") and not selected and "selector" in mapping(obj.get("spec")):
        yield Problem(codes.SELECTOR_MISMATCH, "the selector is empty", ("spec", "selector"))
