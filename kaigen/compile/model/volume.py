"""Volumes of Models, as others mount them: shared, read-only, behind a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.builders.buckets import SIDECAR, driver_of, volume_suffix
from kaigen.compile.builders.weights import WAIT_TIMEOUT, identity, marker_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.model import Model

SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes of volumes that pods on several nodes can mount."""


def find_model(context: Context, namespace: str, name: str, origin: SpecPath) -> Model:
    """The Model of that name.

    Args:
        context: with the specs of the run.
        namespace: the asking spec's.
        name: of the Model.
        origin: where it is named.

    Raises:
        ProblemError: when there is none in the namespace.
    """
    specs = context.specs
    model = specs.get("Model", namespace, name)
    if isinstance(model, Model):
        return model
    elsewhere = [place for place in specs.namespaces("Model", name) if place != namespace]
    if elsewhere:
        places = " and ".join(f"`{place}`" for place in elsewhere)
        hint = f"it is in namespace {places}, and a pod can mount volumes of its own namespace only"
        message = f"no Model `{name}` in namespace `{namespace}`"
        raise ProblemError("KG0301", message, origin, hint)
    where = f" in namespace `{namespace}`"
    raise ProblemError.unknown("KG0301", "Model", name, specs.names("Model", namespace), origin, where=where)


def claim_suffix(model: Model) -> str:
    """Ending of the name of the claim that a Model rests in."""
    bucket = model.spec.store.bucket
    return volume_suffix(bucket) if bucket else "-weights"


def claim_name(model: Model) -> str:
    """Name of the claim that a Model rests in."""
    return model.metadata.name + claim_suffix(model)


def mount_annotations(model: Model) -> Mapping[str, str]:
    """Annotations that pods need to mount a Model's volume."""
    bucket = model.spec.store.bucket
    return SIDECAR if bucket and driver_of(bucket) == "gcsfuse" else {}


def is_shared(model: Model) -> bool:
    """Whether pods on several nodes can mount a Model's volume."""
    volume = model.spec.store.volume
    return volume is None or bool(SHARED & set(volume.access_modes))


def check_sharing(
    model: Model, problems: Problems, *, pods: int, what: str, origin: SpecPath, certain: bool = True
) -> None:
    """Tell when pods on several nodes cannot share a Model's volume.

    Args:
        model: the Model.
        problems: takes what is wrong.
        pods: how many there may be.
        what: stands for them in the message: `3 nodes`.
        origin: where the Model is named.
        certain: they are on several nodes; else they may be.
    """
    volume = model.spec.store.volume
    if pods > 1 and volume and not is_shared(model):
        name, modes = model.metadata.name, ", ".join(volume.access_modes)
        hint = f"give Model `{name}` `accessModes: [ReadWriteMany]`"
        if certain:
            message = f"{what} cannot share Model `{name}`, whose volume is {modes}"
            problems.error("KG0309", message, origin, hint)
        else:
            message = f"{what} can share Model `{name}`, whose volume is {modes}, on one node only"
            problems.warning("KG0309", message, origin, hint)


def warn_of_pinned_volume(
    model: Model, problems: Problems, *, has_gpu: bool, consumer: str, origin: SpecPath
) -> None:
    """Tell when a volume of one node may bind where the consumer's GPU is not.

    Such a volume binds where the downloader happens to run, and whoever mounts it must follow it there.
    """
    if not is_shared(model) and has_gpu and not model.spec.placement.model_fields_set:
        name = model.metadata.name
        problems.warning(
            "KG0311",
            f"Model `{name}` rests in a volume of one node, and its downloader may run on a node without a GPU",
            origin,
            f"give Model `{name}` the same `placement` as this {consumer}, or a ReadWriteMany volume",
        )


def gate(
    model: Model, context: Context, *, name: str, folder: str, mounts: Sequence[Tree]
) -> dict[str, Tree]:
    """The init container that waits until a Model's weights are complete."""
    return marker_container(
        "wait",
        context,
        name=name,
        folder=folder,
        expected=identity(model.spec.source),
        mounts=list(mounts),
        arguments=(f"--timeout={WAIT_TIMEOUT}",),
    )
