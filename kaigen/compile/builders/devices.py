"""GPUs through Dynamic Resource Allocation (`resource.k8s.io/v1`, Kubernetes 1.34 and later)."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame


def claim_template(frame: Frame, device_class: str, count: int, component: str = "run") -> Object:
    """Return the template of each pod's claim for `count` devices of a class."""
    return Object(
        role="resourceclaimtemplate",
        body={
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": frame.metadata("-gpus", component),
            "spec": {
                "spec": {
                    "devices": {
                        "requests": [{"name": "gpus", "exactly": {"deviceClassName": device_class, "count": count}}]
                    }
                }
            },
        },
    )
