"""What a spec adds to the pods that kaigen builds: volumes, variables, containers, host names and DNS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from kaigen.compile.builders import settings
from kaigen.compile.builders.mounts import check_image_volumes
from kaigen.compile.builders.pods import container_security, image_ref
from kaigen.compile.builders.settings import plain_variables
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Items
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import ImageBlock
from kaigen.kinds.pod import EnvFrom, ExtraContainer, Files, PodFields, PodVolume, Sidecar

Pod = Mapping[str, Any]

_ADDED = frozenset(
    ("volumes", "env_from", "sidecars", "init_containers", "hostname", "dns_policy", "dns_config", "host_aliases")
)
_POLICIES = {"enum": ["", "ClusterFirst", "Default", "None"]}


def adds_to_pods(spec: PodFields) -> bool:
    """Return whether a spec adds anything to its pods."""
    return not _ADDED.isdisjoint(set_fields(spec))


def extended_pod(pod: Pod, spec: PodFields, context: Context) -> dict[str, Tree]:
    """Return a pod with what its spec adds. Volumes and variables are for its first container.

    Sidecars come first, so that they run when other init containers start. Init containers of the spec come last, so
    that they find weights and inputs.

    Args:
        pod: spec of the pod.
        spec: the spec.
        context: its profile has the default storage class.
    """
    before = [_sidecar(name, each) for name, each in spec.sidecars.items()]
    after = [_container(name, each) for name, each in spec.init_containers.items()]
    init = pod.get("initContainers", ())
    if before or after:
        init = Items(
            _list("sidecars", before, "Containers that run next to the main one."),
            tuple(init),
            _list("initContainers", after, "Containers that run before the main one, after kaigen's own."),
            ("name",),
        )
    added = [_volume(name, each, context) for name, each in spec.volumes.items()]
    further = settings.objects("extraVolumes", added, "Further volumes of the pods.", origin=("spec", "volumes"))
    if context.profile.storage_class:
        claims = [each.ephemeral for each in spec.volumes.values() if each.ephemeral is not None]
        further = replace(further, by_profile=any(claim.storage_class_name is None for claim in claims))
    volumes = Items(None, tuple(pod.get("volumes", ())), further, ("name",))
    main, *others = pod["containers"]
    own = {"initContainers": init, "containers": [_main(main, spec), *others], "volumes": volumes}
    kept = {key: value for key, value in pod.items() if key not in own}
    return {**kept, **_pod_fields(spec), **{key: value for key, value in own.items() if value}}


def _list(path: str, items: Sequence[Mapping[str, Any]], doc: str, origin: str = "") -> Setting | None:
    """Return the setting of a list; None for an empty one."""
    return settings.objects(path, items, doc, origin=("spec", origin or path)) if items else None


def _pod_fields(spec: PodFields) -> dict[str, Tree]:
    """Return the fields of the pod itself."""
    fields: dict[str, Tree] = {}
    if spec.hostname:
        fields["hostname"] = settings.text(
            "hostname", spec.hostname, "Host name of the pod.", origin=("spec", "hostname")
        )
    if spec.dns_policy:
        fields["dnsPolicy"] = Setting(
            "dnsPolicy",
            spec.dns_policy,
            "How the pods look up names; empty for the default.",
            _POLICIES,
            optional=True,
            origin=("spec", "dnsPolicy"),
        )
    if spec.dns_config:
        fields["dnsConfig"] = Setting(
            "dnsConfig",
            spec.dns_config,
            "Name servers, search domains and options of the pods.",
            settings.OBJECT,
            optional=True,
            origin=("spec", "dnsConfig"),
        )
    if spec.host_aliases:
        fields["hostAliases"] = settings.objects(
            "hostAliases", spec.host_aliases, "Entries of /etc/hosts.", origin=("spec", "hostAliases")
        )
    return fields


def _main(container: Pod, spec: PodFields) -> Pod:
    """Return the main container with further variables and mounts."""
    mounts = [_main_mount(name, each) for name, each in spec.volumes.items() if each.mount_path]
    more_env = settings.objects("extraEnv", (), "Further variables of the main container, as in a pod.")
    more_mounts = settings.objects(
        "extraVolumeMounts", mounts, "Mounts of further volumes in the main container.", origin=("spec", "volumes")
    )
    return {
        **_with_env_from(container, spec),
        "env": Items(None, tuple(container.get("env", ())), more_env, ("name",)),
        "volumeMounts": Items(None, tuple(container.get("volumeMounts", ())), more_mounts, ("mountPath",)),
    }


def _with_env_from(container: Pod, spec: PodFields) -> Pod:
    if not spec.env_from:
        return container
    setting = settings.objects(
        "envFrom",
        _env_from(spec.env_from),
        "ConfigMaps and Secrets whose keys become variables.",
        origin=("spec", "envFrom"),
    )
    return {**container, "envFrom": Items(None, (), setting) if "envFrom" in container else setting}


def _main_mount(name: str, volume: PodVolume) -> dict[str, Any]:
    read_only = volume.read_only
    if read_only is None:
        read_only = any((volume.config_map, volume.secret, volume.image, volume.projected))
    return _mount(name, str(volume.mount_path), volume.sub_path, read_only=read_only)


def _mount(name: str, path: str, sub_path: str | None, *, read_only: bool) -> dict[str, Any]:
    return {
        "name": name,
        "mountPath": path,
        **({"subPath": sub_path} if sub_path else {}),
        **({"readOnly": True} if read_only else {}),
    }


def _volume(name: str, volume: PodVolume, context: Context) -> dict[str, Any]:
    """Return a volume of the pod."""
    if volume.claim_name is not None:
        read_only = {"readOnly": True} if volume.read_only else {}
        return {"name": name, "persistentVolumeClaim": {"claimName": volume.claim_name, **read_only}}
    if volume.config_map is not None:
        return {"name": name, "configMap": _files(volume.config_map, "name")}
    if volume.secret is not None:
        return {"name": name, "secret": _files(volume.secret, "secretName")}
    if volume.empty_dir is not None:
        given = {"medium": volume.empty_dir.medium, "sizeLimit": volume.empty_dir.size_limit}
        return {"name": name, "emptyDir": {key: value for key, value in given.items() if value}}
    if volume.ephemeral is not None:
        wanted, default = volume.ephemeral, context.profile.storage_class
        storage_class = default if wanted.storage_class_name is None else wanted.storage_class_name
        claim = {
            "accessModes": list(wanted.access_modes),
            **({"storageClassName": storage_class} if storage_class else {}),
            "resources": {"requests": {"storage": wanted.size}},
        }
        return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    if volume.image is not None:
        return {"name": name, "image": {"reference": volume.image}}
    if volume.csi is not None:
        return {"name": name, "csi": dict(volume.csi)}
    return {"name": name, "projected": dict(volume.projected or {})}


def _files(block: Files, name: str) -> dict[str, Any]:
    items = [{"key": key, "path": path} for key, path in block.items.items()]
    return {
        name: block.name,
        **({"items": items} if items else {}),
        **({"optional": True} if block.optional else {}),
        **({"defaultMode": block.default_mode} if block.default_mode is not None else {}),
    }


def _env_from(sources: Sequence[EnvFrom]) -> list[dict[str, Any]]:
    found = []
    for each in sources:
        given, field = each.secret or each.config, "secretRef" if each.secret else "configMapRef"
        assert given is not None
        optional = {"optional": True} if each.optional else {}
        found.append({**({"prefix": each.prefix} if each.prefix else {}), field: {"name": given.name, **optional}})
    return found


def _container(name: str, block: ExtraContainer) -> dict[str, Any]:
    """Return a container of the spec, hardened like kaigen's own."""
    policy = block.image.pull_policy if isinstance(block.image, ImageBlock) else None
    mounts = [
        _mount(volume, mount, None, read_only=False)
        if isinstance(mount, str)
        else _mount(volume, mount.path, mount.sub_path, read_only=mount.read_only)
        for volume, mount in block.mounts.items()
    ]
    user = {} if block.run_as_user is None else {"runAsUser": block.run_as_user}
    fields: dict[str, Any] = {
        "imagePullPolicy": policy,
        "command": block.command,
        "args": block.args,
        "env": plain_variables(block.env),
        "envFrom": _env_from(block.env_from),
        "volumeMounts": mounts,
    }
    return {
        "name": name,
        "image": image_ref(block.image),
        **{key: value for key, value in fields.items() if value},
        "resources": {"requests": {"cpu": block.cpu, "memory": block.memory}, "limits": {"memory": block.memory}},
        "securityContext": {**user, **container_security(read_only=block.read_only_root_filesystem)},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _sidecar(name: str, block: Sidecar) -> dict[str, Any]:
    """Return a container that runs as long as the pod, and that a Job does not wait for."""
    fields: dict[str, Any] = {
        "ports": [{"name": port, "containerPort": number} for port, number in block.ports.items()],
        "startupProbe": block.startup_probe,
        "readinessProbe": block.readiness_probe,
        "livenessProbe": block.liveness_probe,
    }
    return {
        **_container(name, block),
        "restartPolicy": "Always",
        **{key: value for key, value in fields.items() if value},
    }


def check_pod_options(
    own_pod: Callable[[], Pod], spec: PodFields, name: str, context: Context, problems: Problems, *, nodes: int = 1
) -> None:
    """Report volumes and containers whose names or folders kaigen uses itself.

    Args:
        own_pod: builds the pod without what the spec adds.
        spec: the spec.
        name: name of the app.
        context: has the target version of Kubernetes.
        problems: collects the errors.
        nodes: pods that work together.
    """
    if not adds_to_pods(spec):
        return
    if spec.hostname and nodes > 1:
        where = "on several nodes, whose pods have host names of their own"
        report_ignored_field(problems, "hostname", ("spec", "hostname"), where, "leave it out")
    pod = own_pod()
    _check_containers(pod, spec, name, problems)
    volumes = [str(own["name"]) for own in pod.get("volumes", ())]
    for each, volume in spec.volumes.items():
        if each in volumes:
            _taken(problems, "volume", each, ("spec", "volumes", each))
        if volume.image is not None:
            check_image_volumes(context, problems, ("spec", "volumes", each, "image"))
    known = [*volumes, *spec.volumes]
    for field, containers in (("sidecars", spec.sidecars), ("initContainers", spec.init_containers)):
        for container, block in containers.items():
            _check_mounts_of(block, known, ("spec", field, container, "mounts"), problems)
    _check_folders(pod["containers"][0].get("volumeMounts", ()), spec, problems)


def _check_containers(pod: Pod, spec: PodFields, name: str, problems: Problems) -> None:
    """Report two containers of one name."""
    containers: Iterable[Mapping[str, Tree]] = chain(pod.get("initContainers", ()), pod["containers"])
    own = {each["name"] if isinstance(each["name"], str) else name for each in containers}
    for field, given in (("sidecars", spec.sidecars), ("initContainers", spec.init_containers)):
        for each in given:
            path: FieldPath = ("spec", field, each)
            if each in own:
                _taken(problems, "container", each, path)
            elif field == "initContainers" and each in spec.sidecars:
                message = f"`sidecars` has a container `{each}` too"
                problems.error("KG0325", message, path, "choose another name")


def _taken(problems: Problems, what: str, name: str, path: FieldPath) -> None:
    problems.error("KG0325", f"kaigen has a {what} `{name}` of its own in this pod", path, "choose another name")


def _check_mounts_of(block: ExtraContainer, known: list[str], path: FieldPath, problems: Problems) -> None:
    """Report mounts of volumes that the pod does not have, and two volumes in one folder."""
    folders: dict[str, str] = {}
    for volume, mount in block.mounts.items():
        if volume not in known:
            hint = did_you_mean(volume, known) or f"volumes of the pod: {', '.join(known)}"
            problems.error("KG0326", f"the pod has no volume `{volume}`", (*path, volume), hint)
        folder = (mount if isinstance(mount, str) else mount.path).rstrip("/")
        first = folders.setdefault(folder, volume)
        if first != volume:
            _same_folder(problems, folder, volume, first, (*path, volume))


def _same_folder(problems: Problems, folder: str, name: str, first: str, path: FieldPath) -> None:
    message = f"two volumes are mounted at `{folder or '/'}`: {name} and {first}"
    problems.error("KG0314", message, path, "set another folder")


def _check_folders(mounts: Iterable[Mapping[str, Tree]], spec: PodFields, problems: Problems) -> None:
    """Report folders of the main container that another volume has, or that are inside a read-only one."""
    folders = {PurePosixPath(str(mount["mountPath"])): str(mount["name"]) for mount in mounts}
    read_only = {PurePosixPath(str(mount["mountPath"])) for mount in mounts if mount.get("readOnly")}
    for name, volume in spec.volumes.items():
        if volume.mount_path is None:
            continue
        path: FieldPath = ("spec", "volumes", name, "mountPath")
        folder = PurePosixPath(volume.mount_path)
        first = folders.setdefault(folder, name)
        if first != name:
            _same_folder(problems, str(folder), name, first, path)
        for parent in _inside(folder, read_only):
            message = f"`{folder}` is inside the read-only volume at `{parent}`, where no folder can be made"
            problems.error("KG0314", message, path, "set another folder")


def _inside(folder: PurePosixPath, folders: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    return (each for each in folders if each in folder.parents)
