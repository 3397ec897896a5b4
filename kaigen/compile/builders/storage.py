"""Volume claims of an app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.catalog.profiles import profile_of_class
from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import KEEP, Frame
from kaigen.compile.context import Context
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.kinds.blocks import Volume
from kaigen.kubernetes.quantities import units
from kaigen.sizing.constants import GIB, room_for

if TYPE_CHECKING:
    from kaigen.compile.known_model import KnownModel

SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
"""Access modes of volumes that pods on several nodes can mount."""

_MODES = {
    "type": "array",
    "minItems": 1,
    "items": {"enum": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]},
}


def check_access_modes(volume: Volume, context: Context, origin: FieldPath, problems: Problems) -> None:
    """Report access modes that the storage class of a volume cannot have: its claim would stay Pending.

    Args:
        volume: the spec's block.
        context: its profile has the storage classes of such clusters.
        origin: the spec's field of the volume.
        problems: collects what is wrong.
    """
    profile = context.profile
    named = volume.storage_class_name
    storage_class = profile.storage_class if named is None else named
    check_storage_class(named, context, (*origin, "storageClassName"), problems)
    possible = profile.access_modes.get(storage_class)
    for mode in volume.access_modes:
        if possible is not None and mode not in possible:
            problems.error(
                "KG0319",
                f"the storage class `{storage_class}` of profile `{profile.name}` has no volumes with the access "
                f"mode {mode}",
                (*origin, "accessModes"),
                f"set `storageClassName` to {profile.shared_volumes}",
            )
            return


def check_storage_class(name: str | None, context: Context, path: FieldPath, problems: Problems) -> None:
    """Warn of a storage class that another kind of cluster has, and no cluster of this profile that is known.

    Args:
        name: of the class; None for the profile's.
        context: its settings name the classes of the environment.
        path: the spec's field of the name.
        problems: collects what is wrong.
    """
    profile = context.profile
    known = profile.storage_classes | set(context.config.storage_classes.values())
    other = profile_of_class(name) if name and profile.storage_classes and name not in known else None
    if other is None:
        return
    classes = series([f"`{each}`" for each in sorted(profile.storage_classes)], "or")
    problems.warning(
        "KG0451",
        f"`{name}` is a storage class of `{other.name}`; clusters of profile `{profile.name}` have none of this name",
        path,
        f"use {classes}, or a name of `storageClasses` in kaigen.yaml, which has the class of each environment",
    )


def check_room(size: str, model: KnownModel, path: FieldPath, problems: Problems) -> None:
    """Report a volume that is smaller than the weights of a model.

    Args:
        size: size of the volume.
        model: the model.
        path: the spec's field of the size.
        problems: collects what is wrong.
    """
    room = units(size)
    weights = model.facts.weights
    if room is None or room >= weights * GIB:
        return
    problems.error(
        "KG0320",
        f"{size} is smaller than the weights of `{model.name}`, which have {weights:.1f} GiB",
        path,
        f"set `{room_for(weights)}` or more",
    )


def claim(
    frame: Frame,
    context: Context,
    volume: Volume,
    *,
    what: str,
    name: Release,
    retain: bool,
    origin: FieldPath,
    role: str,
    wave: int,
) -> Object:
    """Return a PersistentVolumeClaim.

    Its wave is that of the first pod that mounts it: most storage classes bind a claim when such a pod is scheduled,
    and Argo CD starts a wave only when all claims of earlier waves are bound.

    Args:
        frame: the app.
        context: its profile has the storage class for volumes without one.
        volume: the spec's block.
        what: prefix of the settings' paths, and the component label.
        name: name of the claim.
        retain: whether it outlives the app.
        origin: the spec's field of the volume.
        role: the object's role.
        wave: the wave of the first pod that mounts it.
    """
    return Object(
        role=role,
        wave=wave,
        body={
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": frame.metadata("", what, wave=wave, annotations=KEEP if retain else None, name=name),
            "spec": claim_spec(context, volume, what, origin),
        },
    )


def claim_spec(context: Context, volume: Volume, what: str, origin: FieldPath) -> dict[str, Tree]:
    """Return the spec of a PersistentVolumeClaim.

    Args:
        context: its profile has the storage class for volumes without one.
        volume: the spec's block.
        what: prefix of the settings' paths.
        origin: the spec's field of the volume.
    """
    return {
        "accessModes": Setting(
            f"{what}.accessModes",
            list(volume.access_modes),
            "Access modes of the volume. Cannot be changed in place.",
            _MODES,
            origin=(*origin, "accessModes"),
        ),
        "storageClassName": settings.storage_class(
            f"{what}.storageClassName", volume.storage_class_name, context, "the volume", origin=origin
        ),
        "resources": {
            "requests": {
                "storage": settings.quantity(
                    f"{what}.size",
                    volume.size,
                    "Size of the volume. It can be increased, not decreased.",
                    origin=(*origin, "size"),
                )
            }
        },
    }
