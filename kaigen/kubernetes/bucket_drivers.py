"""The CSI drivers that mount buckets, and the bucket that a volume of theirs mounts."""

from __future__ import annotations

from typing import NamedTuple

from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.value_paths import values_at

_BUCKET_NAME = ("volumeAttributes", "bucketName")


class BucketDriver(NamedTuple):
    """Where a volume names the bucket that a CSI driver mounts.

    Attributes:
        driver: name of the CSI driver.
        scheme: of the URI of its buckets.
        path: steps from the `csi` of a PersistentVolume to the name of the bucket, which a colon ends; a folder may
            follow a slash.
        inline: the same steps from the `csi` of a pod's volume.
        option: beginning of the mount option with the folder; empty for none.
        word: a word in every spelling of that option.
    """

    driver: str
    scheme: str
    path: tuple[str, ...]
    inline: tuple[str, ...]
    option: str = ""
    word: str = ""


BUCKET_DRIVERS = (
    BucketDriver("ru.yandex.s3.csi", "s3", ("volumeHandle",), ("volumeHandle",)),
    BucketDriver("s3.csi.aws.com", "s3", _BUCKET_NAME, _BUCKET_NAME, "prefix ", "prefix"),
    BucketDriver(
        "gcsfuse.csi.storage.gke.io", "gs", ("volumeHandle",), _BUCKET_NAME, "only-dir=", "only-dir"
    ),
)
"""The drivers that mount buckets (sources: k8s-csi-s3, Mountpoint for S3, Cloud Storage FUSE)."""

INLINE_OPTIONS = ("csi", "volumeAttributes", "mountOptions")
"""The mount options of a pod's volume, with commas (source: Cloud Storage FUSE)."""

S3_OPTIONS = "--memory-limit=1000 --dir-mode=0555 --file-mode=0444"
"""What kaigen sets as the attribute `options` of ru.yandex.s3.csi."""

ATTRIBUTES = ("authenticationSource", "bucketName", "mountOptions", "mounter", "options")
"""Attributes that name the bucket and whose credentials the driver uses, and those with options."""

OPTIONS = (
    "allow-other",
    "force-path-style",
    "implicit-dirs",
    "only-dir=*",
    "prefix *",
    "read-only",
    "region *",
)
"""Globs of the mount options that kaigen sets itself, and that reach nothing but the bucket."""


def location(spec: Object, *, inline: bool = False) -> str:
    """Return the bucket that a volume mounts, with a slash at its end; empty where the driver is not known.

    Args:
        spec: of a PersistentVolume, or the volume of a pod.
        inline: whether it is the volume of a pod.
    """
    csi = mapping(spec.get("csi"))
    row = next((row for row in BUCKET_DRIVERS if row.driver == csi.get("driver")), None)
    if row is None:
        return ""
    name = next(
        (str(value) for _, value in values_at(csi, row.inline if inline else row.path)), ""
    ).partition(":")[0]
    folders = [
        option.replace(row.option, "")
        for option in mount_options(spec, inline=inline)
        if row.word and isinstance(option, str) and row.word in option
    ]
    return f"{row.scheme}://{name}/{' '.join(folders)}"


def mount_options(spec: Object, *, inline: bool) -> list[object]:
    """Return the mount options of a PersistentVolume's `spec`, or of the volume of a pod."""
    if inline:
        return [part for _, value in values_at(spec, INLINE_OPTIONS) for part in str(value).split(",")]
    options = spec.get("mountOptions")
    return list(options) if isinstance(options, list) else []
