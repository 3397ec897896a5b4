"""Monitoring of an engine's metrics."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Tree
from kaigen.kinds.operation import Monitoring


def pod_monitor(frame: Frame, component: str, monitoring: Monitoring, path: str) -> Object:
    """Return a PodMonitor of a component's pods, by their port `http`."""
    endpoint: dict[str, Tree] = {"port": "http", "path": path}
    if monitoring.interval:
        endpoint["interval"] = monitoring.interval
    return Object(
        role="podmonitor",
        wave=3,
        body={
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": frame.metadata("", "monitoring", wave=3, labels=monitoring.labels),
            "spec": {
                "selector": {"matchLabels": frame.selector(component)},
                "podMetricsEndpoints": [endpoint],
            },
        },
    )
