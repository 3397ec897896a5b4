"""The dashboard of a Topology for Grafana, in a ConfigMap."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Expr, Joined, Namespace, Release, Shortened, Tree

if TYPE_CHECKING:
    from kaigen.kinds.monitoring import Dashboard

_SCHEMA = 36
"""Version of the dashboard's format, which newer versions of Grafana migrate.

Source: grafana/grafana at 00139e84396be1600192135b87b8607f3f7b79d0, kinds/dashboard/dashboard_kind.cue.
"""

_UID_MAX = 40
"""Most characters of a dashboard's identifier; the least are 8 (same source)."""

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_PLACE = re.compile("(<namespace>|<release>|<uid>)")
_JOB = '{job="<namespace>/<release>"}'

# Title, unit, the metrics that it needs, and expression and legend of each line.
_PANELS: tuple[tuple[str, str, tuple[str, ...], tuple[tuple[str, str], ...]], ...] = (
    (
        "Requests",
        "short",
        ("waiting", "running"),
        (("sum(%(running)s%(job)s)", "running"), ("sum(%(waiting)s%(job)s)", "waiting")),
    ),
    (
        "Time to the first token",
        "s",
        ("ttft",),
        tuple(
            (f"histogram_quantile({share}, sum by (le) (rate(%(ttft)s_bucket%(job)s[$__rate_interval])))", name)
            for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
        ),
    ),
    ("KV cache", "percentunit", ("cache",), (("%(cache)s%(job)s", "{{pod}}"),)),
    (
        "Answers",
        "reqps",
        ("requests", "failed"),
        (
            ("sum(rate(%(requests)s%(job)s[$__rate_interval]))", "all"),
            ('sum(rate(%(requests)s{job="<namespace>/<release>",%(failed)s}[$__rate_interval]))', "failed"),
        ),
    ),
    (
        "Preemptions",
        "ops",
        ("preemptions",),
        (("sum by (pod) (rate(%(preemptions)s%(job)s[$__rate_interval]))", "{{pod}}"),),
    ),
    ("Metrics are collected", "short", (), (("sum(up%(job)s)", "pods"),)),
)


def dashboard_uid() -> Expr:
    """Return the identifier of the dashboard, in Grafana and in its URL."""
    return Shortened(Joined(("kaigen-", Namespace(), "-", Release())), _UID_MAX)


def dashboard(frame: Frame, block: Dashboard, namespace: str, metrics: Mapping[str, str], runbook: str) -> Object:
    """Return the ConfigMap with the dashboard of a Topology.

    Args:
        frame: the app.
        block: the block of the spec.
        namespace: the app's namespace, in the name of the file.
        metrics: names of the engine's metrics, by what they measure.
        runbook: URL of the page about alerts.
    """
    values: dict[str, Expr] = {"<namespace>": Namespace(), "<release>": Release(), "<uid>": dashboard_uid()}
    text = json.dumps(_content(metrics, runbook), indent=2)
    parts = tuple(values.get(part, part) for part in _PLACE.split(text) if part)
    body: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": frame.metadata("-dashboard", "monitoring", labels=block.labels, annotations=block.annotations),
        # The sidecar writes the files of all ConfigMaps to one folder, so the name must differ from those of others.
        "data": {f"{namespace}-{frame.name}.json": Joined(parts)},
    }
    return Object(role="configmap-dashboard", body=body)


def _content(metrics: Mapping[str, str], runbook: str) -> Mapping[str, Any]:
    names = {**metrics, "job": _JOB}
    panels = [
        _panel(number, title, unit, [(expression % names, legend) for expression, legend in lines])
        for number, (title, unit, _, lines) in enumerate(each for each in _PANELS if set(each[2]) <= set(metrics))
    ]
    return {
        "uid": "<uid>",
        "title": "<namespace> / <release>",
        "tags": ["kaigen"],
        "schemaVersion": _SCHEMA,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "links": [
            {"title": "Alerts", "type": "link", "url": "/alerting/list?search=namespace:<namespace> <release>"},
            {"title": "Runbooks", "type": "link", "url": runbook, "targetBlank": True},
        ],
        "templating": {
            "list": [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


def _panel(number: int, title: str, unit: str, lines: list[tuple[str, str]]) -> Mapping[str, Any]:
    return {
        "id": number + 1,
        "title": title,
        "type": "timeseries",
        "datasource": _DATASOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _DATASOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(lines)
        ],
    }
