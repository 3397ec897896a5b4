"""What containers of an app wait for: completion markers, which others write, and Jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kaigen.compile.builders.buckets import destination_of
from kaigen.compile.builders.frame import LOCATION, READS
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.pods import containers, pod_templates


class Marker(NamedTuple):
    """A completion marker that a container waits for or writes.

    Attributes:
        location: the claim that stores it, or the folder of a bucket, `s3://…`.
        identity: the content of the marker.
    """

    location: str
    identity: str


def filled_buckets(objects: Iterable[Object]) -> Mapping[str, str]:
    """Return the claims on bucket volumes that kaigen made, by the folder that the downloader writes to."""
    return {folder: claim for claim, folder in _folders(objects, LOCATION)}


def read_buckets(objects: Iterable[Object]) -> Mapping[str, str]:
    """Return the folders that apps of other namespaces fill, by the claim of the app that reads them."""
    return dict(_folders(objects, READS))


def _folders(objects: Iterable[Object], annotation: str) -> Iterator[tuple[str, str]]:
    for obj in objects:
        metadata = mapping(obj.get("metadata"))
        location = mapping(metadata.get("annotations")).get(annotation)
        claim = mapping(mapping(obj.get("spec")).get("claimRef")).get("name")
        if isinstance(location, str) and isinstance(claim, str):
            yield claim, destination_of(location)


def markers(obj: Object, command: str) -> Iterator[Marker]:
    """Yield the completion markers of the containers of an object.

    Args:
        obj: the object.
        command: the downloader's command, as `kaigen.compile.builders.weights` writes it: `fetch` and `put` write a
            marker, and `wait` waits for it.
    """
    for template in pod_templates(obj):
        claims = {
            volume.get("name"): mapping(volume.get("persistentVolumeClaim")).get("claimName")
            for _, volume in entries(template.spec.get("volumes"))
        }
        for container in containers(template):
            arguments = container.body.get("args")
            if not isinstance(arguments, list) or not arguments or arguments[0] != command:
                continue
            identity, folder = (_option(arguments, name) for name in ("--identity=", "--dest="))
            claim = next(
                (
                    claims.get(mount.get("name"))
                    for _, mount in entries(container.body.get("volumeMounts"))
                    if _contains(mount.get("mountPath"), folder)
                ),
                None,
            )
            # The volume of a bucket shows the folder above the revisions.
            location = folder.removesuffix(f"/{identity}") if folder.startswith("s3://") else claim
            if identity and isinstance(location, str):
                yield Marker(location, identity)


class AwaitedJob(NamedTuple):
    """A Job or JobSet that a container waits for, in its own namespace.

    Attributes:
        kind: its kind.
        name: its name.
    """

    kind: str
    name: str


def awaited_jobs(obj: Object) -> Iterator[AwaitedJob]:
    """Yield the Jobs that the containers of an object wait for, as `kaigen.compile.builders.job_gate` writes them."""
    for template in pod_templates(obj):
        for container in containers(template):
            arguments = container.body.get("args")
            if isinstance(arguments, list) and arguments[:1] == ["wait-job"]:
                yield AwaitedJob(_option(arguments, "--kind="), _option(arguments, "--name="))


def _option(arguments: list[object], name: str) -> str:
    found = (text for text in arguments if isinstance(text, str) and text.startswith(name))
    return next(found, "").removeprefix(name)


def _contains(mount: object, folder: str) -> bool:
    return isinstance(mount, str) and f"{folder}/".startswith(f"{mount.rstrip('/')}/")
