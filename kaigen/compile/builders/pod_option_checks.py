"""Checks of what a spec adds to the pods that kaigen builds: names and folders that kaigen uses itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath

from kaigen.compile.builders.pod_options import Pod, adds_to_pods
from kaigen.compile.builders.volumes import check_image_volumes
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.containers import ExtraContainer
from kaigen.kinds.pod import PodFields


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
