"""Pods that serve: one, or the leader and the workers of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kaigen.catalog.engines import Engine
from kaigen.compile.builders import settings
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import (
    SCRATCH,
    Granted,
    container_security,
    entry_point,
    image_fields,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.variables import variables_of
from kaigen.compile.expressions import Joined, Json, Release, Setting, Tree
from kaigen.compile.problems import Problems
from kaigen.compile.topology.engine import (
    DRAIN,
    KEY_FOLDER,
    KEY_VARIABLE,
    RAY_LEADER,
    RAY_PORT,
    RAY_WORKER,
    across_nodes,
    arguments,
    surroundings,
    transformers_arguments,
    vllm_arguments,
)
from kaigen.compile.topology.parallel import Parallel
from kaigen.compile.topology.weights import CACHE, CACHE_FOLDER, Weights
from kaigen.kinds.blocks import Image
from kaigen.kinds.topology import TopologySpec

Role = Literal["single", "leader", "worker"]
GROUP_SETTLE_S = 10
"""How long a pod that drains by itself goes on as it is, so that proxies learn that it goes."""

_RANK = {
    "fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"},
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod stands in its group, as its own variables tell it.

    Attributes:
        rank: the pod's number, 0 for the leader.
        leader: the leader's host name.
        env: variables that say so.
    """

    rank: Tree = "0"
    leader: Tree = ""
    env: tuple[Tree, ...] = ()


LWS_PLACE = Place("$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")
"""LeaderWorkerSet gives each container these variables (source: its reference of labels and variables)."""


def set_place(copy: int) -> Place:
    """A pod's place in a group of StatefulSets."""
    leader = Joined((Release(f"-{copy}-0."), Release("-nodes")))
    return Place("$(NODE_RANK)", leader, ({"name": "NODE_RANK", "valueFrom": _RANK},))


@dataclass(frozen=True, slots=True)
class PodMaker:
    """Makes the pods of one Topology.

    Attributes:
        spec: the spec.
        engine: what serves.
        image: of the engine.
        image_at: where the image stands in the spec; empty for kaigen's own.
        problems: takes what is wrong.
        granted: what the pod's resources come to.
        parallel: how one copy spreads.
        weights: of the model.
        adapters: LoRA adapters.
        names: under which the model is asked for.
        preset: flags that the model needs by its catalogue entry.
        preset_env: variables likewise.
        startup: longest time until it is ready, in seconds.
        scheduling: fields of the pod that say where it may run.
        security: the pod's security context.
        pull_secrets: the pod's.
        owns_cache: the cache is a volume that the pod owns.
    """

    spec: TopologySpec
    engine: Engine
    image: Image
    image_at: tuple[str, ...]
    problems: Problems
    granted: Granted
    parallel: Parallel
    weights: Weights
    adapters: Sequence[Weights]
    names: Sequence[str]
    preset: Mapping[str, Json]
    preset_env: Mapping[str, str]
    startup: int
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]
    pull_secrets: Sequence[Mapping[str, str]]
    owns_cache: bool = field(default=False)

    def pod(self, role: Role, place: Place = Place()) -> dict[str, Tree]:
        """The spec of one pod."""
        reads = [self.weights, *self.adapters]
        mounts: list[Tree] = [mount for each in reads for mount in each.mounts]
        volumes: list[Tree] = [volume for each in reads for volume in each.volumes]
        mounts.append({"name": CACHE, "mountPath": CACHE_FOLDER})
        limit: dict[str, Tree] = (
            {"sizeLimit": self.granted.scratch_limit} if self.granted.scratch_limit else {}
        )
        if not self.owns_cache:
            volumes.append({"name": CACHE, "emptyDir": limit})
        mounts.append({"name": SCRATCH, "mountPath": "/tmp"})
        volumes.append(scratch_volume(self.granted.scratch_limit))
        if self.granted.shared_memory:
            mounts.append({"name": "shm", "mountPath": "/dev/shm"})
            volumes.append(shared_memory_volume(self.granted.shared_memory))
        auth = self.spec.auth
        if auth and self.engine.name == "transformers":
            mounts.append({"name": "auth", "mountPath": KEY_FOLDER, "readOnly": True})
            items: Tree = [{"key": auth.key, "path": auth.key}]
            secret: Tree = {"secretName": auth.secret, "items": items, "defaultMode": 0o440}
            volumes.append({"name": "auth", "secret": secret})
        self._check_mounts(mounts)
        init = [container for each in reads for container in each.init]
        return {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": self._grace,
            "imagePullSecrets": settings.objects(
                "imagePullSecrets",
                self.pull_secrets,
                "Secrets to pull the images with.",
                origin=self.image_at,
            ),
            **self.scheduling,
            "securityContext": dict(self.security),
            **(
                {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]}
                if self.granted.device_class
                else {}
            ),
            **({"initContainers": init} if init else {}),
            "containers": [self._container(role, place, mounts)],
            "volumes": volumes,
        }

    @property
    def _grace(self) -> int:
        drain = seconds(self.spec.drain)
        return drain + 30 if self.engine.requests else drain + GROUP_SETTLE_S + 20

    def _check_mounts(self, mounts: Sequence[Tree]) -> None:
        """No two volumes are mounted at one folder."""
        taken: dict[str, Tree] = {}
        for mount in mounts:
            assert isinstance(mount, Mapping)
            folder, name = str(mount["mountPath"]).rstrip("/"), mount["name"]
            if taken.setdefault(folder, name) != name:
                self.problems.error(
                    "KG0314",
                    f"two volumes would be mounted at `{folder}`: {taken[folder]} and {name}",
                    ("spec", "model"),
                    "set another `mountPath`",
                )

    def _container(self, role: Role, place: Place, mounts: list[Tree]) -> dict[str, Tree]:
        read_only = self.spec.security.read_only_root_filesystem
        serves = role != "worker"
        return {
            "name": "serve",
            **image_fields(self.image, "", self.image_at),
            **self._command(role, place),
            "env": self._env(role, place),
            **(
                {"ports": [{"name": "http", "containerPort": self.spec.port, "protocol": "TCP"}]}
                if serves
                else {}
            ),
            "resources": Setting(
                "resources",
                self.granted.requirements,
                "Resources of each pod's engine.",
                settings.RESOURCES,
                origin=("spec", "resources"),
            ),
            **(self._probes() if serves else {}),
            "lifecycle": {"preStop": self._pre_stop(serves)},
            "securityContext": container_security(
                read_only=not self.granted.has_gpu if read_only is None else read_only
            ),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": mounts,
        }

    def _command(self, role: Role, place: Place) -> dict[str, Tree]:
        spec = self.spec
        if self.engine.name == "container":
            return entry_point(spec.command, spec.args)
        command: list[Tree] = list(self.engine.command)
        if self.engine.name == "transformers":
            return {
                "command": command,
                "args": arguments(transformers_arguments(spec, self.weights, self.names), spec),
            }
        own = vllm_arguments(spec, self.weights, self.adapters, self.parallel, self.names, self.preset)
        if self.parallel.ray and role == "leader":
            own += ["--distributed-executor-backend=ray"]
            # The engine is what the script's arguments are, so that nothing needs a shell's quotes.
            script: list[Tree] = ["/bin/sh", "-c", RAY_LEADER, "ray"]
            return {"command": script, "args": arguments([*command, *own], spec)}
        if self.parallel.ray and role == "worker":
            return {"command": ["/bin/sh", "-c", RAY_WORKER]}
        if role != "single":
            own += across_nodes(self.parallel, place.rank, place.leader, worker=role == "worker")
        return {"command": command, "args": arguments(own, spec)}

    def _env(self, role: Role, place: Place) -> list[Tree]:
        spec = self.spec
        own: list[Tree] = [
            {"name": name, "value": value}
            for name, value in surroundings(self.engine.name, offline=self.weights.offline)
            if name not in spec.env
        ]
        own += [{"name": name, "value": value} for name, value in sorted(self.preset_env.items())]
        own += self.weights.env
        if spec.auth and self.engine.name == "vllm" and role != "worker":
            reference: Tree = {"name": spec.auth.secret, "key": spec.auth.key}
            own.append({"name": KEY_VARIABLE, "valueFrom": {"secretKeyRef": reference}})
        if role != "single":
            own.append({"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
            own += place.env
            if self.parallel.ray:
                own.append({"name": "RAY_PORT", "value": str(RAY_PORT)})
                own.append({"name": "NODES", "value": str(self.parallel.nodes)})
                own.append({"name": "LEADER", "value": place.leader})
        self._check_variables(own)
        return [*own, *variables_of(spec.env)]

    def _check_variables(self, own: Sequence[Tree]) -> None:
        told = {
            str(path[-1])
            for path in (problem.path for problem in self.problems.items)
            if path[:2] == ("spec", "env")
        }
        for entry in own:
            assert isinstance(entry, Mapping)
            name = str(entry["name"])
            if name in self.spec.env and name not in told:
                self.problems.error(
                    "KG0313",
                    f"`{name}` is set by kaigen for this Topology",
                    ("spec", "env", name),
                    "leave it out",
                )

    def _probes(self) -> dict[str, Tree]:
        given = self.spec.probes
        ready = given.ready or self.engine.ready
        live = given.live or given.ready or self.engine.live

        def at(path: str) -> dict[str, Tree]:
            return {"httpGet": {"path": path, "port": "http"}} if path else {"tcpSocket": {"port": "http"}}

        period = 10
        return {
            "startupProbe": {
                **at(ready),
                "periodSeconds": period,
                "timeoutSeconds": 5,
                "failureThreshold": settings.count(
                    "startup.attempts",
                    -(-self.startup // period),
                    f"How often, every {period} seconds, it is asked whether it is ready, before it is restarted.",
                    origin=("spec", "probes", "startup"),
                ),
            },
            "readinessProbe": {**at(ready), "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
            "livenessProbe": {**at(live), "periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 6},
        }

    def _pre_stop(self, serves: bool) -> dict[str, Tree]:
        drain = seconds(self.spec.drain)
        if not self.engine.requests:
            return {"sleep": {"seconds": GROUP_SETTLE_S}}
        if not serves:
            # The leader still works on its requests meanwhile, and needs its workers for that.
            return {"sleep": {"seconds": max(1, drain)}}
        command = ["python3", "-c", DRAIN, str(self.spec.port), ",".join(self.engine.requests), str(drain)]
        return {"exec": {"command": command}}
