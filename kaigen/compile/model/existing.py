"""Models whose weights are in a volume already, or will be: nothing is downloaded, and other apps mount the volume."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.ignored_fields import ignored_fields, report_ignored_field
from kaigen.compile.problems import Problems
from kaigen.kinds.model import DownloadSpec
from kaigen.kinds.serving import ExistingVolume

_UNDERSTOOD = frozenset({"source", "facts"})
"""Fields that such a Model uses; all others are about a download."""

_UNDERSTOOD_EMPTY = _UNDERSTOOD | {"store.volume", "store.bucket"}


def record(frame: Frame, volume: ExistingVolume) -> Object:
    """Return the ConfigMap that says where the weights are: an app has at least one object."""
    claim = settings.text(
        "storage.claimName",
        volume.claim_name,
        "PersistentVolumeClaim with the weights, for readers of this ConfigMap.",
        origin=("spec", "source", "volume", "claimName"),
    )
    return Object(
        role="configmap",
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": frame.metadata("-weights", "model"),
            "data": {"claimName": claim, "path": volume.path or "."},
        },
    )


def check_existing(spec: DownloadSpec, problems: Problems) -> None:
    """Report fields of a Model that downloads nothing which would have no effect."""
    is_empty = spec.source.empty is not None
    where = "on a place for files" if is_empty else "on weights that are in a volume already"
    for name, path in ignored_fields(spec, _UNDERSTOOD_EMPTY if is_empty else _UNDERSTOOD):
        report_ignored_field(problems, name, path, f"{where}: nothing is downloaded", "leave it out")
    if spec.source.signature:
        problems.error(
            "KG0396",
            f"nothing is downloaded {'to a place for files' if is_empty else 'from a volume'}, so its signature is not "
            "verified",
            ("spec", "source", "signature"),
            "delete `signature`, or download the files from where they are signed",
        )
