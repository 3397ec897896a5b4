"""KAITO's own controller on a plane, and what it and kaigen make of the same resource."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import Instance, find_instance
from tests.cluster import world
from tests.cluster.client import Object
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports, listening
from tests.cluster.tools.parts import locate_part

WORKSPACE = "kaito.sh/v1beta1/Workspace"
STATEFUL_SET = "apps/v1/StatefulSet"
_HOST = "127.0.0.1"
_SCRIPT = "/workspace/vllm/inference_api.py"


class Kaito:
    """KAITO's running workspace controller. It uses nodes that exist, as with its option `--node-provisioner byo`."""

    def __init__(self, plane: Plane, namespace: str = "kaito") -> None:
        """Start the controller. It ends with the plane.

        Args:
            plane: Where.
            namespace: Namespace of the controller.
        """
        self._plane = plane
        self._groups: set[str] = set()
        self._nodes: list[str] = []
        plane.make_namespace(namespace)
        metrics, health = free_ports(2)
        plane.start(
            "kaito",
            str(locate_part("workspace")),
            "--node-provisioner=byo",
            "--feature-gates=vLLM=true,disableNodeAutoProvisioning=true",
            "--webhook=false",
            f"--metrics-bind-address={_HOST}:{metrics}",
            f"--health-probe-bind-address={_HOST}:{health}",
            "--kube-client-qps=500",
            "--kube-client-burst=1000",
            env={
                "KUBECONFIG": str(plane.kubeconfig_for("kaito")),
                "RELEASE_NAMESPACE": namespace,
                "SYSTEM_NAMESPACE": namespace,
                "CLOUD_PROVIDER": "azure",
                "PRESET_REGISTRY_NAME": "registry.example.com/kaito",
                # It asks the Hub about models that its catalog does not have.
                "HTTPS_PROXY": f"http://{_HOST}:9",
            },
        )
        plane.processes.wait_until(partial(listening, health), "KAITO's controller listens")

    def add_nodes(self, instance_type: str, labels: Mapping[str, str], count: int) -> None:
        """Create nodes of an instance type with the labels of GPU feature discovery; nothing for known labels.

        Args:
            instance_type: Name in the catalog.
            labels: Labels by which a Workspace selects them.
            count: How many.
        """
        key = f"{instance_type} {sorted(labels.items())}"
        if key in self._groups:
            return
        self._groups.add(key)
        instance = find_instance(instance_type, BUILT_IN)
        assert instance is not None, instance_type
        for number in range(count):
            self._nodes.append(f"kaito-{len(self._groups)}-{number}")
            self._plane.add_node(
                world.node(
                    self._nodes[-1],
                    # Room for the pods of every Workspace, so that all can run at once.
                    capacity={"cpu": "10k", "memory": "1Pi", "pods": "10k", "nvidia.com/gpu": "10k"},
                    labels={**labels, **_discovered(instance)},
                )
            )

    def close(self) -> None:
        """End the controller and remove its nodes, which have room for the pods of any other test."""
        self._plane.processes.stop("kaito")
        for name in self._nodes:
            self._plane.client.delete("v1/Node", name)


def _discovered(instance: Instance) -> dict[str, str]:
    """Return the labels that GPU feature discovery gives a node."""
    major, _, minor = f"{instance.gpu.compute_capability}".partition(".")
    return {
        "node.kubernetes.io/instance-type": instance.name,
        "nvidia.com/gpu.product": f"NVIDIA-{instance.gpu.name}",
        "nvidia.com/gpu.count": str(instance.count),
        "nvidia.com/gpu.memory": str(int(instance.memory * 1024)),
        "nvidia.com/cuda.compute.major": major,
        "nvidia.com/cuda.compute.minor": minor or "0",
    }


class Served(Struct, frozen=True):
    """How a model is served.

    Attributes:
        nodes: pods of one replica.
        gpus: GPUs of each pod.
        flags: flags of vLLM by name, with all values of each; those with a value only.
        env: variables of the container.
    """

    nodes: int
    gpus: int
    flags: Mapping[str, tuple[str, ...]]
    env: Mapping[str, str]

    @property
    def served_names(self) -> tuple[str, ...]:
        """Names by which requests may ask for the model."""
        return self.flags["served-model-name"]

    @property
    def fields(self) -> dict[str, str]:
        """Everything as text, by a name for the table of differences."""
        found = {"nodes": str(self.nodes), "gpus": str(self.gpus)}
        found |= {f"--{name}": " ".join(values) or "set" for name, values in self.flags.items()}
        # Further names are aliases.
        found["--served-model-name"] = self.served_names[0]
        # The Hub ignores case.
        found["--model"] = found["--model"].lower()
        found |= {f"env {name}": value for name, value in self.env.items()}
        return found


def served_by_kaito(stateful_set: Object, config: Mapping[str, Any]) -> Served:
    """Return how a StatefulSet of KAITO's serves.

    Args:
        stateful_set: the object.
        config: flags of vLLM in the Workspace's ConfigMap, which KAITO's script adds when it starts.
    """
    spec = stateful_set["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    script = container["command"][-1]
    # On several nodes a shell script starts Ray first; the leader's command is in its first branch.
    start = script.index(_SCRIPT) + len(_SCRIPT)
    command = re.split(r"; else |; fi|$", script[start:], maxsplit=1)[0]
    return Served(
        nodes=spec["replicas"],
        gpus=_gpus(container),
        flags=_flags(shlex.split(command)) | {name: _values(value) for name, value in config.items()},
        env=_env(container),
    )


def served_by_kaigen(objects: Iterable[Object]) -> Served:
    """Return how the workload among kaigen's objects serves."""
    for each in objects:
        spec = each.get("spec", {})
        if "leaderWorkerTemplate" in spec:
            group = spec["leaderWorkerTemplate"]
            nodes, pod = group["size"], group["leaderTemplate"]["spec"]
        elif each["kind"] in {"Deployment", "StatefulSet"}:
            nodes, pod = 1, spec["template"]["spec"]
        else:
            continue
        container = pod["containers"][0]
        return Served(nodes, _gpus(container), _flags(["--model", *container["args"]]), _env(container))
    raise AssertionError("nothing serves")


def _values(value: Any) -> tuple[str, ...]:
    """Return the values of a flag in a ConfigMap, where true stands for a flag without a value."""
    return () if value is True else (str(value),)


def _gpus(container: Object) -> int:
    limits: dict[str, Any] = container["resources"].get("limits", {})
    return sum(int(count) for name, count in limits.items() if "/" in name)


def _env(container: Object) -> dict[str, str]:
    return {each["name"]: str(each.get("value", "from a reference")) for each in container.get("env", [])}


def _flags(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the flags of a command line; values follow after `=`, or as arguments of their own."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for argument in arguments:
        if argument.startswith("--"):
            written, _, value = argument.removeprefix("--").partition("=")
            name = written.replace("_", "-")
            found[name] = (value,) if value else ()
        else:
            found[name] = (*found[name], argument)
    return found
