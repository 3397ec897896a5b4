"""The page of what ran, and the check that the markers of cluster tests are true."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import certifi
import pytest

from tests.cluster import proof
from tests.cluster.audit import Audit, Request
from tests.cluster.client import Client, Object
from tools import proven

LABELS = {"app.kubernetes.io/managed-by": "kaigen"}


def test_every_emitted_kind_has_a_test_or_a_reason() -> None:
    assert proven.problems(proven.rows(), proven.notes()) == []


def test_the_page_has_a_line_for_each_kind_and_the_reason_of_each_that_never_ran() -> None:
    rows, lines = proven.rows(), proven.page().splitlines()
    table = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| ")}
    assert [row.kind for row in rows if row.kind not in table] == []
    for row in rows:
        assert table[row.kind].endswith("| never |") == (not row.ran)
        assert (f"- **{row.kind}**: {row.never}" in lines) == (not row.ran)
        assert all(f"`{marker.test}`" in table[row.kind] for marker in row.ran)


def row(**fields: object) -> proven.Row:
    ran = proven.Marker("ran", ("Job",), ("node",), "tests/cluster/test_a.py", "test_a")
    complete: dict[str, object] = {"kind": "Job", "rendered": "demo", "accepted": "test", "ran": (ran,), "never": ""}
    return proven.Row(**(complete | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"ran": ()}, "Job: add a test with the marker `ran`, or a reason to tools/proven.yaml"),
        ({"never": "Needs a GPU."}, "Job: test_a runs it; remove its line from tools/proven.yaml"),
        ({"accepted": ""}, "Job: no API server accepted it; add a cluster test with the marker `accepted`"),
    ],
)
def test_a_kind_without_proof_is_reported(fields: Mapping[str, object], problem: str) -> None:
    assert problem in proven.problems([row(**fields)], proven.notes())


def test_a_kind_that_kaigen_does_not_emit_is_reported() -> None:
    notes = proven.Notes({"Unicorn": "Is no animal."}, {}, [])
    assert "Unicorn: kaigen does not emit it" in proven.problems(proven.rows(), notes)


def test_markers_of_single_cases_count() -> None:
    source = """
@pytest.mark.parametrize("form", ["plain", pytest.param("chart", marks=pytest.mark.ran("Pod", by=("node", "helm")))])
@pytest.mark.ran("Job", by="node")
def test_it(): ...
"""
    found = sorted(proven.markers_of(source, "test_it.py"), key=lambda marker: marker.kinds)
    assert [(marker.kinds, marker.by) for marker in found] == [(("Job",), ("node",)), (("Pod",), ("node", "helm"))]


def write(
    resource: str, kind: str, labels: Mapping[str, str] = LABELS, verb: str = "create", **body: object
) -> Request:
    """Return a write of the object `x` in namespace `n`."""
    content = {"kind": kind, "metadata": {"name": "x", "labels": labels}, **body}
    return request(verb, resource, content)


def request(verb: str, resource: str, body: Object, **fields: str) -> Request:
    return Request(
        user=fields.get("user", "anyone"),
        agent="",
        verb=verb,
        group="",
        resource=resource,
        namespace="n",
        name="x",
        code=200,
        uri="",
        time="",
        body=body,
        reason=fields.get("reason", ""),
        message=fields.get("message", ""),
    )


def missing(kind: str, *requests: Request) -> list[str]:
    return list(proof.unproven(proof.seen(requests), proof.Mark((kind,), ("node",))))


def test_a_job_that_completed_ran() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert missing("Job", write("jobs", "Job"), write("jobs/status", "Job", verb="update", status=status)) == []


def test_a_job_that_failed_did_not_run() -> None:
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    (problem,) = missing("Job", write("jobs", "Job"), write("jobs/status", "Job", verb="update", status=status))
    assert problem.startswith("no Job ran: x has status")


def test_an_object_that_kaigen_did_not_emit_does_not_count() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    others = write("jobs", "Job", labels={}), write("jobs/status", "Job", labels={}, status=status)
    assert missing("Job", *others) == ["kaigen emitted no Job"]


def test_a_deployment_that_was_ready_once_ran() -> None:
    ready, scaled = {"readyReplicas": 2, "replicas": 2}, {"replicas": 3}
    states = [write("deployments/status", "Deployment", verb="update", status=s) for s in (ready, scaled)]
    assert missing("Deployment", write("deployments", "Deployment"), *states) == []
    assert missing("Deployment", write("deployments", "Deployment"), states[1]) != []


def test_patches_of_conditions_are_merged() -> None:
    first = proof.merged({}, {"conditions": [{"type": "Ready", "status": "False"}], "url": "u"})
    second = proof.merged(first, {"conditions": [{"type": "Ready", "status": "True"}]})
    assert second == {"conditions": [{"type": "Ready", "status": "True"}], "url": "u"}


def test_a_config_map_ran_when_the_kubelet_read_it() -> None:
    made = write("configmaps", "ConfigMap")
    assert missing("ConfigMap", made, request("get", "configmaps", {}, user="someone")) != []
    assert missing("ConfigMap", made, request("get", "configmaps", {}, user="system:node:node")) == []


def test_a_role_ran_when_it_allowed_a_request() -> None:
    reason = 'RBAC: allowed by RoleBinding "x/n" of Role "x" to ServiceAccount "x/n"'
    used = request("get", "jobs", {}, reason=reason)
    assert missing("Role", write("roles", "Role"), used) == []
    assert missing("RoleBinding", write("rolebindings", "RoleBinding"), used) == []
    assert missing("Role", write("roles", "Role")) != []


@pytest.mark.parametrize(
    ("resource", "kind", "message"),
    [
        (
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            "pods \"p\" is forbidden: ValidatingAdmissionPolicy '{}' with binding '{}' denied request: image: no",
        ),
        (
            "validatingpolicies",
            "ValidatingPolicy",
            'admission webhook "vpol.validate.kyverno.svc-fail-finegrained-{}" denied the request: '
            "Policy {} failed: image: no",
        ),
    ],
)
def test_a_policy_ran_when_it_refused_a_request(resource: str, kind: str, message: str) -> None:
    made = write(resource, kind)
    assert missing(kind, made, request("create", "pods", {}, message=message.format("x", "x"))) == []
    assert missing(kind, made, request("create", "pods", {}, message=message.format("y", "y"))) != []
    assert missing(kind, made) != []


def test_a_service_ran_when_it_had_a_ready_endpoint() -> None:
    def slice_(ready: bool) -> Request:
        labels = {"kubernetes.io/service-name": "x"}
        return write("endpointslices", "EndpointSlice", labels, endpoints=[{"conditions": {"ready": ready}}])

    assert missing("Service", write("services", "Service"), slice_(ready=False)) != []
    assert missing("Service", write("services", "Service"), slice_(ready=True)) == []


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        (proof.Mark(("Job",), ("argocd",)), "Job only run on a real node"),
        (proof.Mark(("Gateway",), ("unicorn",)), "`by` names unicorn"),
        (proof.Mark(("Gateway",), ()), "needs a kind and `by`"),
    ],
)
def test_wrong_arguments_of_a_marker_are_refused(mark: proof.Mark, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        proof.check_names(mark)


def test_a_test_may_begin_while_the_api_server_writes_an_event(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = Audit(path, Client("127.0.0.1", 1, Path(certifi.where())))
    assert log.place() == 0
    path.write_bytes(b'{"stage"')
    assert log.place() == 0

    whole = b"".join(json.dumps(event(name)).encode() + b"\n" for name in ("one", "two"))
    half = json.dumps(event("three", note="x" * 200_000)).encode()
    path.write_bytes(whole + half[:150_000])
    began = log.place()
    assert began == len(whole)

    path.write_bytes(whole + half + b"\n")
    assert [request.name for request in log.requests(began, path.stat().st_size)] == ["three"]
    assert log.place() == path.stat().st_size


def event(name: str, **fields: str) -> Object:
    return {
        "stage": "ResponseComplete",
        "objectRef": {"resource": "configmaps", "namespace": "a", "name": name},
        "user": {"username": "admin"},
        "verb": "create",
        "requestURI": "/",
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        **fields,
    }
