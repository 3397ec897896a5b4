"""Rules between the fields of scalers of KEDA that its webhook enforces and no schema contains.

Source, by the name of the function in it: `apis/keda/v1alpha1` of github.com/kedacore/keda/v2 v2.21.0.
"""

from __future__ import annotations

from kaigen.check import codes, forms
from kaigen.check.webhook_problems import Findings, bad_value, conflict, count_of
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping

_RESOURCES = ("cpu", "memory")


def scaled_object_findings(obj: Object) -> Findings:
    """Follow `CheckReplicaCountBoundsAreValid`, `CheckFallbackValid` and `ValidateTriggers`, except the rule in CEL."""
    spec = mapping(obj.get("spec"))
    least, idle = count_of(spec, "minReplicaCount", 0), count_of(spec, "idleReplicaCount")
    if idle is not None and least is not None and idle >= least:
        message = f"idleReplicaCount {idle} must be less than minReplicaCount {least}"
        yield conflict(message, ("spec", "idleReplicaCount"))
    triggers = [trigger for _, trigger in entries(spec.get("triggers"))]
    modifiers = mapping(mapping(spec.get("advanced")).get("scalingModifiers"))
    if spec.get("fallback") is not None and not modifiers and all(each.get("type") in _RESOURCES for each in triggers):
        yield conflict("needs a trigger other than cpu and memory", ("spec", "fallback"))
    if modifiers.get("formula") and not modifiers.get("target"):
        yield Problem(codes.MISSING_FIELD, "missing field `target`", ("spec", "advanced", "scalingModifiers"))
    yield from trigger_findings(obj)


def trigger_findings(obj: Object) -> Findings:
    """Follow `ValidateTriggers`, and `cronMetadata.Validate` of `pkg/scalers`, which the controller calls."""
    triggers = mapping(obj.get("spec")).get("triggers")
    names: set[str] = set()
    if triggers == []:
        yield Problem(codes.MISSING_FIELD, "needs at least one trigger", ("spec", "triggers"))
    for number, trigger in entries(triggers):
        path: FieldPath = ("spec", "triggers", number)
        if trigger.get("useCachedMetrics") and trigger.get("type") in (*_RESOURCES, "cron"):
            yield conflict(f"a trigger of type {trigger['type']} has no cache", (*path, "useCachedMetrics"))
        name = trigger.get("name")
        if isinstance(name, str) and name:
            if name in names:
                yield Problem(codes.DUPLICATE_ENTRY, f"has the same name {name} as another trigger", (*path, "name"))
            names.add(name)
        if trigger.get("type") == "cron":
            yield from _cron_findings(mapping(trigger.get("metadata")), (*path, "metadata"))


def _cron_findings(metadata: Object, path: FieldPath) -> Findings:
    for field, form in (("start", forms.schedule), ("end", forms.schedule), ("timezone", forms.time_zone)):
        for mismatch in form(metadata.get(field)) or ():
            yield Problem(mismatch.code, mismatch.message, (*path, field), mismatch.hint)
        if str(metadata.get(field)).startswith("@"):
            yield bad_value("a window of KEDA has times such as `0 6 * * *`", (*path, field))
    if metadata.get("start") == metadata.get("end"):
        yield conflict("`start` and `end` are the same time", (*path, "end"))
    if metadata.get("desiredReplicas") in (None, "", "0", 0):
        yield Problem(codes.MISSING_FIELD, "`desiredReplicas` must be at least 1", path)
