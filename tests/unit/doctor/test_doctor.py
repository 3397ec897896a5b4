"""The checks that need no cluster; `tests/cluster/test_two_syncers.py` runs all of them on a real one."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.doctor.apps import check_repository, check_requirements, check_servers, expiring, servers_of
from kaigen.doctor.cluster import Right, gpu_model, gpus_of, has_gpu_label, is_device_plugin
from kaigen.pipeline.run import compile_specs
from kaigen.requirements.model import Finding, Requirement, Use

SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: own-hub}
spec:
  source: {huggingFace: {repo: owner/name, revision: main, endpoint: https://hub.example.com}}
  store:
    bucket: {uri: s3://models/own, endpoint: https://s3.example.com, credentials: {secret: {name: keys}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: files}
spec:
  image: docker.io/acme/run:1
  inputs: [{url: https://data.example.com/a/train.parquet}]
---
apiVersion: kaigen.dev/v1alpha1
kind: Dataset
metadata: {name: rows}
spec:
  source: {s3: {uri: s3://rows/a, endpoint: https://minio.example.com, credentials: {secret: {name: keys}}}}
  store: {volume: {size: 5Gi}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: car}
spec:
  source: {oci: {ref: "registry.example.com/models/car:1"}}
  store: {volume: {size: 5Gi}}
"""


def test_gpus_of_a_node_are_what_its_device_plugin_offers() -> None:
    node: dict[str, Any] = {
        "metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.present": "true"}},
        "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "2", "amd.com/gpu": "0"}},
    }
    node["status"]["allocatable"] |= {"gpu.intel.com/xe": "1", "nvidia.com/hostdev": "8"}
    assert gpus_of(node) == {"nvidia.com/gpu": 2, "gpu.intel.com/xe": 1}
    assert gpu_model(node) == "NVIDIA-L4"
    assert has_gpu_label(node)
    assert not has_gpu_label({"metadata": {}})


def test_device_plugin_is_found_by_its_image() -> None:
    def daemon_set(image: str) -> dict[str, Any]:
        spec = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": spec}

    assert is_device_plugin(daemon_set("nvcr.io/nvidia/k8s-device-plugin:v0.19.0"))
    assert not is_device_plugin(daemon_set("docker.io/acme/logs:1"))


def test_servers_are_those_of_the_specs(tmp_path: Path) -> None:
    (tmp_path / "specs.yaml").write_text(SPECS)
    config = load_config(tmp_path)
    apps = compile_specs([str(tmp_path / "specs.yaml")], config).apps
    assert servers_of(apps, config) == {
        "https://hub.example.com": "Hub",
        "https://s3.example.com": "bucket models",
        "https://data.example.com": "files",
        "https://minio.example.com": "bucket rows",
        "https://registry.example.com": "artifact registry.example.com/models/car:1",
    }
    assert expiring(apps) == []


def test_server_is_reachable_if_it_gives_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        (answered,) = check_servers({url: "Hub"})  # 501: the handler has no method HEAD
        server.shutdown()
    assert (answered.status, answered.fix) == ("ok", "")
    (refused,) = check_servers({url: "bucket models"})
    assert refused.status == "warning"
    assert refused.name == "reachability of bucket models"
    assert "network" in refused.fix


@pytest.mark.parametrize(
    ("path", "secret", "status"), [("/open", "", "ok"), ("/closed", "", "warning"), ("/closed", "git", "")]
)
def test_flux_needs_a_secret_for_a_repository_that_asks_for_a_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, secret: str, status: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path.startswith("/open") else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}{path}"
        flux = f"{{secret: {secret}}}" if secret else "{}"
        (tmp_path / "kaigen.yaml").write_text(f"gitops: {{repository: '{url}', flux: {flux}}}\n")
        found = [*check_repository(load_config(tmp_path))]
        server.shutdown()
    assert [check.status for check in found] == ([status] if status else [])
    assert asked == ([f"{path}/info/refs?service=git-upload-pack"] if status else [])
    assert all("gitops.flux.secret" in check.fix for check in found if check.status == "warning")


def test_missing_requirement_has_a_fix_and_the_line_that_needs_it() -> None:
    uses = (Use("ml/train", "specs/train.yaml:8"),)
    findings = {
        Requirement("API", "jobset.x-k8s.io/v1alpha2 JobSet", supplier="JobSet", uses=uses): Finding("missing"),
        Requirement("Namespace", "ml", uses=uses): Finding("missing"),
        Requirement("PriorityClass", "high", uses=uses): Finding("unknown", "not allowed to read it"),
        Requirement("Secret", "token", "ml", uses=uses): Finding("found"),
    }
    (summary, api, namespace, priority) = check_requirements(findings)
    assert summary.detail.startswith("1 found")
    assert (api.status, api.fix) == ("failed", "install JobSet")
    assert api.detail == "not in the cluster; needed at specs/train.yaml:8"
    assert namespace.fix == "kubectl create namespace ml"
    assert priority.status == "warning"


def test_right_is_shown_as_kubectl_takes_it() -> None:
    assert Right("create", "jobs", "batch").title == "create jobs.batch"
    assert Right("get", "pods/log").title == "get pods --subresource=log"
