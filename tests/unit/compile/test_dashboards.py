"""The dashboards of a Topology and an Endpoint, as Grafana's own models read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import Dataquery
from grafana_foundation_sdk.models.timeseries import FieldConfig

from tests.cluster.apps import compiled, find, spec

ENGINE = {"model": {"folder": "/weights"}, "engineVersion": "0.32.0", "resources": {"gpus": 1}}
MONITORING: Mapping[str, Any] = {"dashboard": {"url": "https://grafana.example.com"}, "alerts": {}}
CLIENTS = {"team-a": {"models": ["*"]}}


@pytest.fixture(scope="module")
def dashboards(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The dashboards by the name of their app."""
    specs = [
        spec("Topology", "chat", **ENGINE, monitoring=MONITORING, shape={"replicas": 2}, router={}),
        spec("Topology", "plain", **ENGINE, monitoring=MONITORING),
        spec("Endpoint", "models", models=["chat"], clients=CLIENTS, monitoring=MONITORING),
    ]
    apps = compiled(tmp_path_factory.mktemp("dashboards"), specs, "ml", "generic")
    maps = {
        name: [each.body for each in app.objects if each.body["metadata"]["name"] == f"{name}-dashboard"]
        for name, app in apps.items()
    }
    return {name: json.loads(body["data"][f"ml-{name}.json"]) for name, (body,) in maps.items()}


@pytest.mark.parametrize("name", ["chat", "plain", "models"])
def test_grafana_reads_every_field_of_a_dashboard(dashboards: Mapping[str, Any], name: str) -> None:
    """What its models do not know is lost when they write the dashboard again."""
    register_default_plugins()
    written = dashboards[name]
    read = models.Dashboard.from_json(written)
    again = json.loads(json.dumps(read, cls=JSONEncoder))
    assert lost(written, again) == []
    assert read.panels is not None
    for panel in read.panels:
        assert isinstance(panel, models.Panel)
        assert isinstance(panel.field_config and panel.field_config.defaults.custom, FieldConfig | None)
        assert panel.targets
        assert all(isinstance(target, Dataquery) for target in panel.targets)


def lost(given: Any, again: Any, path: str = "") -> list[str]:
    """Return the paths of values that are missing or different."""
    if isinstance(given, dict) and isinstance(again, dict):
        return [each for key, value in given.items() for each in lost(value, again.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(again, list) and len(given) == len(again):
        return [each for at, value in enumerate(given) for each in lost(value, again[at], f"{path}[{at}]")]
    return [] if given == again or (given == "" and again is None) else [path]


def test_panels_have_places_of_their_own(dashboards: Mapping[str, Any]) -> None:
    for shown in dashboards.values():
        cells = [
            (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
            for panel in shown["panels"]
            for x in range(panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["h"])
        ]
        assert len(set(cells)) == len(cells)
        assert max(x for x, _ in cells) < 24


def test_a_router_and_an_endpoint_have_panels_of_requests(dashboards: Mapping[str, Any]) -> None:
    titles = {name: [panel["title"] for panel in shown["panels"]] for name, shown in dashboards.items()}
    assert "Router: answers" in titles["chat"]
    assert not [title for title in titles["plain"] if title.startswith("Router")]
    assert {"Requests by client", "Requests by model", "Over the limit (429)"} <= set(titles["models"])


def test_the_alerts_of_an_endpoint_link_to_its_dashboard(dashboards: Mapping[str, Any], tmp_path: Path) -> None:
    endpoint = spec("Endpoint", "models", models=["plain"], clients=CLIENTS, monitoring=MONITORING)
    apps = compiled(tmp_path, [spec("Topology", "plain", **ENGINE), endpoint], "ml", "generic")
    rule = find(apps["models"], "PrometheusRule")["spec"]["groups"][0]["rules"][0]
    assert rule["annotations"]["dashboard_url"] == f"https://grafana.example.com/d/{dashboards['models']['uid']}"
