"""Volumes that an app makes."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import KEEP, Frame
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, SpecPath
from kaigen.kinds.blocks import Volume

_MODES = {
    "type": "array",
    "minItems": 1,
    "items": {"enum": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]},
}


def claim(
    frame: Frame,
    context: Context,
    volume: Volume,
    *,
    what: str,
    suffix: str,
    retain: bool,
    origin: SpecPath,
    role: str,
    wave: int,
) -> Object:
    """A PersistentVolumeClaim.

    It stands in the wave of the first pod that mounts it: most storage classes bind a claim when such a pod is
    scheduled, and Argo CD begins no wave before the claims of those before it are bound.

    Args:
        frame: the app.
        context: whose profile names the class when the volume does not.
        volume: what is asked for.
        what: prefix of the settings' paths, and the component.
        suffix: ending of the claim's name.
        retain: keep it when the app goes.
        origin: where the volume stands in the spec.
        role: the object's role.
        wave: the wave of the first pod that mounts it.
    """
    storage_class = volume.storage_class_name
    if storage_class is None:
        storage_class = context.profile.storage_class
    return Object(
        role=role,
        wave=wave,
        body={
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": frame.metadata(suffix, what, wave=wave, annotations=KEEP if retain else None),
            "spec": {
                "accessModes": Setting(
                    f"{what}.accessModes",
                    list(volume.access_modes),
                    "Access modes of the volume. Kubernetes does not let them change in place.",
                    _MODES,
                    origin=(*origin, "accessModes"),
                ),
                "storageClassName": settings.text(
                    f"{what}.storageClassName",
                    storage_class,
                    "StorageClass of the volume; empty for the cluster's default. Cannot change in place.",
                    optional=True,
                    origin=(*origin, "storageClassName"),
                ),
                "resources": {
                    "requests": {
                        "storage": settings.quantity(
                            f"{what}.size",
                            volume.size,
                            "Size of the volume. It may grow, not shrink.",
                            origin=(*origin, "size"),
                        )
                    }
                },
            },
        },
    )
