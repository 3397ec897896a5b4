"""The CSI drivers that mount buckets, and the bucket that a volume of theirs mounts."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.value_paths import values_at

_BUCKET_NAME = ("volumeAttributes", "bucketName")


class BucketDriver(Struct, frozen=True):
    """Where a volume names the bucket that a CSI driver mounts.

    Attributes:
        driver: name of the CSI driver.
        scheme: of the URI of its buckets.
        path: steps from the `csi` of a PersistentVolume to the name of the bucket; a folder may follow a slash.
        inline: the same steps from the `csi` of a pod's volume.
        option: beginning of the mount option with the folder; empty for none.
        word: a pattern of RE2 and Python for what is in every spelling of that option.
        marked: whether the driver ignores what follows a colon, with which one bucket is several volumes.
        own: whether kaigen's kinds use the driver.
    """

    driver: str
    scheme: str
    path: tuple[str, ...]
    inline: tuple[str, ...]
    option: str = ""
    word: str = ""
    marked: bool = False
    own: bool = True


_PREFIX = ("prefix ", "[pP][rR][eE][fF][iI][xX]")
_FOLDER = ("only-dir=", "[oO][nN][lL][yY].?[dD][iI][rR]")

BUCKET_DRIVERS = (
    BucketDriver("ru.yandex.s3.csi", "s3", ("volumeHandle",), ("volumeHandle",)),
    BucketDriver("s3.csi.aws.com", "s3", _BUCKET_NAME, _BUCKET_NAME, *_PREFIX),
    BucketDriver("gcsfuse.csi.storage.gke.io", "gs", ("volumeHandle",), _BUCKET_NAME, *_FOLDER, marked=True),
    BucketDriver("s3.csi.scality.com", "s3", _BUCKET_NAME, _BUCKET_NAME, *_PREFIX, own=False),
    BucketDriver("ch.ctrox.csi.s3-driver", "s3", ("volumeHandle",), ("volumeHandle",), own=False),
)
"""The drivers that mount buckets.

Sources: k8s-csi-s3 0.43, `volumeIDToBucketPrefix`, and GeeseFS, which is called with `BUCKET:FOLDER`. The driver of
Mountpoint for S3 2, `mountpoint.ParseArgs`: `prefix x`, `--prefix x`, `prefix=x`, `--prefix=x`; Scality's is a copy.
The Cloud Storage FUSE CSI driver 1.17, `parseVolumeID`, and `parseVolumeAttributes`, which joins the mount options of a
PersistentVolume and its attribute `mountOptions`; `only-dir=x`, and `only-dir:x` as in a configuration file.
"""

MARK = r"[^:]*:[A-Za-z0-9._-]*"
"""The whole of a name that a colon and a mark end, as a pattern of RE2 and Python."""

INLINE_OPTIONS = ("csi", "volumeAttributes", "mountOptions")
"""The attribute with mount options and commas, of pods' volumes and PersistentVolumes (source: Cloud Storage FUSE)."""

S3_OPTIONS = "--memory-limit=1000 --dir-mode=0555 --file-mode=0444"
"""What kaigen sets as the attribute `options` of ru.yandex.s3.csi."""

ATTRIBUTES = ("authenticationSource", "bucketName", "mountOptions", "mounter", "options")
"""Attributes that name the bucket and whose credentials the driver uses, and those with options."""

OPTIONS = ("allow-other", "force-path-style", "implicit-dirs", "only-dir=*", "prefix *", "read-only", "region *")
"""Globs of the mount options that kaigen sets itself, and that reach nothing but the bucket."""


def location(spec: Object, *, inline: bool = False) -> str:
    """Return the URI of the bucket and folder that a volume mounts; empty where the driver is not known.

    A volume with several folders, or with its folder in another spelling of the option, has a URI that is not
    well-formed.

    Args:
        spec: of a PersistentVolume, or the volume of a pod.
        inline: whether it is the volume of a pod.
    """
    csi = mapping(spec.get("csi"))
    row = next((row for row in BUCKET_DRIVERS if row.driver == csi.get("driver")), None)
    if row is None:
        return ""
    name = next((str(value) for _, value in values_at(csi, row.inline if inline else row.path)), "")
    if row.marked and not inline and re.fullmatch(MARK, name):
        name = name.partition(":")[0]
    folders = [
        str(option).removeprefix(row.option)
        for option in mount_options(spec, inline=inline)
        if row.word and re.search(row.word, str(option))
    ]
    return f"{row.scheme}://{name}" + (f"/{' '.join(folders)}" if row.word else "")


def mount_options(spec: Object, *, inline: bool) -> list[object]:
    """Return the mount options of a PersistentVolume's `spec`, or of the volume of a pod, with those in attributes."""
    options = [] if inline else spec.get("mountOptions")
    attributes = [part for _, value in values_at(spec, INLINE_OPTIONS) for part in str(value).split(",")]
    return [*(options if isinstance(options, list) else []), *attributes]
