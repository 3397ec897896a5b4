"""Volumes of Models and Datasets as other apps mount them: shared, read-only, after the download is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kaigen.compile.builders import settings
from kaigen.compile.builders.buckets import SIDECAR, driver_of, volume_suffix
from kaigen.compile.builders.found_specs import find_spec
from kaigen.compile.builders.references import other_name
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.builders.volumes import read_only_mount
from kaigen.compile.builders.weights import WAIT_TIMEOUT, marker_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, SpecPath, Tree
from kaigen.compile.model.job_source import as_used
from kaigen.compile.model.served import (
    CONVERTED_SUFFIX,
    conversion,
    served_bucket,
    served_folder,
    served_identity,
    served_root,
    served_volume,
)
from kaigen.compile.problems import Problems
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import Transfer
from kaigen.kinds.model import Dataset, Downloaded, Model


def find_model(
    context: Context,
    namespace: str,
    name: str,
    origin: SpecPath,
    *,
    elsewhere: Callable[[str], str] = lambda _: "",
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


def find_dataset(context: Context, namespace: str, name: str, origin: SpecPath) -> Dataset:
    """Return the Dataset of a name; like `find_model`.

    Raises:
        ProblemError: the namespace has no such Dataset.
    """
    return as_used(find_spec(Dataset, context, namespace, name, origin), namespace, context)


def claim_suffix(model: Downloaded) -> str:
    """Return the end of the name of the claim that stores a Model."""
    convert, bucket = conversion(model.spec), served_bucket(model.spec)
    if bucket is not None:
        return volume_suffix(bucket)
    return CONVERTED_SUFFIX if convert is not None and convert.store is not None else "-weights"


def claim_name(model: Downloaded) -> str:
    """Return the name of the claim that stores a Model."""
    existing = model.spec.source.volume
    return existing.claim_name if existing else model.metadata.name + claim_suffix(model)


def model_claim(path: str, model: Downloaded, origin: SpecPath) -> Expr:
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
    bucket = served_bucket(model.spec)
    return SIDECAR if bucket and driver_of(bucket) == "gcsfuse" else {}


def is_shared(model: Downloaded) -> bool:
    """Return whether pods on several nodes can mount a Model's volume."""
    volume = served_volume(model.spec)
    return volume is None or bool(SHARED & set(volume.access_modes))


def check_sharing(
    model: Downloaded, problems: Problems, *, pods: int, what: str, origin: SpecPath, certain: bool = True
) -> None:
    """Report that pods on several nodes cannot share a Model's volume.

    Args:
        model: the Model.
        problems: collects the error or warning.
        pods: greatest number of pods.
        what: the pods in the message, such as `3 nodes`.
        origin: the spec's field that names the Model.
        certain: whether they are on several nodes for certain.
    """
    volume = served_volume(model.spec)
    if pods > 1 and volume and not is_shared(model):
        name, modes = f"{model.kind} `{model.metadata.name}`", ", ".join(volume.access_modes)
        hint = f"give {name} `accessModes: [ReadWriteMany]`"
        if certain:
            message = f"{what} cannot share {name}, whose volume is {modes}"
            problems.error("KG0309", message, origin, hint)
        else:
            message = f"{what} can share {name}, whose volume is {modes}, on one node only"
            problems.warning("KG0309", message, origin, hint)


def warn_of_pinned_volume(
    model: Downloaded, problems: Problems, *, has_gpu: bool, consumer: str, origin: SpecPath
) -> None:
    """Warn that a volume of one node may bind on a node without the consumer's GPU.

    Such a volume binds on the node of the downloader, and every pod that mounts it must run there.
    """
    if not is_shared(model) and has_gpu and not set_fields(model.spec.placement):
        name = f"{model.kind} `{model.metadata.name}`"
        problems.warning(
            "KG0311",
            f"{name} is stored in a volume of one node, and its downloader may run on a node without a GPU",
            origin,
            f"give {name} the same `placement` as this {consumer}, or a ReadWriteMany volume",
        )


def weights_mount(model: Downloaded, *, volume: str, folder: str) -> dict[str, Tree]:
    """Return the read-only mount of a Model's weights: the folder of its revision, or its folder, in the volume.

    Args:
        model: the Model.
        volume: name of the volume in the pod.
        folder: mount path.
    """
    existing = model.spec.source.volume
    path = existing.path if existing else served_folder(model.spec)
    return read_only_mount(volume, folder, path)


def gates(
    model: Downloaded,
    context: Context,
    *,
    name: str,
    volume: str,
    folder: str,
    transfer: Transfer | None = None,
) -> list[dict[str, Tree]]:
    """Return the init container that waits until a Model's weights are complete; none for an existing volume.

    Nothing marks weights that kaigen did not download as complete. The container mounts the whole volume: the folder of
    the revision does not exist before the download, and the kubelet would create it as root.

    Args:
        model: the Model.
        context: has the image of the downloader.
        name: name of the container.
        volume: name of the volume in the pod.
        folder: mount path.
        transfer: settings of the downloader, where this app has an image of its own for it.
    """
    if model.spec.source.volume:
        return []
    root = served_root(model.spec)
    return [
        marker_container(
            "wait",
            context,
            name=name,
            folder=f"{folder}/{root}" if root else folder,
            expected=served_identity(model.spec),
            mounts=[read_only_mount(volume, folder, None)],
            arguments=(f"--timeout={WAIT_TIMEOUT}",),
            transfer=transfer,
        )
    ]
