"""What kaigen makes of the examples, as files and objects for a namespace of a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from msgspec import structs

from kaigen.config.block_settings import Allowed
from kaigen.config.load import load_config
from kaigen.pipeline.result import Compilation, Compiled
from kaigen.pipeline.run import compile_specs
from tests.cases import EXAMPLES, Case
from tests.cluster import world
from tests.cluster.client import Object
from tests.cluster.images import BASE
from tests.cluster.plane import Plane

JOB = "batch/v1/Job"
CLAIM = "v1/PersistentVolumeClaim"
POD = "v1/Pod"
_DEMO = EXAMPLES / "demo"


def demo(namespace: str) -> dict[str, Compiled]:
    """The demo repository's Models and Jobs by name, for another namespace."""
    config = structs.replace(load_config(_DEMO), namespace=namespace)
    apps = _by_name(compile_specs((), config))
    return {name: apps[name] for name in demo_specs()}


def demo_specs() -> dict[str, Object]:
    """The demo's Models and Jobs as they were written, by name."""
    specs = [yaml.safe_load(file.read_text()) for file in sorted((_DEMO / "specs").glob("*.yaml"))]
    return {spec["metadata"]["name"]: spec for spec in specs if spec["kind"] in ("Job", "Model")}


def case(found: Case, namespace: str) -> dict[str, Compiled]:
    """The apps of a case by name; those whose spec names no namespace go to this one."""
    return _by_name(replace(found, config=structs.replace(found.config, namespace=namespace)).compile())


def spec(kind: str, name: str, **fields: object) -> Object:
    """Return a spec of one of kaigen's kinds."""
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": fields}


def compiled(folder: Path, specs: Sequence[Object], namespace: str, profile: str = "k3s") -> dict[str, Compiled]:
    """The apps of specs by name.

    Args:
        folder: where their files are written; those of earlier calls go.
        specs: the specs.
        namespace: where the apps go.
        profile: kind of cluster.
    """
    for file in folder.glob("*.yaml"):
        file.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    for number, spec in enumerate(specs):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(spec))
    config = structs.replace(
        load_config(_DEMO),
        root=folder,
        namespace=namespace,
        profile=profile,
        specs=(".",),
        values=(),
        allow=Allowed(servers=("127.0.0.1",)),
    )
    return _by_name(compile_specs((str(folder),), config))


def _by_name(compilation: Compilation) -> dict[str, Compiled]:
    return {item.app.name: item for item in compilation.apps}


def job_name(item: Compiled) -> str:
    """The name of an app's Job."""
    (name,) = [str(found.body["metadata"]["name"]) for found in item.objects if found.body["kind"] == "Job"]
    return name


def add_gpu_node(plane: Plane) -> None:
    """A node as k3s has it: GPUs, and no taint that keeps other pods away. Those of the world have one."""
    name = "k3s-gpu"
    if plane.client.find("v1/Node", name) is None:
        capacity = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "8Ti", "pods": "500", "nvidia.com/gpu": "8"}
        plane.add_node(world.node(name, capacity=capacity))


def find(item: Compiled, kind: str) -> Object:
    """The only object of a kind in an app."""
    (body,) = [found.body for found in item.objects if found.body["kind"] == kind]
    return body


def client_pod(code: str) -> Object:
    """A pod that runs Python and ends."""
    container = {
        "name": "client",
        "image": BASE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", code],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    body = {"restartPolicy": "Never", "securityContext": security, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "client-"}, "spec": body}


def asking_pod(*, threads: int, seconds: float = 600.0) -> Object:
    """A pod that asks `http://web/` until the time is over or `/tmp/stop` exists, and prints its answers, counted."""
    code = f"""
import collections, json, os, threading, time, urllib.request
seen, lock = collections.Counter(), threading.Lock()
end = time.time() + {seconds}
def ask():
    while time.time() < end and not os.path.exists("/tmp/stop"):
        try:
            answer = urllib.request.urlopen("http://web/", timeout=20).read().decode()
        except OSError as error:
            answer = f"lost: {{error}}"
        with lock:
            seen[answer] += 1
threads = [threading.Thread(target=ask) for _ in range({threads})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""
    return client_pod(code)
