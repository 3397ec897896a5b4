"""Where an app is reached, and what its download and its conversion measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.cluster.states import State
from kaigen.kubernetes.manifest import Identity, Object, type_of
from kaigen.pipeline.run import Run
from kaigen.status.app_status import AppStatus, app_data, status_rows
from kaigen.status.facts import current_facts, endpoint_facts, records_facts, workspace_facts


def rendered(kind: str, **spec: Any) -> list[Any]:
    document = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "chat", "namespace": "ml"},
        "spec": spec,
    }
    (app,) = Run.load([document], use_cache=False).apps()
    return [item.body for item in app.objects]


SERVED: dict[str, Any] = {"model": {"huggingFace": {"repo": "Qwen/Qwen2.5-0.5B-Instruct", "revision": "0" * 40}}}


@pytest.mark.promise("Koldun", "Step 5, status: pod phase details and endpoints")
@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ({}, "http://chat.ml.svc:80"),
        ({"host": "chat.example.com", "gateway": {"name": "public"}}, "chat.example.com"),
        (
            {"host": "chat.example.com", "ingress": {"className": "nginx"}, "tls": {"secret": {"name": "tls"}}},
            "https://chat.example.com",
        ),
    ],
)
def test_endpoint_is_the_host_of_a_route_or_the_service(route: dict[str, Any], expected: str) -> None:
    objects = rendered("Topology", **SERVED, **({"route": route} if route else {}))
    assert endpoint_facts("chat", "ml", objects) == {"endpoint": expected}


def test_job_has_no_endpoint(tmp_path: Path) -> None:
    assert endpoint_facts("chat", "ml", rendered("Job", image="example.com/a:1")) == {}


def test_only_a_download_records_facts() -> None:
    source = {"huggingFace": {"repo": "a/b", "revision": "0" * 40}}
    objects = rendered("Model", source=source, store={"volume": {"size": "1Gi"}})
    assert "Role.rbac.authorization.k8s.io" in {type_of(each) for each in objects}
    assert records_facts("chat", objects)
    assert not records_facts("other", objects)
    assert not records_facts("chat", rendered("Job", image="example.com/a:1"))


RECORDED = {
    "files": "2",
    "bytes": "80000000",
    "fileNames": '["a", "b"]',
    "url": "s3://bucket/qwen",
    "conversionSizeBytes": "302428",
    "conversionSizeHuman": "295.3 KiB",
}


@pytest.mark.promise("Koldun", "`status.conversionSizeBytes`, `status.conversionSizeHuman`")
@pytest.mark.promise("Substratus", "`status.url`, `files`, `size` of a Model")
def test_tables_show_the_size_of_a_conversion_and_json_all_that_was_recorded() -> None:
    found = AppStatus("", "ml", "qwen", "Model", {}, facts=RECORDED)
    narrow, wide = (next(row[6 + more] for row in rows_of(found, wide=bool(more))) for more in (0, 1))
    assert narrow == "files 2, bytes 80000000, conversionSizeHuman 295.3 KiB"
    assert "url s3://bucket/qwen, conversionSizeBytes 302428" in wide
    assert "fileNames" not in wide
    assert app_data(found)["facts"] == RECORDED


def rows_of(found: AppStatus, *, wide: bool) -> list[tuple[str, ...]]:
    """Return the rows of a table without its header."""
    return list(status_rows([found], wide=wide))[1:]


@pytest.mark.promise("Koldun", "Step 5, status: model download progress")
@pytest.mark.parametrize("running", [True, False])
def test_progress_of_a_download_is_shown_while_it_runs(running: bool) -> None:
    data = {"progress": "fetching 34% of 3.5 GiB (2m05s left)"}
    recorded = {"files": "2", **data}
    assert current_facts(recorded, running=running) == (recorded if running else {"files": "2"})


WORKLOAD = Identity("Deployment.apps", "ml", "falcon")
CLAIM = Identity("PersistentVolumeClaim", "ml", "falcon")


@pytest.mark.promise("KAITO", "The columns RESOURCEREADY, INFERENCEREADY and WORKSPACEREADY")
@pytest.mark.parametrize(
    ("nodes", "workload", "claim", "expected"),
    [
        ([], "progressing", "progressing", ("False", "False", "False")),
        ([""], "progressing", "progressing", ("False", "False", "False")),
        (["n1", ""], "progressing", "ready", ("False", "False", "False")),
        (["n1"], "progressing", "ready", ("True", "False", "False")),
        (["n1"], "ready", "progressing", ("True", "True", "False")),
        (["n1"], "ready", "ready", ("True", "True", "True")),
    ],
)
def test_a_workspace_has_the_columns_of_kaito(
    nodes: list[str], workload: Any, claim: Any, expected: tuple[str, ...]
) -> None:
    pods: list[Object] = [{"spec": {"nodeName": node} if node else {}} for node in nodes]
    states = {WORKLOAD: State(workload), CLAIM: State(claim)}
    columns = ("RESOURCEREADY", "INFERENCEREADY", "WORKSPACEREADY")
    assert workspace_facts("Workspace", states, pods) == dict(zip(columns, expected, strict=True))
    assert workspace_facts("Topology", states, pods) == {}
    # One that trains has a Job.
    assert workspace_facts("Workspace", {CLAIM: State(claim)}, pods) == {}
