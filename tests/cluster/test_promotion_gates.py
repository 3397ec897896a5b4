"""Gates on a real node, under Argo CD and Flux: a benchmark decides about a promotion, an evaluation counts answers.

The engine is a small server with OpenAI's API. `test_vllm_gates.py` has vLLM and its own benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import openai_server, vllm_bench
from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.gated import Cluster, change, decides, jobs, make_cluster, measured, read_reports, wait_run
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until

BENCH = "kaigen.test/bench:1"
SMALL = {"cpu": "50m", "memory": "128Mi"}
TASK = """
task: capitals
dataset_path: json
dataset_kwargs: {data_files: {test: /inputs/tasks/capitals.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "What is the capital of {{country}}?"
doc_to_target: "{{city}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def engine(**env: str) -> Object:
    """Return the Topology that is judged."""
    code = Path(openai_server.__file__).read_text("utf-8")
    return spec(
        "Topology",
        "assistant",
        engine="container",
        image=BASE,
        command=["python", "-c", code],
        probes={"ready": "/v1/models"},
        resources=SMALL,
        env={"DELAY": "0.02", **env},
    )


def speed(limit: str) -> Object:
    """Return the gate: the 95th percentile of the time to the first token."""
    return spec(
        "Job",
        "speed",
        workload="benchmark",
        target={"name": "assistant", "wait": "3m"},
        benchmark={"image": BENCH, "requests": 20, "concurrency": 4, "promptWords": 10, "outputTokens": 5},
        require={"ttft": {"p95": limit}, "throughput": {"min": 1}},
        resources=SMALL,
    )


def bench_image() -> Path:
    """Return the archive of an image whose `vllm bench serve` is that of the tests."""
    files = {"vllm": Path(vllm_bench.__file__).read_bytes()}
    return build_from(BENCH, f"FROM {BASE}\nCOPY vllm /usr/local/bin/vllm\n", files)


@pytest.fixture(params=["argocd", "flux"])
def cluster(node: Node, node_namespace: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return a repository that each of the two controllers syncs."""
    node.import_image(bench_image())
    found = make_cluster(request, request.param, node, node_namespace, tmp_path)
    yield found
    found.remove()


def test_a_benchmark_decides_about_a_promotion(cluster: Cluster) -> None:
    node, team = cluster.node, cluster.team
    runs = decides(cluster, engine(), strict=speed("1ms"), loose=speed("60s"))
    assert 20 <= measured(cluster)["ttft.p50"] < 60_000
    assert measured(cluster)["errors"] == 0
    # Another commit about something else runs nothing again.
    before = set(jobs(node, team.space))
    cluster.publish(engine(), speed("60s"), spec("Job", "other", image=BASE, command=["true"], resources=SMALL))
    other = partial(node.client.objects, JOB, team.space, "app.kubernetes.io/name=other")
    wait_until(lambda: any(is_true(each, "Complete") for each in other()), "the other app is synced", 120)
    assert set(jobs(node, team.space)) == before
    # Another engine is judged anew, and its pods, not those before them.
    change(cluster, engine(DELAY="0.2"), speed("60s"))
    read_reports(cluster, 1)
    cluster.publish(engine(DELAY="0.2"), speed("60s"))
    wait_run(cluster, "Complete", runs)
    read_reports(cluster, 0)
    assert measured(cluster)["ttft.p50"] >= 200


def test_an_evaluation_counts_right_answers(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("evaluate"))
    lines = [json.dumps({"country": land, "city": city}) for land, city in openai_server.CAPITALS.items()]
    data = {"capitals.yaml": TASK, "capitals.jsonl": "\n".join(lines)}
    node.client.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tasks"}, "data": data}, node_namespace
    )
    quality = {
        "workload": "evaluate",
        "target": "assistant",
        "evaluate": {"tasks": ["capitals"], "folder": "/inputs/tasks"},
        "volumes": {"tasks": {"configMap": "tasks", "mountPath": "/inputs/tasks"}},
        "resources": {"cpu": "100m", "memory": "1Gi"},
    }
    for app, minimum, condition in (("good", 0.8, "Complete"), ("bad", 0.9, "Failed")):
        job = spec("Job", app, **quality, require={"accuracy": {"min": minimum}})
        apps = compiled(tmp_path / app, [engine(WRONG="Kenya"), job], node_namespace, "generic")
        for each in apps.values():
            for rendered in each.objects:
                node.client.apply(rendered.body)
        node.client.wait(
            *(JOB, job_name(apps[app]), node_namespace),
            *(partial(is_true, condition=condition), condition),
            timeout=300,
        )
        facts = node.client.get("v1/ConfigMap", f"{app}-facts", node_namespace)["data"]
        assert (facts["gate"], facts["accuracy.capitals"]) == ("passed" if app == "good" else "failed", "0.8")
