"""Pods that serve: one for each replica, or the leader and the workers of a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, token_volume
from kaigen.compile.builders.image_build import awaited_builds, build_gate
from kaigen.compile.builders.job_gate import AwaitedRun, gate_account
from kaigen.compile.builders.mounts import Mounted
from kaigen.compile.builders.params import FOLDER, KEY, ParamsOf
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import (
    NO_NETWORK,
    SCRATCH,
    image_fields,
    main_container_security,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.settings import variables_of
from kaigen.compile.engines.launch import Launch, Member
from kaigen.compile.engines.lifecycle import http_probe
from kaigen.compile.expressions import Expr, Joined, Release, Setting, Text, Tree
from kaigen.compile.topology.hub import CACHE_VOLUME
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.compile.topology.resources import SCRATCH_GIB
from kaigen.kinds.blocks import Image
from kaigen.kubernetes.quantities import units

_POD_INDEX = {"fieldRef": {"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}
_PROBE_SECONDS = 10


def members(resolution: TopologyResolution, replica: int = 0) -> tuple[Member, ...]:
    """Return the different pods of one replica: one, or a leader and a worker.

    LeaderWorkerSet sets `LWS_WORKER_INDEX` and `LWS_LEADER_ADDRESS` in each container (source: its reference of labels
    and variables). Pods of a StatefulSet get their rank from a label.

    Args:
        resolution: the Topology.
        replica: number of the replica, where each has StatefulSets of its own.
    """
    if resolution.parallelism.nodes == 1:
        return (Member(),)
    if resolution.engine.is_ring:
        return _ring_members(resolution, replica)
    if resolution.workload is Workload.LEADER_WORKER_SET:
        rank, leader = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"
        return Member("leader", rank, leader), Member("worker", rank, leader)
    host = Joined((Release(f"-{replica}-0."), resolution.frame.headless_service))
    env: tuple[Tree, ...] = ({"name": "NODE_RANK", "valueFrom": _POD_INDEX},)
    return Member("leader", "$(NODE_RANK)", host, env), Member("worker", "$(NODE_RANK)", host, env)


def _ring_members(resolution: TopologyResolution, replica: int) -> tuple[Member, ...]:
    """Return the root of a ring, which knows the names of its workers, and a worker."""
    workers = range(1, resolution.parallelism.nodes)
    if resolution.workload is Workload.LEADER_WORKER_SET:
        # The leader's Service has the name of the leader, and the name of a worker begins with it.
        own: tuple[Tree, ...] = ({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},)
        names: tuple[str | Expr, ...] = tuple(f"$(POD_NAME)-{index}.$(POD_NAME)" for index in workers)
        return Member("leader", env=own, peers=names), Member("worker")
    service = resolution.frame.headless_service
    names = tuple(Joined((Release(f"-{replica}-workers-{index}."), service)) for index in workers)
    return Member("leader", peers=names), Member("worker")


def pod_spec(resolution: TopologyResolution, member: Member) -> dict[str, Tree]:
    """Return the spec of one pod."""
    return extended_pod(own_pod(resolution, member), resolution.spec, resolution.context)


def own_pod(resolution: TopologyResolution, member: Member) -> dict[str, Tree]:
    """Return the spec of one pod without what the fields about pods add."""
    spec = resolution.spec
    launch = _launch(resolution, member)
    init = [*build_gate(resolution.build, resolution.context), *_mounted(resolution, member).init]
    init += resolution.engine.gates(launch)
    claims: Tree = [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]
    return {
        **account_fields(spec),
        **({"serviceAccountName": gate_account(spec)} if awaited_runs(resolution) else {}),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": resolution.engine.grace_seconds(spec),
        "imagePullSecrets": image_pull_secrets(resolution),
        **resolution.scheduling,
        "securityContext": dict(resolution.security),
        **({"resourceClaims": claims} if resolution.resources.device_class else {}),
        **({"initContainers": init} if init else {}),
        "containers": [_container(resolution, launch), *resolution.engine.sidecars(launch)],
        "volumes": _volumes(resolution, member),
    }


def awaited_runs(resolution: TopologyResolution) -> list[AwaitedRun]:
    """Return the Jobs that the pods wait for."""
    return [*awaited_builds(resolution.build), *resolution.mounted.runs]


def _mounted(resolution: TopologyResolution, member: Member) -> Mounted:
    """Return how weights reach one pod: the workers of a ring get theirs from the leader."""
    return resolution.mounted if member.serves or not resolution.engine.is_ring else Mounted()


def image_pull_secrets(resolution: TopologyResolution) -> Setting:
    """Return the setting with the Secrets that the pods pull images with."""
    return settings.pull_secrets(
        "imagePullSecrets",
        _pull_secrets(resolution),
        "Secrets for pulling the images.",
        origin=resolution.image_path,
    )


def _pull_secrets(resolution: TopologyResolution) -> list[Mapping[str, str]]:
    transfer = resolution.spec.transfer.image
    images: list[Image] = [resolution.image, *([transfer] if transfer else [])]
    secrets = list(pull_secrets(*images, spec=resolution.spec))
    secrets += [{"name": name} for name in resolution.mounted.pull_secrets if {"name": name} not in secrets]
    return secrets


def params_of(resolution: TopologyResolution) -> ParamsOf:
    """Return the parameters."""
    spec = resolution.spec
    # Not the folder: an API key is mounted in it, and no volume can be mounted in a read-only one.
    file = spec.params_file or (f"{FOLDER}/{KEY}" if spec.params else None)
    return ParamsOf(spec.params, "Parameters of the engine.", file)


def engine_mounts(resolution: TopologyResolution, member: Member) -> list[Mapping[str, Tree]]:
    """Return the volume mounts of the engine's container in one pod."""
    mounts: list[Mapping[str, Tree]] = [*_mounted(resolution, member).mounts]
    mounts += params_of(resolution).mounts()
    mounts.append({"name": CACHE_VOLUME, "mountPath": resolution.naming.folders.cache})
    mounts.append({"name": SCRATCH, "mountPath": "/tmp"})
    if resolution.resources.shared_memory:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return [*mounts, *(resolution.engine.secret_mounts(resolution.spec) if member.serves else ())]


def _is_offline(resolution: TopologyResolution) -> bool:
    """Return whether the engine downloads nothing, whose size would be unknown, into its cache."""
    return resolution.weights.offline and "HF_HUB_OFFLINE" not in resolution.spec.env


def _volumes(resolution: TopologyResolution, member: Member) -> list[Tree]:
    resources = resolution.resources
    volumes: list[Tree] = [*_mounted(resolution, member).volumes]
    if awaited_runs(resolution):
        volumes.append(token_volume())
    volumes += params_of(resolution).volumes()
    # Without a limit, one pod fills the disk of its node, and the kubelet evicts others.
    limit = resources.scratch_limit or f"{SCRATCH_GIB}Gi"
    if resolution.spec.storage is None:
        volumes.append(scratch_volume(limit if _is_offline(resolution) else resources.scratch_limit, CACHE_VOLUME))
    volumes.append(scratch_volume(limit))
    if resources.shared_memory:
        volumes.append(shared_memory_volume(resources.shared_memory))
    if member.serves:
        volumes += resolution.engine.secret_volumes(resolution.spec)
    return volumes


def _launch(resolution: TopologyResolution, member: Member) -> Launch:
    return Launch(
        spec=resolution.spec,
        served_names=resolution.spec.served_names or [resolution.metadata.name],
        weights=resolution.weights,
        adapters=resolution.adapters,
        parallelism=resolution.parallelism,
        preset_flags=resolution.sizing.flags,
        folders=resolution.naming.folders,
        member=member,
        version=resolution.engine.version(resolution.spec, resolution.image),
        startup=Joined((Text(_startup_attempts(resolution)), "0")),
        startup_attempts=_startup_attempts(resolution),
        images=resolution.context.config.images,
        cpus=max(1, int(units(resolution.resources.requirements["requests"]["cpu"]) or 0))
        if resolution.engine.is_ring
        else 1,
        room=_room(resolution),
        ring=resolution.sizing.ring,
        middleware=resolution.naming.middleware,
        most_context=resolution.sizing.model.facts.max_context if resolution.sizing.model is not None else None,
    )


def _room(resolution: TopologyResolution) -> int | None:
    """Return the memory of a pod's engine in addition to its share of the weights; None when it is unknown."""
    model, limits = resolution.sizing.model, resolution.resources.requirements.get("limits", {})
    memory = units(limits.get("memory", ""))
    if model is None or memory is None:
        return None
    return int(memory - model.weights_bytes * 11 / (10 * resolution.parallelism.nodes))


def _startup_attempts(resolution: TopologyResolution) -> Setting:
    """Return the number of startup probes, one every ten seconds: with a zero at the end it is the time in seconds."""
    return settings.count(
        "startup.attempts",
        -(-resolution.startup // _PROBE_SECONDS),
        f"Number of startup probes, one every {_PROBE_SECONDS} seconds, before the container is restarted.",
        origin=("spec", "probes", "startup"),
    )


def _container(resolution: TopologyResolution, launch: Launch) -> dict[str, Tree]:
    spec, engine, member = resolution.spec, resolution.engine, launch.member
    ports, probes = engine.ports(spec, member), engine.probes(launch)
    if probes is None:
        probes = _probes(resolution, engine.probe_port(launch)) if member.serves else {}
    return {
        "name": resolution.naming.container or Release(),
        **({} if engine.connects(launch) else NO_NETWORK),
        **image_fields(resolution.image, "", resolution.image_path),
        **engine.command(launch),
        **engine.container_fields(member),
        "env": _environment(resolution, member),
        **({"ports": ports} if ports else {}),
        "resources": _resources(resolution, member),
        **probes,
        "lifecycle": {"preStop": engine.pre_stop(spec, member)},
        "securityContext": main_container_security(spec.security, resolution.resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(engine_mounts(resolution, member)),
    }


def _resources(resolution: TopologyResolution, member: Member) -> Setting:
    path, doc, found = "resources", "Resources of each pod's engine.", resolution.resources
    if not member.serves and resolution.worker_resources is not None:
        path, doc, found = "workerResources", "Resources of each worker.", resolution.worker_resources
    schema = settings.fixed_devices(found.requirements, resolution.context.config.catalog)
    return Setting(path, found.requirements, doc, schema, origin=("spec", "resources"))


def required_environment(resolution: TopologyResolution, member: Member) -> list[dict[str, Tree]]:
    """Return the variables that kaigen sets and the spec may not override."""
    variables: list[Any] = [{"name": name, "value": value} for name, value in sorted(resolution.sizing.env.items())]
    variables += resolution.weights.env
    return variables + resolution.engine.required_environment(_launch(resolution, member))


def _environment(resolution: TopologyResolution, member: Member) -> list[Tree]:
    given = resolution.spec.env
    defaults = resolution.engine.environment(_launch(resolution, member))
    return [
        *({"name": name, "value": value} for name, value in defaults.items() if name not in given),
        *required_environment(resolution, member),
        *variables_of(given),
        *params_of(resolution).variables(),
    ]


def _probes(resolution: TopologyResolution, port: int | None) -> dict[str, Tree]:
    given, facts = resolution.spec.probes, resolution.engine.facts
    ready = http_probe(given.ready, facts.ready, port)
    live = http_probe(given.live or given.ready, facts.live, port)
    return {
        "startupProbe": {
            **ready,
            "periodSeconds": _PROBE_SECONDS,
            "timeoutSeconds": 5,
            "failureThreshold": _startup_attempts(resolution),
        },
        "readinessProbe": {**ready, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**live, "periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 6},
    }
