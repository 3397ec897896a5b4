"""kube-state-metrics on a plane, and how Prometheus scrapes it."""

from __future__ import annotations

from functools import partial

from tests.cluster.client import Object
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import locate_part

_HOST = "127.0.0.1"
_NAME = "kube-state-metrics"
_RESOURCES = ("cronjobs", "deployments", "jobs", "pods", "statefulsets")


class KubeStateMetrics:
    """A kube-state-metrics with the defaults of its flags. It ends with the plane."""

    def __init__(self, plane: Plane) -> None:
        """Start it.

        Args:
            plane: where.
        """
        self._port, own = free_ports(2)
        plane.start(
            _NAME,
            str(locate_part(_NAME)),
            f"--kubeconfig={plane.kubeconfig_for(_NAME)}",
            f"--host={_HOST}",
            f"--port={self._port}",
            f"--telemetry-host={_HOST}",
            f"--telemetry-port={own}",
            f"--resources={','.join(_RESOURCES)}",
        )
        plane.processes.wait_until(partial(plane.listens, self._port, _HOST), f"{_NAME} listens")

    @property
    def job(self) -> Object:
        """The job of Prometheus that scrapes it: the labels `namespace` and `pod` are those of the objects."""
        # So does the ServiceMonitor of its chart (kubernetes/kube-state-metrics, jsonnet and its chart).
        target = {"targets": [f"{_HOST}:{self._port}"]}
        return {"job_name": _NAME, "honor_labels": True, "static_configs": [target]}
