"""Monitoring of the metrics of engines and of the downloader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Tree

if TYPE_CHECKING:
    from kaigen.kinds.operation import Monitoring


def pod_monitor(
    frame: Frame, component: str, monitoring: Monitoring, path: str, *, port: str = "http", wave: int = 3
) -> Object:
    """Return a PodMonitor of a component's pods.

    Args:
        frame: the app.
        component: value of the pods' component label.
        monitoring: the block of the spec.
        path: path of the metrics.
        port: name of the containers' port.
        wave: sync wave.
    """
    endpoint: dict[str, Tree] = {"port": port, "path": path}
    if monitoring.interval:
        endpoint["interval"] = monitoring.interval
    return Object(
        role="podmonitor",
        wave=wave,
        body={
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": frame.metadata("", "monitoring", wave=wave, labels=monitoring.labels),
            "spec": {"selector": {"matchLabels": frame.selector(component)}, "podMetricsEndpoints": [endpoint]},
        },
    )
