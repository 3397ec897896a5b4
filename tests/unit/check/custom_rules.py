"""Objects that break a rule in CEL of their kind, and what kaigen says of them.

`tests/cluster/test_differential.py` asks the API server.
"""

from __future__ import annotations

from typing import Any

from tests.unit.check.api_rules import Refused

_TERMS = "spec.subnetSelectorTerms"
_RULE = "spec.rules[0]"


def _requirement(**fields: Any) -> list[dict[str, Any]]:
    return [{"key": "a.example/b", "operator": "In", "values": ["x"], **fields}]


CASES = (
    Refused("NodePool", "spec.template.spec.requirements", _requirement(operator="Gt", values=["x"]), "",
            "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value "
            "(no answer: `x` is not an integer)"),
    Refused("NodePool", "spec.template.spec.requirements", _requirement(key="x.karpenter.sh/a"), "[0].key",
            'label domain "karpenter.sh" is restricted'),
    Refused("EC2NodeClass", "spec.amiSelectorTerms", [{"alias": "windows2022@1"}], "[0].alias",
            "windows families may only specify version 'latest'"),
    Refused("EC2NodeClass", _TERMS, [{"id": "subnet-1", "tags": {"a": "b"}}], "",
            "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term"),
    Refused("HTTPRoute", f"{_RULE}.timeouts", {"request": "1s", "backendRequest": "2s"}, "",
            "backendRequest timeout cannot be longer than request timeout"),
    Refused("HTTPRoute", f"{_RULE}.matches", [{"path": {"type": "PathPrefix", "value": "/a//b"}}], "[0].path",
            "must not contain '//' when type one of ['Exact', 'PathPrefix']"),
    Refused("Gateway", "spec.listeners[0].tls", {"mode": "Terminate"}, "",
            "certificateRefs or options must be specified when mode is Terminate (no answer: missing field `options`)"),
    Refused("ResourceFlavor", "spec.nodeTaints", [{"key": "a", "effect": "Never"}], "",
            "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"),
    Refused("Kustomization", "spec.kubeConfig", {"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}}, "",
            "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified"),
    Refused("ClusterQueue", "spec.resourceGroups", [{"coveredResources": ["cpu", "memory"], "flavors": [
        {"name": "a", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}], "[0]",
            "flavors must have the same number of resources as the coveredResources"),
    Refused("ClusterQueue", "spec.preemption", {"borrowWithinCohort": {"policy": "LowerPriority"}}, "",
            "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"),
    Refused("ClusterQueue", "spec.flavorFungibility", {"preference": "PreemptionOverBorrowing"}, "",
            "preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"),
    Refused("ScaledObject", "spec.minReplicaCount", 1000, ".spec",
            "minReplicaCount must be less than or equal to maxReplicaCount"),
    Refused("HTTPRoute", f"{_RULE}.matches", [{"path": {"type": "PathPrefix", "value": "v1"}}], "[0].path",
            "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']"),
    Refused("HTTPRoute", f"{_RULE}.backendRefs", [{"name": "chat"}], "[0]", "Must have port for Service reference"),
    Refused("InferencePool", "spec.endpointPickerRef", {"name": "a"}, "",
            "port is required when kind is 'Service' or unspecified (defaults to 'Service')"),
    Refused("HelmRelease", "spec.chart", {"spec": {"chart": "a", "sourceRef": {"kind": "GitRepository", "name": "a"}}},
            ".spec", "either chart or chartRef must be set"),
)  # fmt: skip
