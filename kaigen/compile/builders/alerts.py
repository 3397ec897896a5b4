"""Alert rules of an app, from the table in `kaigen/catalog/alerts.yaml`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from kaigen.catalog import yaml_files
from kaigen.compile.app import Object
from kaigen.compile.builders.dashboard import dashboard_uid
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.workloads import POD_SUFFIX
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Namespace, Release, Tree
from kaigen.config.tenant_settings import tenant_of_namespace
from kaigen.diagnostics.codes import page_url
from kaigen.kinds.block import set_fields

if TYPE_CHECKING:
    from kaigen.kinds.base import Metadata
    from kaigen.kinds.monitoring import Alert, Alerts, Dashboard, RunMonitoring, Slo

RUNBOOK = "operate/monitor"
"""Page of the documentation that explains each alert."""

_PLACE = re.compile(r"<([a-z]+)>")
_DAY = 24
_FAST, _MEDIUM, _SLOW = (0.02, 1), (0.05, 6), (0.1, 3 * _DAY)
"""Shares of an error budget, and the hours in which their loss is an alert.

Source: The Site Reliability Workbook, "Alerting on SLOs", table 5-8.
"""

_OF_JOB_SET = "node-0-[0-9]+-[b-df-hj-np-tv-z2456789]{5}"
_SUFFIX: Mapping[str, str] = {
    **POD_SUFFIX,
    # Its workers wait, too; they are called NAME-GROUP-INDEX.
    "LeaderWorkerSet": "[0-9]+(-[0-9]+)?",
    # An Indexed Job has the index in front (source: k8s.io/kubernetes, pkg/controller/job).
    "Job": "([0-9]+-)?[b-df-hj-np-tv-z2456789]{5}",
    "JobSet": _OF_JOB_SET,
    "TrainJob": _OF_JOB_SET,
    # The scheduled time of the run, in minutes (source: k8s.io/kubernetes, pkg/controller/cronjob).
    "CronJob": "[0-9]+-([0-9]+-)?[b-df-hj-np-tv-z2456789]{5}",
}


@cache
def alert_table() -> Mapping[str, Mapping[str, Any]]:
    """Return the alerts by name, as alerts.yaml describes them."""
    table: Mapping[str, Mapping[str, Any]] = yaml_files.load("alerts")["alerts"]
    return table


def fill_in(text: str, values: Mapping[str, str | Expr]) -> str | Expr:
    """Return a text with the values of its `<WORD>`s."""
    parts: list[str | Expr] = []
    for index, part in enumerate(_PLACE.split(text)):
        value = values[part] if index % 2 else part
        last = parts[-1] if parts else None
        if isinstance(value, str) and isinstance(last, str):
            parts[-1] = last + value
        elif value:
            parts.append(value)
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def left_out(alerts: Alerts, slo: Slo | None, metrics: Collection[str]) -> list[str]:
    """Return the alerts on an engine that are left out since it lacks their metrics.

    Args:
        alerts: the block of the spec.
        slo: that of the objectives.
        metrics: the metrics that it has, by what they measure.
    """
    return [
        name
        for name, row in _wanted(alerts, slo)
        if "engine" in row["by"] and not set(row.get("needs", ())) <= set(metrics)
    ]


def _change(alerts: Alerts, name: str) -> Alert | None:
    return next((change for known, change in alerts.rules.items() if known == name), None)


def _wanted(alerts: Alerts, slo: Slo | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, row in alert_table().items():
        change = _change(alerts, name)
        objective = row.get("slo")
        if (change is None or change.enabled) and (objective is None or getattr(slo, objective, None) is not None):
            yield name, row


def prometheus_rule(
    frame: Frame,
    context: Context,
    namespace: str,
    alerts: Alerts,
    labels: Mapping[str, str],
    objects: Sequence[Object],
    *,
    wave: int = 3,
    metrics: Mapping[str, str] | None = None,
    slo: Slo | None = None,
    dashboard: Dashboard | None = None,
    startup: int = 0,
    downloads: bool = False,
) -> list[Object]:
    """Return the PrometheusRule of an app; nothing if no alert fits it.

    Args:
        frame: the app.
        context: what it is compiled for.
        namespace: its namespace.
        alerts: the block of the spec.
        labels: labels by which Prometheus selects the rule.
        objects: objects of the app, of which workloads have alerts.
        wave: sync wave.
        metrics: names of the engine's metrics, by what they measure; None without an engine.
        slo: the objectives.
        dashboard: the dashboard that alerts link to.
        startup: longest time until a pod is ready, in seconds.
        downloads: whether a downloader has metrics.
    """
    common: dict[str, str | Expr] = {
        "app": frame.name,
        "namespace": Namespace(),
        "job": Joined((Namespace(), "/", Release())),
        **(metrics or {}),
        **_objectives(slo),
    }
    subjects: list[tuple[str, Mapping[str, str | Expr]]] = [
        (each.kind, {"name": name, "pods": Joined((name, f"-{_SUFFIX[each.kind]}"))})
        for each in objects
        if each.kind in _SUFFIX and isinstance(name := each.name, str | Expr)
    ]
    subjects += [("engine", {})] if metrics is not None else []
    subjects += [("downloader", {})] if downloads else []
    subjects += [("secret", {"name": name, "expires": _stamp(day)}) for name, day in alerts.expires.items()]
    tenant = tenant_of_namespace(namespace, context.config.tenants)
    routing = {**({"team": tenant.name} if tenant is not None else {}), **alerts.labels}
    rules: list[Tree] = []
    for name, row in _wanted(alerts, slo):
        if metrics is not None and not set(row.get("needs", ())) <= set(metrics):
            continue
        rule = _Rule(name, row, alerts, routing, dashboard, startup)
        rules += [rule.tree(kind, {**common, **values}) for kind, values in subjects if kind in row["by"]]
    if not rules:
        return []
    body: dict[str, Tree] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": frame.metadata("", "monitoring", wave=wave, labels=labels),
        "spec": {"groups": [{"name": Release(), "rules": rules}]},
    }
    return [Object(role="prometheusrule", wave=wave, body=body)]


class _Compiled(Protocol):
    @property
    def metadata(self) -> Metadata: ...
    @property
    def frame(self) -> Frame: ...
    @property
    def context(self) -> Context: ...


def run_alerts(resolution: _Compiled, block: RunMonitoring | None, objects: Sequence[Object]) -> list[Object]:
    """Return the PrometheusRule of an app without metrics of its own; nothing without the block.

    Args:
        resolution: what was decided.
        block: the block of the spec.
        objects: the app's workloads.
    """
    if block is None:
        return []
    context = resolution.context
    namespace = resolution.metadata.namespace or context.config.namespace
    return prometheus_rule(resolution.frame, context, namespace, block.alerts, block.labels, objects)


class _Rule:
    """One row of the table with what a spec changes."""

    def __init__(
        self,
        name: str,
        row: Mapping[str, Any],
        alerts: Alerts,
        routing: Mapping[str, str],
        dashboard: Dashboard | None,
        startup: int,
    ) -> None:
        change = _change(alerts, name)
        self._name, self._row, self._routing, self._dashboard = name, row, routing, dashboard
        self._severity = (change and change.severity) or row["severity"]
        # A replica may take this long to start.
        least = max(seconds(row["for"]), startup) if name == "notReady" else seconds(row["for"])
        self._for = (change and change.hold) or (row["for"] if least == seconds(row["for"]) else f"{least}s")
        given = change.above if change is not None else None
        above = row.get("above") if given is None else given
        self._above = {} if above is None else {"above": _number(above)}
        self._runbook = f"{alerts.runbook or page_url(RUNBOOK)}#{name.lower()}"

    def tree(self, kind: str, values: Mapping[str, str | Expr]) -> Tree:
        """Return the rule of an object of a kind."""
        known = {**values, **self._above}
        annotations: dict[str, Tree] = {
            "summary": fill_in(self._row["summary"], known),
            "description": fill_in(self._row["description"], known),
            "runbook_url": self._runbook,
        }
        if self._dashboard is not None and self._dashboard.url is not None:
            annotations["dashboard_url"] = Joined((f"{self._dashboard.url.rstrip('/')}/d/", dashboard_uid()))
        return {
            "alert": f"Kaigen{self._name[0].upper()}{self._name[1:]}",
            "expr": fill_in(self._row["by"][kind], known),
            "for": self._for,
            "labels": {**self._routing, "severity": self._severity, "app": known["app"], "namespace": Namespace()},
            "annotations": annotations,
        }


def _objectives(slo: Slo | None) -> dict[str, str | Expr]:
    """Return the thresholds of objectives, by their words in the table."""
    found: dict[str, str | Expr] = {}
    if slo is not None and slo.availability is not None:
        budget = 1 - float(slo.availability.rstrip("%")) / 100
        hours = int(slo.window.rstrip("d")) * _DAY
        for word, (share, loss) in (("fast", _FAST), ("medium", _MEDIUM), ("slow", _SLOW)):
            found[word] = _number(min(share * hours / loss * budget, 1))
    if slo is not None and slo.ttft is not None:
        (quantile,) = set_fields(slo.ttft)
        limit = str(getattr(slo.ttft, quantile))
        found["quantile"] = _number(int(quantile[1:]) / 100)
        found["above"] = _number(int(limit[:-2]) / 1000 if limit.endswith("ms") else int(limit[:-1]))
    return found


def _number(value: float) -> str:
    return f"{value:.6g}" if value < 100000 else str(int(value))


def _stamp(day: str) -> str:
    """Return the Unix time at which a day begins, in UTC."""
    return str(int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()))
