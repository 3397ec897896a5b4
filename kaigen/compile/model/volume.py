"""Volumes of Models and Datasets as other apps mount them: shared, read-only, after the download is complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.buckets import SIDECAR, bucket_volume, check_grant, driver_of, volume_suffix
from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers, mount_claim, read_only_mount
from kaigen.compile.builders.other_apps import find_spec, other_name
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.builders.weights import WAIT_TIMEOUT, marker_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Release, Tree
from kaigen.compile.model.job_source import as_used
from kaigen.compile.model.mounted import (
    CONVERTED_SUFFIX,
    conversion,
    mounted_bucket,
    mounted_folder,
    mounted_identity,
    mounted_root,
    mounted_volume,
)
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import set_fields
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.model import Downloaded, Model
from kaigen.kubernetes.quantities import units

M = TypeVar("M", bound=Downloaded)

PINNED_VOLUME = "KG0311"
"""Code of the warning of a volume that may bind on the wrong node."""

WEIGHTS_SUFFIX = "-weights"
"""End of the name of the claim that stores a Model."""

FORM = "model: {{name: {name}, namespace: {namespace}}}"
"""How the field `model` of a spec names a Model of another namespace."""


def find_used(kind: type[M], name: str, namespace: str | None, origin: FieldPath, readers: Readers, form: str) -> M:
    """Return the Model or Dataset that an app reads, by default one of its own namespace.

    Args:
        kind: `Model` or `Dataset`.
        name: its name.
        namespace: its namespace; None for that of the app.
        origin: the spec's field that names it.
        readers: the pods.
        form: how the spec names one of another namespace, with `{name}` and `{namespace}`, for the hint; empty if
            it cannot.

    Raises:
        ProblemError: the namespace has no such spec.
    """

    def elsewhere(place: str) -> str:
        found = readers.context.specs.find(kind, place, name)
        what = "weights" if kind.__name__ == "Model" else "files"
        way = f"its {what} are in a bucket: set `{form.format(name=name, namespace=place)}`"
        return way * (form != "" and found is not None and mounted_bucket(found.spec) is not None)

    place = namespace or readers.namespace
    found = find_spec(kind, readers.context, place, name, origin, elsewhere=elsewhere)
    return as_used(found, place, readers.context)


def claim_suffix(model: Downloaded) -> str:
    """Return the end of the name of the claim that stores a Model."""
    convert, bucket = conversion(model.spec), mounted_bucket(model.spec)
    if bucket is not None:
        return volume_suffix(bucket)
    return CONVERTED_SUFFIX if convert is not None and convert.store is not None else WEIGHTS_SUFFIX


def claim_name(model: Downloaded) -> str:
    """Return the name of the claim that stores a Model."""
    existing = model.spec.source.volume
    return existing.claim_name if existing else model.metadata.name + claim_suffix(model)


def _claim(path: str, model: Downloaded, origin: FieldPath) -> Expr:
    """Return the name of the claim that stores a Model, for another app.

    Args:
        path: path of the setting.
        model: the Model.
        origin: the spec's field that names the Model.
    """
    what = f"PersistentVolumeClaim with the {'weights' if isinstance(model, Model) else 'files'}"
    if model.spec.source.volume:
        return settings.text(path, claim_name(model), f"{what}.", origin=origin)
    return other_name(path, what, model.metadata.name, claim_name(model), origin=origin)


def mount_annotations(model: Downloaded) -> Mapping[str, str]:
    """Return the annotations that pods need to mount a Model's volume."""
    bucket = mounted_bucket(model.spec)
    return SIDECAR if bucket and driver_of(bucket) == "gcsfuse" else {}


def is_shared(model: Downloaded) -> bool:
    """Return whether pods on several nodes can mount a Model's volume."""
    volume = mounted_volume(model.spec)
    return volume is None or bool(SHARED & set(volume.access_modes))


def _check_sharing(model: Downloaded, readers: Readers, origin: FieldPath, problems: Problems) -> None:
    """Report that pods on several nodes cannot share a Model's volume."""
    volume = mounted_volume(model.spec)
    if readers.pods > 1 and volume and not is_shared(model):
        pods, modes = f"{readers.pods} {readers.noun}", ", ".join(volume.access_modes)
        name = f"{model.kind} `{model.metadata.name}`"
        hint = f"give {name} `accessModes: [ReadWriteMany]`"
        if readers.spread:
            message = f"{pods} cannot share {name}, whose volume is {modes}"
            problems.error("KG0309", message, origin, hint)
        else:
            message = f"{pods} can share {name}, whose volume is {modes}, on one node only"
            problems.warning("KG0309", message, origin, hint)


def _warn_of_pinned_volume(model: Downloaded, readers: Readers, origin: FieldPath, problems: Problems) -> None:
    """Warn that a volume of one node may bind on a node without the GPU of the pods.

    Such a volume binds on the node of the downloader, and every pod that mounts it must run there.
    """
    if not is_shared(model) and readers.has_gpu and not set_fields(model.spec.placement):
        name = f"{model.kind} `{model.metadata.name}`"
        problems.warning(
            PINNED_VOLUME,
            f"{name} is stored in a volume of one node, and its downloader may run on a node without a GPU",
            origin,
            f"give {name} the same `placement` as this {readers.kind}, or a ReadWriteMany volume",
        )


def mount_model(
    model: Downloaded,
    point: MountPoint,
    readers: Readers,
    origin: FieldPath,
    problems: Problems,
    namespace: str | None = None,
) -> Mounted:
    """Return the mount of a Model's or Dataset's files: the folder of its revision, or its folder, in the volume.

    The bucket of a Model of another namespace is mounted with a volume of the app.

    Args:
        model: the Model.
        point: where they are mounted.
        readers: the pods.
        origin: the spec's field that names the Model, next to which `namespace` is.
        problems: collects what prevents pods from mounting its volume together, or on nodes with GPUs.
        namespace: namespace of the Model; None for that of the pods.

    Raises:
        ProblemError: the Model is in a volume of another namespace.
    """
    claim, objects = _claim(f"{point.settings}claimName", model, origin), list[Object]()
    if namespace not in (None, readers.namespace):
        at: FieldPath = (*origin[:-1], "namespace")
        bucket = _bucket_elsewhere(model, str(namespace), readers.namespace, at)
        check_grant(bucket, readers.namespace, readers.context.config.allow, at, problems)
        claim, objects = Release(volume_suffix(bucket)), bucket_volume(readers.frame, bucket, point.role, fills=False)
    _check_sharing(model, readers, origin, problems)
    _warn_of_pinned_volume(model, readers, origin, problems)
    existing, volume = model.spec.source.volume, model.spec.store.volume
    is_stored = existing is None and model.spec.source.empty is None
    path = mounted_folder(model.spec) if is_stored else existing.path if existing is not None else None
    return replace(
        mount_claim(claim, point, path),
        objects=objects,
        init=[_gate(model, point, readers.context)] if is_stored else [],
        annotations=mount_annotations(model),
        room=(units(volume.size) or 0) if volume else None,
        pinned=not is_shared(model),
    )


def _bucket_elsewhere(model: Downloaded, namespace: str, own: str, at: FieldPath) -> Bucket:
    """Return the bucket with the files of a Model of another namespace.

    Raises:
        ProblemError: they are in a volume.
    """
    bucket, kind = mounted_bucket(model.spec), model.kind
    if bucket is None:
        raise ProblemError(
            "KG0389",
            f"{kind} `{model.metadata.name}` of namespace `{namespace}` is stored in a volume, and a pod can mount "
            "volumes of its own namespace only",
            at,
            f"store it in a bucket, or write a {kind} in namespace `{own}`",
        )
    return bucket


def _gate(model: Downloaded, point: MountPoint, context: Context) -> dict[str, Tree]:
    """Return the init container that waits until a Model's weights are complete.

    It mounts the whole volume: the folder of the revision does not exist before the download, and the kubelet would
    create it as root. Nothing marks weights that kaigen did not download, so those of an existing volume have no gate.
    """
    root = mounted_root(model.spec)
    return marker_container(
        "wait",
        context,
        name=point.gate,
        folder=f"{point.folder}/{root}" if root else point.folder,
        expected=mounted_identity(model.spec),
        mounts=[read_only_mount(point.volume, point.folder, None)],
        arguments=(f"--timeout={WAIT_TIMEOUT}",),
        transfer=point.transfer,
    )
