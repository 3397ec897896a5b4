"""Hours of a Topology by a real KEDA: several windows in several time zones, and nothing outside of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.cluster.apps import compiled, spec
from tests.cluster.client import Object
from tests.cluster.keda import Keda
from tests.cluster.plane import Plane

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"


def window(zone: str, start: timedelta, end: timedelta, replicas: int) -> Object:
    """Return a window from one time to another, each from now on."""
    now = datetime.now(ZoneInfo(zone))

    def moment(at: timedelta) -> str:
        found = now + at
        return f"{found.minute} {found.hour} * * *"

    return {"start": moment(start), "end": moment(end), "timeZone": zone, "replicas": replicas}


def topology(name: str, *windows: Object) -> Object:
    whole: dict[str, Any] = {
        "model": {"folder": "/weights"},
        "image": "registry.example.com/engine:1",
        "engineVersion": "0.32.0",
        "resources": {"gpus": 0, "cpu": "50m", "memory": "64Mi"},
        "probes": {"startup": "10s"},
        "autoscale": {"min": 0, "max": 4, "idleAfter": "5s", "schedule": [*windows]},
    }
    return spec("Topology", name, **whole)


def test_replicas_follow_windows_in_several_time_zones(plane: Plane, namespace: str, tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    specs = [
        topology(
            "open",
            window("Asia/Tokyo", -hour, hour, 1),
            window("America/New_York", -hour, hour, 3),
            window("Europe/Berlin", hour, 2 * hour, 4),
        ),
        topology("closed", window("Asia/Tokyo", hour, 2 * hour, 2), window("Europe/Berlin", -2 * hour, -hour, 2)),
    ]
    Keda(plane)
    for app in compiled(tmp_path, specs, namespace, "generic").values():
        for rendered in app.objects:
            if not rendered.object.test:
                plane.client.apply(rendered.body)

    def wait(name: str, replicas: int) -> None:
        plane.client.wait(
            DEPLOYMENT,
            name,
            namespace,
            lambda found: found["spec"].get("replicas") == replicas and found["status"].get("replicas", 0) == replicas,
            f"{replicas} replicas",
            timeout=150,
        )

    wait("open", 3)
    wait("closed", 0)
