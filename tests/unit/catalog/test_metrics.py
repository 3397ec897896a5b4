"""The metrics that alerts and dashboards read, compared with the programs that have them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog import yaml_files
from kaigen.catalog.vllm_flags import has_metric, known_versions, version_text
from kaigen.compile.builders.alerts import alert_table
from kaigen.compile.builders.dashboard import ENDPOINT_PANELS, ROUTER_PANELS, Panel
from kaigen.compile.topology.router_config import PICKER_METRICS
from tests import helm
from tests.unit.compile.specs import app, topology

ROOT = Path(__file__).parents[3]
RUNTIMES = ROOT / "runtimes"
ENGINES = yaml_files.load("engines")["engines"]
NAME = re.compile(r"\b(?:vllm:|kube_|kaigen_|envoy_|http_)[a-z0-9_]+")
CHART = ROOT / "charts" / "kaigen-reaper"


def texts(runtime: str) -> set[str]:
    """Return every text in the programs of a runtime, without their tests."""
    found = set()
    for path in (RUNTIMES / runtime).rglob("*"):
        if "tests" in path.parts or not path.is_file() or path.suffix not in (".py", ".go", ".rs", ".c"):
            continue
        if path.suffix == ".py":
            nodes = ast.walk(ast.parse(path.read_text()))
            found |= {each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        else:
            found |= set(re.findall(r'"([^"]*)"', path.read_text()))
    return found


def expressions(bodies: list[Any]) -> Iterator[str]:
    """Return the expressions of the rules and dashboards among objects."""
    for body in bodies:
        if body["kind"] == "PrometheusRule":
            yield from (rule["expr"] for group in body["spec"]["groups"] for rule in group["rules"])
        for name, text in (body.get("data") or {}).items() if body["kind"] == "ConfigMap" else ():
            if name.endswith(".json"):
                yield from (line["expr"] for panel in json.loads(text)["panels"] for line in panel["targets"])


def of_panels(panels: tuple[Panel, ...]) -> set[str]:
    return {name for panel in panels for line, _ in panel.lines for name in NAME.findall(line)}


@pytest.mark.parametrize("version", known_versions(), ids=version_text)
def test_every_version_of_vllm_has_the_metrics_of_its_alerts_and_dashboard(version: tuple[int, int]) -> None:
    monitoring = {"alerts": {}, "slo": {"availability": "99.9%", "ttft": {"p95": "2s"}}, "dashboard": {}}
    spec = topology(
        model={"folder": "/weights"},
        engineVersion=f"{version_text(version)}.0",
        resources={"gpus": 1},
        monitoring=monitoring,
    )
    read = {name for each in expressions([one.body for one in app(spec).render()]) for name in NAME.findall(each)}
    of_vllm = {re.sub("_(bucket|sum|count)$", "", name) for name in read if name.startswith("vllm:")}
    assert len(of_vllm) >= 4
    assert [name for name in of_vllm if not has_metric(name, version)] == []


def test_the_newest_vllm_has_every_metric_of_the_catalogue() -> None:
    own = {name for name in ENGINES["vllm"]["metrics"].values() if name.startswith("vllm:")}
    assert [name for name in own | set(PICKER_METRICS) if not has_metric(name, known_versions()[-1])] == []


@pytest.mark.parametrize(("engine", "runtime"), [("transformers", "chat"), ("distributedLlama", "ringproxy")])
def test_own_servers_have_the_metrics_of_the_catalogue(engine: str, runtime: str) -> None:
    known = " ".join(texts(runtime))
    metrics = {key: name for key, name in ENGINES[engine]["metrics"].items() if key not in ("path", "failed")}
    assert len(metrics) >= 2
    for name in metrics.values():
        # Programs put the beginning in front of each name, and prometheus_client the end of a counter.
        word = name.removeprefix("kaigen_ring_").removesuffix("_total" if runtime == "chat" else "")
        assert re.search(rf"(^|\W){re.escape(word)}(\W|$)", known), name


def test_the_downloader_has_the_metrics_of_its_alert() -> None:
    families = {f"kaigen_downloader_{name}" for name in texts("downloader")}
    read = set(NAME.findall(alert_table()["downloadStuck"]["by"]["downloader"]))
    assert len(read) == 3
    assert read <= families


def test_the_reaper_has_the_metrics_of_its_alerts() -> None:
    values = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}
    read = {name for each in expressions(helm.template(CHART, "r", "ns", values)) for name in NAME.findall(each)}
    assert read == {"kaigen_reaper_errors_total", "kaigen_reaper_leader"}
    assert read <= {f"kaigen_reaper_{name}" for name in texts("reaper")}


def test_panels_of_envoy_read_metrics_of_envoy() -> None:
    """`tests/cluster/test_alerts_fire.py` asks Prometheus for each of them."""
    for panels in (ROUTER_PANELS, ENDPOINT_PANELS):
        assert all(name.startswith("envoy_") for name in of_panels(panels))
