"""Monitoring of a download: Prometheus finds the downloader's port, and the NetworkPolicy lets it in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kaigen.compile.app import App
from kaigen.compile.builders.sources import identity
from kaigen.kinds.block import read_block
from kaigen.kinds.model import Model
from tests.unit.compile.specs import SOURCE, Object, app, model, objects, problem_paths

BUCKET = {"bucket": {"uri": "s3://models/m"}}
CONVERTED = {"distributedLlama": {"weights": "f32"}}
MODELS: dict[str, Object] = {
    "volume": {},
    "bucket": {"store": BUCKET},
    "converted": {"convert": CONVERTED},
    "with a sidecar": {"sidecars": {"log": {"image": "log:1", "ports": {"http": 8080}}}},
}


def metrics_port(arguments: list[str]) -> int | None:
    """The port that the downloader serves metrics on, as its own parser reads its arguments."""
    code = "import sys; from kaigen_downloader.arguments import parser; "
    code += "print(parser().parse_args(sys.argv[1:]).metrics_port or 0)"
    package = Path(__file__).parents[3] / "runtimes/downloader"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env={"PYTHONPATH": str(package)}, capture_output=True, text=True, check=True)
    return int(done.stdout) or None


def download(found: App) -> Object:
    """The pod's template of the download."""
    (job,) = [each.body for each in found.render() if each.body["kind"] == "Job"]
    template: Object = job["spec"]["template"]
    return template


@pytest.mark.parametrize("fields", MODELS)
def test_prometheus_reads_the_port_of_the_downloader(fields: str) -> None:
    found = app(model(**MODELS[fields], monitoring={"interval": "15s", "labels": {"release": "main"}}))
    bodies = {each.body["kind"]: each.body for each in found.render()}
    monitor, template = bodies["PodMonitor"], download(found)
    assert monitor["metadata"]["labels"]["release"] == "main"
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint == {"port": "metrics", "path": "/metrics", "interval": "15s"}
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()

    pod = template["spec"]
    (container,) = [
        each
        for each in [*pod.get("initContainers", []), *pod["containers"]]
        if any(port["name"] == endpoint["port"] for port in each.get("ports", []))
    ]
    assert container["name"] == "fetch"
    (port,) = [port["containerPort"] for port in container["ports"]]
    assert metrics_port(container["args"]) == port
    (rule,) = bodies["NetworkPolicy"]["spec"]["ingress"]
    assert [each["port"] for each in rule["ports"]] == [port]


def test_the_monitor_exists_before_or_with_the_job() -> None:
    waves = {each.body["kind"]: each.wave for each in app(model(monitoring={})).objects}
    assert waves["PodMonitor"] <= waves["Job"]


def test_without_the_block_nothing_listens() -> None:
    found = objects(model())
    assert "PodMonitor" not in found
    assert "ingress" not in found["NetworkPolicy"]["spec"]
    (container,) = found["Job"]["spec"]["template"]["spec"]["containers"]
    assert "ports" not in container
    assert metrics_port(container["args"]) is None


def test_monitoring_is_no_part_of_what_is_stored() -> None:
    one, two = model(source=SOURCE), model(source=SOURCE, monitoring={})
    assert identity(one.spec.source) == identity(two.spec.source)


def test_nothing_is_downloaded_from_a_volume() -> None:
    spec = {"source": {"volume": {"claimName": "models"}}, "monitoring": {}}
    found = problem_paths(read_block(Model, {"metadata": {"name": "m"}, "spec": spec}))
    assert found == [("KG0340", "spec.monitoring")]
