"""Topologies of the tests in this folder, and functions that read their pods."""

from __future__ import annotations

from typing import Any

from tests.unit.compile.specs import Object, context, model, objects, pod

COMMIT = "0" * 40
MODELS = {"one": model(), "many": model(store={"volume": {"size": "100Gi", "accessModes": ["ReadWriteMany"]}})}
CONTEXT = context(models=MODELS)
HUB = {"huggingFace": {"repo": "org/base", "revision": COMMIT}}
FOLDER = {"folder": "/weights"}
KEDA = {"max": 3, "prometheus": {"address": "http://p:9090"}}
CONTAINER: Object = {"engine": "container", "image": "i:1"}
TEMPLATE: Object = {
    "spec": {
        "containers": [
            {
                "name": "a",
                "image": "i:1",
                "ports": [{"containerPort": 5000}],
                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
            }
        ]
    }
}


def args(block: Any, where: Any = CONTEXT) -> list[str]:
    """Return the arguments of the engine."""
    found: list[str] = pod(block, where)["containers"][0]["args"]
    return found


def env(spec: Object) -> dict[str, Any]:
    """Return the variables of a pod's engine: values, or their sources."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in spec["containers"][0]["env"]}


def group(block: Any, where: Any = CONTEXT) -> tuple[Object, Object]:
    """Return the leader's and the workers' pods."""
    template = objects(block, where)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]
