"""Volumes of Models and Datasets as other apps mount them: shared, read-only, after the download is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kaigen.compile.builders import settings
from kaigen.compile.builders.buckets import SIDECAR, driver_of, volume_suffix
from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers, mount_claim, read_only_mount
from kaigen.compile.builders.other_apps import find_spec, other_name
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.builders.weights import WAIT_TIMEOUT, marker_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Tree
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
from kaigen.kinds.block import set_fields
from kaigen.kinds.model import Dataset, Downloaded, Model
from kaigen.kubernetes.quantities import units


def find_model(
    context: Context, namespace: str, name: str, origin: FieldPath, *, elsewhere: Callable[[str], str] = lambda _: ""
) -> Model:
    """Return the Model of a name.

    Args:
        context: contains the specs of the run.
        namespace: its namespace.
        name: name of the Model.
        origin: the spec's field that names it.
        elsewhere: returns what to do if another namespace has it; empty if nothing can be done.

    Raises:
        ProblemError: the namespace has no such Model.
    """
    found = find_spec(Model, context, namespace, name, origin, elsewhere=elsewhere)
    return as_used(found, namespace, context)


def find_dataset(context: Context, namespace: str, name: str, origin: FieldPath) -> Dataset:
    """Return the Dataset of a name; like `find_model`.

    Raises:
        ProblemError: the namespace has no such Dataset.
    """
    return as_used(find_spec(Dataset, context, namespace, name, origin), namespace, context)


def claim_suffix(model: Downloaded) -> str:
    """Return the end of the name of the claim that stores a Model."""
    convert, bucket = conversion(model.spec), mounted_bucket(model.spec)
    if bucket is not None:
        return volume_suffix(bucket)
    return CONVERTED_SUFFIX if convert is not None and convert.store is not None else "-weights"


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
            "KG0311",
            f"{name} is stored in a volume of one node, and its downloader may run on a node without a GPU",
            origin,
            f"give {name} the same `placement` as this {readers.kind}, or a ReadWriteMany volume",
        )


def mount_model(
    model: Downloaded, point: MountPoint, readers: Readers, origin: FieldPath, problems: Problems
) -> Mounted:
    """Return the mount of a Model's or Dataset's files: the folder of its revision, or its folder, in the volume.

    Args:
        model: the Model.
        point: where they are mounted.
        readers: the pods.
        origin: the spec's field that names the Model.
        problems: collects what prevents pods from mounting its volume together, or on nodes with GPUs.
    """
    _check_sharing(model, readers, origin, problems)
    _warn_of_pinned_volume(model, readers, origin, problems)
    existing, volume = model.spec.source.volume, model.spec.store.volume
    return replace(
        mount_claim(
            _claim(f"{point.settings}claimName", model, origin),
            point,
            existing.path if existing else mounted_folder(model.spec),
        ),
        init=[] if existing else [_gate(model, point, readers.context)],
        annotations=mount_annotations(model),
        room=(units(volume.size) or 0) if volume else None,
        pinned=not is_shared(model),
    )


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
