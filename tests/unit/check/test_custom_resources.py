from __future__ import annotations

from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.schema_check import check_object
from tests.unit.check.example_objects import example, label, objects
from tests.unit.check.mutations import at, place, places

TYPE, BAD, RANGE = codes.WRONG_TYPE, codes.BAD_VALUE, codes.OUT_OF_RANGE
CUSTOM = objects("accelerated.yaml", "gitops.yaml")


@pytest.mark.parametrize("obj", CUSTOM, ids=label)
def test_a_valid_custom_resource_is_accepted(obj: dict[str, Any]) -> None:
    assert check_object(obj) == []


@pytest.mark.parametrize("obj", CUSTOM, ids=label)
def test_a_misspelled_field_is_reported_with_its_path_and_the_right_name(obj: dict[str, Any]) -> None:
    """Every field of every example that its schema names, one at a time."""
    refused = 0
    for spot in [p for p in places(obj) if p[0] == "spec" and isinstance(p[-1], str)]:
        changed = example(obj["kind"])
        parent, name = at(changed, spot[:-1]), str(spot[-1])
        parent[f"{name}s"] = parent.pop(name)
        unknown = [f for f in check_object(changed) if f.code == codes.UNKNOWN_FIELD]
        for finding in unknown:
            assert finding.path == (*spot[:-1], f"{name}s")
            assert finding.hint == f"did you mean `{name}`?"
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("kind", "where", "value", "code", "message"),
    [
        ("Application", "spec.syncPolicy.automated.prune", "yes", TYPE, "must be true or false, not `yes`"),
        ("Application", "spec.syncPolicy.retry.limit", "5", TYPE, "must be an integer, not `5`"),
        ("AppProject", "spec.sourceRepos", "*", TYPE, "must be a list, not `*`"),
        ("ApplicationSet", "spec.generators[0].matrix.generators[0].git.repoURL", 1, TYPE,
         "must be a string"),
        ("GitRepository", "spec.interval", "1 minute", BAD, "`1 minute` is not a duration such as 1h30m"),
        ("GitRepository", "spec.url", "git.example.com/x", BAD, "does not match ^(http|https|ssh)://"),
        ("OCIRepository", "spec.layerSelector.operation", "unpack", BAD,
         "must be one of extract, copy, not `unpack`"),
        ("Kustomization", "spec.sourceRef.kind", "Git", BAD,
         "must be one of OCIRepository, GitRepository, Bucket"),
        ("HelmRelease", "spec.upgrade.crds", "Replace", BAD, "must be one of Skip, Create, CreateReplace"),
        ("LeaderWorkerSet", "spec.leaderWorkerTemplate.size", 2**40, RANGE, "exceeds 32 bits"),
        ("LeaderWorkerSet", "spec.startupPolicy", "leaderReady", BAD,
         "must be one of LeaderCreated, LeaderReady"),
        ("LeaderWorkerSet",
         "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources.requests.cpu",
         "8 cores", BAD, "`8 cores` is not a quantity"),
        ("JobSet", "spec.replicatedJobs[0].template.spec.completions", "4", TYPE, "must be an integer"),
        ("ClusterQueue", "spec.queueingStrategy", "FIFO", BAD, "must be one of StrictFIFO, BestEffortFIFO"),
        ("ClusterQueue", "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota", "many", BAD,
         "is not a quantity"),
        ("ScaledObject", "spec.minReplicaCount", "0", TYPE, "must be an integer"),
        ("HTTPRoute", "spec.rules[0].matches[0].path.type", "Glob", BAD,
         "must be one of Exact, PathPrefix, RegularExpression"),
        ("HTTPRoute", "spec.rules[0].backendRefs[1].port", 70000, RANGE, "must be between 1 and 65535, not 70000"),
        ("HTTPRoute", "spec.hostnames[0]", "Chat.example.com", BAD, "does not match"),
        ("HTTPRoute", "spec.rules[0].timeouts.request", "ten", BAD, "is not a duration such as 1h30m"),
        ("Gateway", "spec.addresses[0].value", "here", BAD, "`here` is not an IPv4 address"),
        ("Gateway", "spec.listeners", [], RANGE, "must not be empty"),
        ("InferencePool", "spec.targetPorts[0].number", 0, RANGE, "must be between 1 and 65535, not 0"),
        ("NodePool", "spec.replicas", 2**31, RANGE, "must be between 0 and 2147483647, not 2147483648"),
        ("NodePool", "spec.template.spec.requirements[0].operator", "in", BAD,
         "must be one of Gte, Lte, In, NotIn"),
        ("NodePool", "spec.template.spec.expireAfter", "30d", BAD,
         "is not a duration such as 1h30m, or Never"),
        ("ExternalSecret", "spec.target.creationPolicy", "Own", BAD,
         "must be one of Owner, Orphan, Merge, None"),
        ("ExternalSecret", "spec.data[0].secretKey", "a b", BAD, "does not match"),
        ("PodMonitor", "spec.podMetricsEndpoints[0].interval", "30", BAD, "`30` does not match"),
        ("SealedSecret", "spec.encryptedData.token", 5, TYPE, "must be a string"),
        ("RayCluster", "spec.workerGroupSpecs[0].groupName", 5, TYPE, "must be a string"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_reported_at_its_path(kind: str, where: str, value: object, code: str, message: str) -> None:
    obj = example(kind)
    at(obj, place(where)[:-1])[place(where)[-1]] = value
    findings = [f for f in check_object(obj) if f.where == where]
    assert [f.code for f in findings] == [code]
    assert message in findings[0].message


@pytest.mark.parametrize(
    ("kind", "holder", "field"),
    [
        ("Application", ("spec",), "destination"),
        ("Kustomization", ("spec",), "prune"),
        ("GitRepository", ("spec",), "url"),
        ("LeaderWorkerSet", ("spec", "leaderWorkerTemplate"), "workerTemplate"),
        ("ScaledObject", ("spec",), "triggers"),
        ("NodePool", ("spec", "template", "spec"), "nodeClassRef"),
        ("InferencePool", ("spec",), "selector"),
    ],
)
def test_a_missing_field_is_reported_at_its_parent(kind: str, holder: tuple[str | int, ...], field: str) -> None:
    obj = example(kind)
    del at(obj, holder)[field]
    findings = [f for f in check_object(obj) if f.code == codes.MISSING_FIELD]
    assert [(f.path, f.message) for f in findings] == [(holder, f"missing field `{field}`")]


def test_a_required_field_with_a_default_may_be_left_out() -> None:
    obj = example("RayCluster")
    group = obj["spec"]["workerGroupSpecs"][0]
    assert "minReplicas" not in group
    assert "maxReplicas" not in group
    assert check_object(obj) == []


def test_an_address_without_a_type_is_an_ip_address() -> None:
    obj = example("Gateway")
    del obj["spec"]["addresses"][0]["type"]
    assert check_object(obj) == []
    obj["spec"]["addresses"][0] = {"type": "Hostname", "value": "gateway.example.com"}
    assert check_object(obj) == []


def test_null_is_refused_as_by_server_side_apply_except_where_a_default_replaces_it() -> None:
    obj = example("HTTPRoute")
    obj["spec"]["rules"][0]["backendRefs"][0]["weight"] = None  # its default is 1
    assert check_object(obj) == []
    obj["spec"]["hostnames"] = None
    obj["spec"]["rules"][0]["backendRefs"][0]["name"] = None
    assert sorted(f.message for f in check_object(obj)) == ["must be a list, not null", "must be a string, not null"]


def test_null_counts_as_a_missing_field_in_kinds_of_kubernetes() -> None:
    obj = example("Deployment")
    obj["metadata"]["labels"] = {"team": None}
    obj["spec"]["template"]["spec"]["nodeName"] = None
    assert check_object(obj) == []


def test_a_quantity_of_a_custom_resource_must_not_be_a_float() -> None:
    obj = example("ClusterQueue")
    quota = obj["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    for value, good in ((1, True), ("1.5", True), (1.5, False)):
        quota["nominalQuota"] = value
        assert (check_object(obj) == []) is good


def test_unstructured_fields_accept_anything() -> None:
    obj = example("HelmRelease")
    obj["spec"]["values"] = {"deep": [{"er": None}], "x": 1.5}
    assert check_object(obj) == []


def test_entries_with_the_same_key_are_refused() -> None:
    obj = example("JobSet")
    obj["spec"]["replicatedJobs"].append(obj["spec"]["replicatedJobs"][0])
    assert [f.code for f in check_object(obj)] == [codes.DUPLICATE_ENTRY]


def test_metadata_is_checked_like_that_of_core_objects() -> None:
    obj = example("NodePool")
    obj["metadata"]["label"] = {}
    assert [f.where for f in check_object(obj)] == ["metadata.label"]
