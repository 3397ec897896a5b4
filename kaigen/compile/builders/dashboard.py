"""The dashboard of a Topology or an Endpoint for Grafana, in a ConfigMap."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kaigen.compile.app import Object
from kaigen.compile.builders.envoy_telemetry import COUNTED, LASTED
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
_FAILED = '{job="<namespace>/<release>",%(failed)s}'


class Panel(NamedTuple):
    """A graph.

    Attributes:
        title: its title.
        unit: unit of Grafana.
        lines: expression and legend of each line.
        needs: metrics of the engine that it reads.
    """

    title: str
    unit: str
    lines: Sequence[tuple[str, str]]
    needs: tuple[str, ...] = ()


def _rate(metric: str, labels: str) -> str:
    return f"rate({metric}{labels}[$__rate_interval])"


def _quantiles(metric: str, labels: str) -> tuple[tuple[str, str], ...]:
    """Return the lines of a histogram."""
    inner = f"sum by (le) ({_rate(f'{metric}_bucket', labels)})"
    return tuple((f"histogram_quantile({share / 100:g}, {inner})", f"p{share}") for share in (50, 95, 99))


_COLLECTED = Panel("Metrics are collected", "short", ((f"sum(up{_JOB})", "pods"),))

_ENGINE = (
    Panel(
        "Requests",
        "short",
        ((f"sum(%(running)s{_JOB})", "running"), (f"sum(%(waiting)s{_JOB})", "waiting")),
        ("waiting", "running"),
    ),
    Panel("Time to the first token", "s", _quantiles("%(ttft)s", _JOB), ("ttft",)),
    Panel("KV cache", "percentunit", ((f"%(cache)s{_JOB}", "{{pod}}"),), ("cache",)),
    Panel(
        "Answers",
        "reqps",
        (
            (f"sum({_rate('%(requests)s', _JOB)})", "all"),
            (f"sum({_rate('%(requests)s', _FAILED)})", "failed"),
        ),
        ("requests", "failed"),
    ),
    Panel("Preemptions", "ops", ((f"sum by (pod) ({_rate('%(preemptions)s', _JOB)})", "{{pod}}"),), ("preemptions",)),
    _COLLECTED,
)

_OF_ROUTER = '{job="<namespace>/<release>-router",envoy_http_conn_manager_prefix="requests"}'

ROUTER_PANELS = (
    Panel(
        "Router: answers",
        "reqps",
        (
            (
                f"sum by (envoy_response_code_class) ({_rate('envoy_http_downstream_rq_xx', _OF_ROUTER)})",
                "{{envoy_response_code_class}}xx",
            ),
        ),
    ),
    Panel("Router: requests in flight", "short", ((f"sum(envoy_http_downstream_rq_active{_OF_ROUTER})", "requests"),)),
    Panel("Router: time of answers", "ms", _quantiles("envoy_http_downstream_rq_time", _OF_ROUTER)),
)

_OF_TOPOLOGIES = '{job="<namespace>/<release>",envoy_cluster_name=~"(topology|canary)-.+"}'
_LIMITED = '{job="<namespace>/<release>",status="429"}'

ENDPOINT_PANELS = (
    Panel("Requests by client", "reqps", ((f"sum by (client) ({_rate(COUNTED, _JOB)})", "{{client}}"),)),
    Panel("Requests by model", "reqps", ((f"sum by (model) ({_rate(COUNTED, _JOB)})", "{{model}}"),)),
    Panel("Answers by status", "reqps", ((f"sum by (status) ({_rate(COUNTED, _JOB)})", "{{status}}"),)),
    Panel("Over the limit (429)", "reqps", ((f"sum by (client) ({_rate(COUNTED, _LIMITED)})", "{{client}}"),)),
    Panel("Time of answers", "ms", _quantiles(LASTED, _JOB)),
    Panel(
        "Requests in flight",
        "short",
        (
            (
                f"sum by (envoy_cluster_name) (envoy_cluster_upstream_rq_active{_OF_TOPOLOGIES})",
                "{{envoy_cluster_name}}",
            ),
            (f"sum(envoy_cluster_upstream_rq_pending_active{_OF_TOPOLOGIES})", "waiting"),
        ),
    ),
    _COLLECTED,
)


def engine_panels(metrics: Mapping[str, str]) -> list[Panel]:
    """Return the panels whose metrics an engine has.

    Args:
        metrics: names of the engine's metrics, by what they measure.
    """
    return [
        panel._replace(lines=[(expression % metrics, legend) for expression, legend in panel.lines])
        for panel in _ENGINE
        if set(panel.needs) <= set(metrics)
    ]


def dashboard_uid() -> Expr:
    """Return the identifier of the dashboard, in Grafana and in its URL."""
    return Shortened(Joined(("kaigen-", Namespace(), "-", Release())), _UID_MAX)


def dashboard(frame: Frame, block: Dashboard, namespace: str, panels: Sequence[Panel], runbook: str) -> Object:
    """Return the ConfigMap with the dashboard of an app.

    Args:
        frame: the app.
        block: the block of the spec.
        namespace: the app's namespace, in the name of the file.
        panels: its graphs.
        runbook: URL of the page about alerts.
    """
    values: dict[str, Expr] = {"<namespace>": Namespace(), "<release>": Release(), "<uid>": dashboard_uid()}
    text = json.dumps(_content(panels, runbook), indent=2)
    parts = tuple(values.get(part, part) for part in _PLACE.split(text) if part)
    body: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": frame.metadata("-dashboard", "monitoring", labels=block.labels, annotations=block.annotations),
        # The sidecar writes the files of all ConfigMaps to one folder, so the name must differ from those of others.
        "data": {f"{namespace}-{frame.name}.json": Joined(parts)},
    }
    return Object(role="configmap-dashboard", body=body)


def _content(panels: Sequence[Panel], runbook: str) -> Mapping[str, Any]:
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
        "panels": [_graph(number, panel) for number, panel in enumerate(panels)],
    }


def _graph(number: int, panel: Panel) -> Mapping[str, Any]:
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "timeseries",
        "datasource": _DATASOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _DATASOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.lines)
        ],
    }
