"""The workloads `benchmark` and `evaluate` of a Job: the container, its problems, and the program that judges."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kaigen.catalog.images import default_images
from kaigen.config.load import load_config
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import Run
from kaigen.programs import gate
from tests import openai_server, vllm_bench

PROGRAM = str(Path(gate.__file__))
CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n"
TOPOLOGY: dict[str, Any] = {"engine": "container", "image": "registry.example/engine:1", "args": ["--fast"]}
BENCHMARK: dict[str, Any] = {"workload": "benchmark", "target": "assistant"}
EVALUATE: dict[str, Any] = {"workload": "evaluate", "target": "assistant", "evaluate": {"tasks": ["a"], "folder": "/t"}}


def compiled(folder: Path, topology: dict[str, Any], job: dict[str, Any]) -> tuple[Compiled | None, list[str]]:
    """Return the app of a Job that judges a Topology, and the codes of what is wrong with it."""
    documents = [("Topology", "assistant", topology), ("Job", "speed", job)]
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "kaigen.yaml").write_text(CONFIG)
    for kind, name, spec in documents:
        document = {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        (folder / "specs" / f"{name}.json").write_text(json.dumps(document))
    run = Run.load((), load_config(folder), use_cache=False)
    codes = [item.code for item in run.diagnostics if item.severity.name == "ERROR"]
    if codes:
        return None, codes
    (found,) = [item for item in run.compilation().apps if item.app.name == "speed"]
    return found, []


def body(item: Compiled | None, kind: str) -> Any:
    """Return the object of a kind."""
    assert item is not None
    (found,) = [each.body for each in item.objects if each.body["kind"] == kind and not each.object.test]
    return found


def params(item: Compiled | None) -> Any:
    """Return the settings of the program."""
    assert item is not None
    texts = [each.body["data"] for each in item.objects if each.body["kind"] == "ConfigMap"]
    (found,) = [data["params.json"] for data in texts if "params.json" in data]
    return json.loads(found)


def test_the_image_is_that_of_the_tool(tmp_path: Path) -> None:
    container = body(compiled(tmp_path, TOPOLOGY, BENCHMARK)[0], "Job")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == default_images()["vllmCpu"]
    assert {"name": "TARGET_URL", "value": "http://assistant:80"} in container["env"]
    container = body(compiled(tmp_path, TOPOLOGY, EVALUATE)[0], "Job")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == default_images()["evaluate"]


def test_the_job_reads_only_what_it_waits_for_and_writes_only_its_report(tmp_path: Path) -> None:
    rules = body(compiled(tmp_path, TOPOLOGY, BENCHMARK)[0], "Role")["rules"]
    assert rules == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["speed-facts"], "verbs": ["get", "patch"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["assistant"], "verbs": ["get"]},
    ]


def test_a_topology_whose_pods_change_is_judged_anew(tmp_path: Path) -> None:
    def name(topology: dict[str, Any], job: dict[str, Any] = BENCHMARK) -> str:
        return str(body(compiled(tmp_path, topology, job)[0], "Job")["metadata"]["name"])

    first = name(TOPOLOGY)
    assert name(TOPOLOGY) == first
    assert name({**TOPOLOGY, "service": {"annotations": {"example.com/a": "b"}}}) == first
    assert name({**TOPOLOGY, "shape": {"replicas": 3}}) == first
    assert name({**TOPOLOGY, "args": ["--slow"]}) != first
    assert name({**TOPOLOGY, "env": {"DELAY": "1"}}) != first
    assert name(TOPOLOGY, {**BENCHMARK, "require": {"ttft": {"p95": "1ms"}}}) != first


def test_limits_have_the_units_of_the_measurements(tmp_path: Path) -> None:
    require = {"ttft": {"p95": "500ms", "mean": "1.5s"}, "throughput": {"min": 10}, "requestThroughput": {"min": 2}}
    found = params(compiled(tmp_path, TOPOLOGY, {**BENCHMARK, "require": require})[0])
    assert found["require"] == {
        "ttft.p95": {"max": 500},
        "ttft.mean": {"max": 1500},
        "throughput": {"min": 10},
        "requestThroughput": {"min": 2},
        "errors": {"max": 0},
    }


def test_the_key_of_the_topology_is_that_of_its_secret(tmp_path: Path) -> None:
    vllm = {
        "model": {"folder": "/weights"},
        "auth": {"secret": {"name": "keys"}},
        "resources": {"gpus": 1, "gpuType": "L4"},
    }
    item = compiled(tmp_path, vllm, BENCHMARK)[0]
    container = body(item, "Job")["spec"]["template"]["spec"]["containers"][0]
    key = {"secretKeyRef": {"name": "keys", "key": "api-key"}}
    assert {"name": "TARGET_API_KEY", "valueFrom": key} in container["env"]
    assert params(item)["benchmark"]["ignoreEos"] is True


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"workload": "benchmark"}, "KG0465"),
        ({"workload": "benchmark", "target": "other"}, "KG0301"),
        ({"workload": "evaluate", "target": "assistant"}, "KG0465"),
        ({**BENCHMARK, "require": {"accuracy": {"min": 0.5}}}, "KG0466"),
        (
            {**BENCHMARK, "workload": "evaluate", "require": {"ttft": {"p95": "1s"}}, "evaluate": {"tasks": ["a"]}},
            "KG0466",
        ),
        ({**BENCHMARK, "shards": 2}, "KG0340"),
        ({**BENCHMARK, "schedule": "0 2 * * *"}, "KG0340"),
        ({**BENCHMARK, "evaluate": {"tasks": ["a"]}}, "KG0340"),
        ({"image": "registry.example/a:1", "target": "assistant"}, "KG0340"),
    ],
)
def test_contradictions_are_reported(tmp_path: Path, job: dict[str, Any], code: str) -> None:
    assert code in compiled(tmp_path, TOPOLOGY, job)[1]


CONTAINER = {"name": "serve", "image": "engine:1", "args": ["--fast"]}


def deployment(*, image: str = "engine:1", generation: int = 2, **status: int) -> dict[str, Any]:
    """Return a Deployment of two replicas as the API server has it, rolled out unless the status says otherwise."""
    pod = {"containers": [{**CONTAINER, "image": image, "terminationMessagePath": "/dev/termination-log"}]}
    ready = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
    return {
        "metadata": {"generation": generation},
        "spec": {"replicas": 2, "template": {"spec": pod}},
        "status": {**ready, **status},
    }


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (deployment(), ""),
        (None, "is not in the cluster"),
        (deployment(image="engine:0"), "has another image of container serve: engine:0"),
        (deployment(generation=3), "waits for its controller"),
        (deployment(updatedReplicas=1), "has 2 ready and 1 updated replicas of 2"),
        (deployment(readyReplicas=1), "has 1 ready and 2 updated replicas of 2"),
        (deployment(replicas=3), "has 2 ready and 2 updated replicas of 2"),
    ],
)
def test_a_rollout_is_over_when_only_pods_of_git_run(live: Any, why: str) -> None:
    assert gate.why_waiting(live, [CONTAINER]) == why


def test_a_rollout_is_over_when_its_variables_are_those_of_git() -> None:
    live = deployment()
    expected: list[dict[str, Any]] = [
        {**CONTAINER, "env": [{"name": "DELAY", "value": "1"}, {"name": "EMPTY", "value": ""}]}
    ]
    assert gate.why_waiting(live, expected) == "has another variable DELAY of container serve: None"
    (container,) = live["spec"]["template"]["spec"]["containers"]
    live["spec"]["template"]["spec"]["containers"] = [
        {**container, "env": [{"name": "ADDED", "value": "x"}, {"name": "DELAY", "value": "1"}, {"name": "EMPTY"}]}
    ]
    assert gate.why_waiting(live, expected) == ""
    expected[0]["env"][0]["value"] = "2"
    assert gate.why_waiting(live, expected) == "has another variable DELAY of container serve: 1"


class Rollouts:
    """An API that has a Deployment in one state after the other."""

    def __init__(self, *states: Any) -> None:
        self.states = [*states]

    def get(self, path: str) -> Any:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def test_a_rollout_must_stay_complete_until_no_earlier_pod_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(gate, "PAUSE", 4)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(gate, "_why_no_answer", lambda url: "")
    api: Any = Rollouts(deployment(), deployment(readyReplicas=1), deployment())
    target = {"target": {"name": "assistant", "wait": 60, "containers": [[CONTAINER]]}}
    gate.wait(api, target, "http://assistant", ["apis/apps/v1/deployments/assistant"])
    # At 0 s it is complete, at 4 s not, and from 8 s on for the whole time in which the Service may lag.
    assert now[0] == 20


def test_the_pod_waits_for_the_variables_of_the_topology(tmp_path: Path) -> None:
    vllm = {
        "model": {"folder": "/weights"},
        "auth": {"secret": {"name": "keys"}},
        "resources": {"gpus": 1, "gpuType": "L4"},
    }
    item = compiled(tmp_path, {**vllm, "env": {"DELAY": "1"}}, BENCHMARK)[0]
    ((waited,),) = params(item)["target"]["containers"]
    assert {"name": "DELAY", "value": "1"} in waited["env"]
    assert all(each.keys() == {"name", "value"} for each in waited["env"])


def test_authorities_of_clusters_need_no_extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    (tmp_path / "namespace").write_text("ml")
    monkeypatch.setattr(gate, "ACCOUNT", str(tmp_path))
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: strict)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert gate.Api().tls is strict
    assert not strict.verify_flags & ssl.VERIFY_X509_STRICT


def test_a_metric_that_is_not_the_only_one_must_be_named() -> None:
    found = {"alias": "a", "exact_match,strict": 0.25, "exact_match_stderr,strict": 0.1, "f1,none": 0.5}
    assert gate.accuracy("a", found, None) == 0.25
    assert gate.accuracy("a", found, "f1") == 0.5
    with pytest.raises(gate.Failed, match="has several"):
        gate.accuracy("a", {**found, "exact_match,loose": 0.5}, None)
    assert gate.accuracy("a", {**found, "exact_match,loose": 0.5}, "exact_match,loose") == 0.5
    with pytest.raises(gate.Failed, match=r"set evaluate\.metric to one of: f1,none"):
        gate.accuracy("a", {"f1,none": 0.5, "f1_stderr,none": 0.1}, None)


def test_a_benchmark_whose_requests_all_failed_measured_only_that() -> None:
    numbers = gate.benchmark_numbers({"completed": 0, "failed": 4}, 4)
    found = gate.checks({"ttft.p95": {"max": 500}, "errors": {"max": 0.01}}, numbers)
    assert gate.reason(found) == "ttft.p95 was not measured; errors is 1, more than 0.01"


def test_latencies_are_those_of_the_requests_that_have_tokens() -> None:
    found = {
        **{"completed": 3, "failed": 1, "output_throughput": 9.0, "request_throughput": 3.0},
        "ttfts": [0.1, 0.0, 0.3, 0.2],
        "itls": [[0.01, 0.03], [], [], [0.02]],
        "output_lens": [3, 0, 1, 2],
    }
    numbers = {name: round(value, 6) for name, value in gate.benchmark_numbers(found, 4).items()}
    assert (numbers["errors"], numbers["throughput"], numbers["requestThroughput"]) == (0.25, 9, 3)
    assert (numbers["ttft.mean"], numbers["ttft.p50"], numbers["ttft.p90"]) == (200, 200, 280)
    assert (numbers["tpot.mean"], numbers["itl.p50"], numbers["itl.p99"]) == (20, 20, 29.8)
    assert (numbers["e2el.p50"], numbers["e2el.mean"]) == (220, 220)
    one = gate.benchmark_numbers({**found, "itls": [[]] * 4, "output_lens": [1, 0, 1, 1]}, 4)
    assert (one["itl.p95"], one["tpot.mean"]) == (0, 0)


class ApiServer(BaseHTTPRequestHandler):
    """Part of an API server: a Deployment, and the ConfigMaps that are applied."""

    live: Any = None
    applied: ClassVar[list[Any]] = []
    status = 200

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer with the Deployment."""
        assert self.path == "/apis/apps/v1/namespaces/ml/deployments/assistant"
        self.answer(200 if type(self).live else 404, type(self).live or {})

    def do_PATCH(self) -> None:
        """Keep the object."""
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path.partition("?")[0] == "/api/v1/namespaces/ml/configmaps/speed-facts"
        assert self.headers["Authorization"] == "Bearer secret"
        type(self).applied.append(found)
        self.answer(type(self).status, found)

    def answer(self, status: int, data: Any) -> None:
        """Send an answer."""
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def servers() -> Iterator[tuple[int, int]]:
    """Ports of an API server and of an engine."""
    ApiServer.live, ApiServer.applied, ApiServer.status = deployment(), [], 200
    running = [ThreadingHTTPServer(("127.0.0.1", 0), each) for each in (ApiServer, openai_server.Handler)]
    threads = [threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.01}) for each in running]
    for thread in threads:
        thread.start()
    yield running[0].server_port, running[1].server_port
    for each in running:
        each.shutdown()
        each.server_close()


def judge(folder: Path, ports: tuple[int, int], **settings: Any) -> tuple[int, dict[str, Any]]:
    """Run the program in a process; return its exit code and message."""
    for name, text in (("token", "secret"), ("namespace", "ml")):
        (folder / name).write_text(text)
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    shutil.copy(vllm_bench.__file__, tools / "vllm")
    (tools / "vllm").chmod(0o755)
    defaults: dict[str, Any] = {
        "workload": "benchmark",
        "target": {"name": "assistant", "wait": 20, "containers": [[CONTAINER]], "digest": "0"},
        "require": {"ttft.p95": {"max": 60000}, "errors": {"max": 0}},
        "benchmark": {
            **{"api": "chat", "requests": 20, "concurrency": 4, "warmups": 0},
            **{"promptWords": 5, "outputTokens": 3, "ignoreEos": False},
        },
    }
    (folder / "params.json").write_text(json.dumps({**defaults, **settings}))
    environment = {
        **{"PATH": f"{tools}:{os.environ['PATH']}", "KAIGEN_ACCOUNT": str(folder), "KAIGEN_API_SCHEME": "http"},
        **{"KAIGEN_MESSAGE": str(folder / "message"), "KAIGEN_APP": "speed", "KAIGEN_FACTS": "speed-facts"},
        "KAIGEN_SETTLE": "0",
        **{"JOB_NAME": "speed-1234", "JOB_UID": "uid", "KUBERNETES_SERVICE_HOST": "127.0.0.1"},
        **{"KUBERNETES_SERVICE_PORT": str(ports[0]), "TARGET_URL": f"http://127.0.0.1:{ports[1]}"},
        "TARGET_WORKLOADS": "apis/apps/v1/deployments/assistant",
    }
    command = [sys.executable, PROGRAM, str(folder / "params.json"), "assistant"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (folder / "message").exists(), done.stderr
    return done.returncode, json.loads((folder / "message").read_text())


def test_a_run_that_meets_its_requirements_passes(tmp_path: Path, servers: tuple[int, int]) -> None:
    code, message = judge(tmp_path, servers)
    assert (code, message["gate"], message["errors"]) == (0, "passed", "0")
    (stored,) = ApiServer.applied
    report = json.loads(stored["data"]["report.json"])
    assert (report["run"], report["passed"], report["target"]) == ("speed-1234", True, "assistant")
    assert report["measured"]["throughput"] > 0
    assert stored["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert "| ttft.p95 | max 60000 ms |" in stored["data"]["report.md"]


def test_a_run_that_misses_a_requirement_fails_and_says_by_how_much(tmp_path: Path, servers: tuple[int, int]) -> None:
    code, message = judge(tmp_path, servers, require={"ttft.p95": {"max": 0.001}}, output=str(tmp_path))
    assert (code, message["gate"]) == (gate.NOT_MET, "failed")
    assert message["error"].startswith("ttft.p95 is ")
    assert message["error"].endswith(" ms, more than 0.001 ms")
    assert json.loads((tmp_path / "report.json").read_text())["passed"] is False


def test_a_topology_that_is_another_one_is_not_judged(tmp_path: Path, servers: tuple[int, int]) -> None:
    ApiServer.live = deployment(image="engine:0")
    target = {"name": "assistant", "wait": 0, "containers": [[CONTAINER]], "digest": "0"}
    code, message = judge(tmp_path, servers, target=target)
    assert code == gate.NOT_READY
    assert message["error"] == (
        "assistant was not ready in 0 s: assistant has another image of container serve: engine:0"
    )
    assert json.loads(ApiServer.applied[0]["data"]["report.json"])["passed"] is False


def test_a_report_that_cannot_be_stored_does_not_pass(tmp_path: Path, servers: tuple[int, int]) -> None:
    ApiServer.status = 403
    code, message = judge(tmp_path, servers)
    assert code == gate.FAILED
    assert message["error"].startswith("the report cannot be stored in ConfigMap speed-facts: HTTP Error 403")


def test_a_tool_that_fails_is_tried_again(tmp_path: Path, servers: tuple[int, int]) -> None:
    broken = {"api": "chat", "requests": 20, "concurrency": 0, "warmups": 0}
    settings = {**broken, "promptWords": 5, "outputTokens": 3, "ignoreEos": False}
    code, message = judge(tmp_path, servers, benchmark=settings)
    assert code == gate.FAILED
    assert "max_workers must be greater than 0" in message["error"]
