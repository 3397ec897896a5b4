"""Models whose weights are in a volume already: nothing is downloaded, and other apps mount the volume."""

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
    """Report fields of a Model in an existing volume that would have no effect."""
    where = "on weights that are in a volume already: nothing is downloaded"
    for name, path in ignored_fields(spec, _UNDERSTOOD):
        report_ignored_field(problems, name, path, where, "leave it out")
