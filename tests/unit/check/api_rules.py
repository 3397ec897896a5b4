"""Objects that the API server refuses, and what kaigen says of them.

`tests/cluster/test_differential.py` asks the API server.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.unit.check.example_objects import example
from tests.unit.check.mutations import at
from tests.unit.check.mutations import place as named

POD = "spec.template.spec"
C = f"{POD}.containers[0]"
TERM = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"


class Refused(NamedTuple):
    """An example with one field set to a value that the API server refuses.

    Attributes:
        kind: of the example.
        field: the field; the last mapping on its way is made where it is not there.
        value: its value.
        where: the place of kaigen's error below the field; the whole place with a dot at the start.
        message: of the error.
    """

    kind: str
    field: str
    value: Any
    where: str
    message: str

    def body(self) -> dict[str, Any]:
        """The object."""
        obj = example(self.kind)
        path = named(self.field)
        at(obj, path[:-1])[path[-1]] = self.value
        return obj


def _requirement(operator: str, *values: str, field: str = "matchExpressions", key: str = "a") -> dict[str, Any]:
    entry: dict[str, Any] = {"key": key, "operator": operator, "values": list(values)}
    terms = [{field: [entry]}]
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": terms}}}


def _memory(**more: str) -> dict[str, Any]:
    return {"requests": {"memory": "1Gi", **more}, "limits": {"memory": "1Gi", **more}}


HTTP = {"httpGet": {"port": 80}}
CASES = (
    Refused("Deployment", f"{POD}.tolerations", [{"key": "a", "operator": "Exists", "value": "b"}],
            "[0].value", "`value` must not be set where `operator` is Exists"),
    Refused("Deployment", f"{POD}.tolerations", [{"key": "a", "tolerationSeconds": 3, "effect": "NoSchedule"}],
            "[0].effect", "`effect` must be NoExecute where `tolerationSeconds` is set, not `NoSchedule`"),
    Refused("Deployment", f"{POD}.tolerations", [{"effect": "NoSchedule"}],
            "[0]", "`operator` must be Exists where `key` is not set"),
    Refused("Deployment", f"{POD}.affinity", _requirement("Exists", "b"), f".{POD}.{TERM}.matchExpressions[0].values",
            "`values` must not be set where `operator` is DoesNotExist or Exists"),
    Refused("Deployment", f"{POD}.affinity", _requirement("In"), f".{POD}.{TERM}.matchExpressions[0]",
            "missing field `values` where `operator` is In or NotIn or Gt or Lt"),
    Refused("Deployment", f"{POD}.affinity", _requirement("Gt", "1", "2"),
            f".{POD}.{TERM}.matchExpressions[0].values", "must have one value where `operator` is Gt"),
    Refused("Deployment", f"{POD}.affinity", _requirement("In", "a", field="matchFields", key="spec.x"),
            f".{POD}.{TERM}.matchFields[0].key", "must be metadata.name, the only field"),
    Refused("Deployment", f"{C}.livenessProbe", {**HTTP, "successThreshold": 2},
            ".successThreshold", "must be 1 in a livenessProbe, not 2"),
    Refused("Deployment", f"{C}.startupProbe", {**HTTP, "successThreshold": 3},
            ".successThreshold", "must be 1 in a startupProbe, not 3"),
    Refused("Deployment", f"{C}.readinessProbe", {**HTTP, "terminationGracePeriodSeconds": 5},
            ".terminationGracePeriodSeconds", "must not be set in a readinessProbe, which ends no container"),
    Refused("Deployment", f"{POD}.initContainers", [{"name": "a", "image": "a", "livenessProbe": HTTP}],
            "[0].livenessProbe", "`livenessProbe` must not be set in an init container without restartPolicy Always"),
    Refused("Deployment", f"{C}.resources", _memory(**{"hugepages-1Gi": "2500Mi"}),
            ".limits.hugepages-1Gi", "2500Mi is not a multiple of pages of 1Gi"),
    Refused("Deployment", f"{C}.resources", {"limits": {"hugepages-2Mi": "4Mi"}},
            "", "huge pages need an amount of cpu or memory"),
    Refused("Deployment", f"{C}.image", "registry.example.com/a:1 ", "",
            "`registry.example.com/a:1 ` has spaces around it"),
    Refused("Deployment", f"{C}.securityContext", {"privileged": True, "allowPrivilegeEscalation": False},
            ".allowPrivilegeEscalation", "`privileged` needs `allowPrivilegeEscalation`"),
    Refused("Deployment", f"{C}.securityContext", {"seccompProfile": {"type": "Localhost"}},
            ".seccompProfile", "missing field `localhostProfile` where `type` is Localhost"),
    Refused("Deployment", f"{POD}.dnsPolicy", "None", f".{POD}", "missing field `dnsConfig` where `dnsPolicy` is None"),
    Refused("Deployment", f"{POD}.activeDeadlineSeconds", 5, "", "the pods of a Deployment have no deadline"),
    Refused("Deployment", f"{POD}.topologySpreadConstraints",
            [{"maxSkew": 1, "minDomains": 2, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}],
            "[0].whenUnsatisfiable",
            "`whenUnsatisfiable` must be DoNotSchedule where `minDomains` is set, not `ScheduleAnyway`"),
    Refused("Deployment", f"{POD}.volumes",
            [{"name": "a", "configMap": {"name": "a", "items": [{"key": "a", "path": "/a"}]}}],
            "[0].configMap.items[0].path", "`/a` is not a relative path"),
    Refused("Deployment", "spec.strategy", {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            ".rollingUpdate", "`rollingUpdate` must not be set where `type` is Recreate"),
    Refused("Deployment", "spec.strategy", {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}},
            ".rollingUpdate", "`maxSurge` and `maxUnavailable` must not both be 0"),
    Refused("Deployment", "spec.progressDeadlineSeconds", 0, "",
            "progressDeadlineSeconds 0 must be more than minReadySeconds 0"),
    Refused("DaemonSet", "spec.updateStrategy", {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            ".rollingUpdate", "one of `maxSurge` and `maxUnavailable` must be 0, and the other not"),
    Refused("Deployment", f"{POD}.runtimeClassName", "", f".{POD}.runtimeClassName", "must not be empty"),
    Refused("Pod", "spec", {"containers": [{"name": "a", "image": "a"}], "nodeName": "a",
                            "schedulingGates": [{"name": "example.com/gate"}]},
            ".spec.nodeName", "`nodeName` must not be set where `schedulingGates` is set"),
    Refused("Job", "spec.podFailurePolicy",
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0, 1]}}]},
            ".rules[0].onExitCodes.values[0]", "0 is success, and no failure has it where `operator` is In"),
    Refused("Job", "spec.podFailurePolicy",
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 1]}}]},
            ".rules[0].onExitCodes.values", "must be ordered and without duplicates"),
    Refused("Job", "spec.maxFailedIndexes", 1, ".spec",
            "missing field `backoffLimitPerIndex` where `maxFailedIndexes` is set"),
    Refused("Job", "spec.selector", {"matchLabels": {"a": "b"}}, "", "the API server makes the selector of a Job"),
    Refused("CronJob", "spec.schedule", "0 25 * * *", "", "`25` is not a number from 0 to 23 (hour)"),
    Refused("CronJob", "spec.timeZone", "Mars/Olympus", "", "unknown time zone `Mars/Olympus`"),
    Refused("NetworkPolicy", "spec.egress", [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}],
            "[0].to[0].ipBlock.except[0]", "`11.0.0.0/16` is not a part of 10.0.0.0/8"),
    Refused("NetworkPolicy", "spec.egress", [{"ports": [{"port": 80, "endPort": 79}]}],
            "[0].ports[0].endPort", "endPort 79 is below port 80"),
    Refused("PersistentVolumeClaim", "spec.accessModes", ["ReadWriteOncePod", "ReadWriteMany"], "",
            "ReadWriteOncePod must be the only access mode"),
    Refused("Role", "rules", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], "[0].nonResourceURLs",
            "paths belong to no namespace, so only a ClusterRole may have them"),
    Refused("HorizontalPodAutoscaler", "spec.minReplicas", 1000, "", "minReplicas 1000 exceeds maxReplicas 8"),
    Refused("Service", "spec.ports[0].nodePort", 30000, "", "`nodePort` needs the type NodePort or LoadBalancer"),
    Refused("ResourceQuota", "spec.hard", {"pods": "1500m"}, ".pods", "pods 1500m is not a whole number"),
    Refused("LimitRange", "spec.limits", [{"type": "Container", "min": {"cpu": 2}, "max": {"cpu": 1}}],
            "[0].min.cpu", "min 2 of cpu is above its max"),
    Refused("LimitRange", "spec.limits", [{"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}}],
            "[0].maxLimitRequestRatio.cpu", "maxLimitRequestRatio 500m of cpu is below 1"),
    Refused("LimitRange", "spec.limits",
            [{"type": "Container", "defaultRequest": {"cpu": 1}, "default": {"cpu": None}}],
            "[0].defaultRequest.cpu", "defaultRequest 1 of cpu is above its default"),
    Refused("LimitRange", "spec.limits", [{"type": "example.com/image", "max": {"size": 7}}],
            "[0].max.size", "unknown resource `size`"),
    Refused("Namespace", "metadata.labels", {"pod-security.kubernetes.io/enforce": None},
            '["pod-security.kubernetes.io/enforce"]', "must be one of baseline, privileged, restricted, not ``"),
    Refused("NetworkPolicy", "spec.ingress", [{"from": [{"podSelector": None}]}],
            "[0].from[0]", "missing one of ipBlock, namespaceSelector, podSelector"),
    Refused("Service", "spec.ports[0].appProtocol", "", "", "must be a name such as http, or left out"),
    Refused("StorageClass", "provisioner", "a/b/c", "", "`a/b/c` is not a name such as example.com/driver"),
    Refused("ConfigMap", "metadata.finalizers", ["protected"], "[0]",
            "`protected` is not a name such as example.com/protection"),
)  # fmt: skip
"""One for each rule."""
