"""URIs of buckets and of folders in them, and the CSI drivers that mount buckets.

One pattern decides for the specs, for what kaigen.yaml allows and grants, and for the admission policies. A path with
an empty part, `.`, `..` or another character than these belongs to no folder, because clients read it differently:
aws-sdk-go 1 and gcsfuse remove `..` from paths, and others decode `%2e`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.kubernetes.manifest import Object, mapping, values_at
from kaigen.regex.pattern import matches


def _any_case(text: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else re.escape(each) for each in text)


_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("s3", "s3a", "s3n", "gs", "gcs"),
    ("abfs", "abfss"),
    ("wasb", "wasbs"),
    ("az",),
    ("adl",),
    ("http", "https"),
)
"""Schemes that name the same bucket. The downloader uses the S3 protocol for Google's buckets, too."""

SCHEMES = tuple(scheme for family in _FAMILIES for scheme in family)
"""Schemes of the URIs of buckets."""

_NAME = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
_PATH = r"(/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*/?"
_AUTHORITY = r"[A-Za-z0-9][A-Za-z0-9._@-]*"
_QUERY = r"([?#][\s\S]*)?"

CONTAINER = r"[a-z0-9](-?[a-z0-9]){2,62}"
"""Name of a container of Azure (source: Azure Storage, naming of containers)."""

ACCOUNT = "[a-z0-9]{3,24}"
"""Name of a storage account of Azure (source: Azure Storage, storage account name)."""

LOCATION = f"((s3|gs)://{_NAME}|az://{ACCOUNT}/{CONTAINER}){_PATH}"
"""The URI of a bucket and a folder in specs; Azure's has the account before the container.

Source: Amazon S3's rules for bucket names; for keys, the safe characters that have no meaning to a shell or a mount
helper.
"""


def split_location(uri: str) -> tuple[str, str]:
    """Return the bucket of a `LOCATION` and the folder in it, without slashes around them.

    A bucket of Azure is the account and the container, with a slash between them.
    """
    scheme, _, rest = uri.partition("://")
    parts = rest.strip("/").split("/")
    count = 2 if scheme == "az" else 1
    return "/".join(parts[:count]), "/".join(parts[count:])


def schemes_pattern(scheme: str) -> str:
    """Return a pattern of the schemes that name the same bucket as one of `SCHEMES`, in any case."""
    family = next(each for each in _FAMILIES if scheme in each)
    return "|".join(map(_any_case, sorted(family)))


_OTHERS = "|".join(schemes_pattern(family[0]) for family in _FAMILIES[1:-1])
BUCKET_URI = (
    f"({schemes_pattern('s3')})://{_NAME}{_PATH}|({_OTHERS})://{_AUTHORITY}{_PATH}"
    f"|({schemes_pattern('http')})://{_AUTHORITY}{_PATH}{_QUERY}"
)
"""The whole of a URI of a bucket that somebody can be granted."""

_END = r"\s\"'`,;|<>()\[\]{}\x00-\x1f"
ANY_URI = f"({'|'.join(map(_any_case, sorted(SCHEMES, reverse=True)))})://[^{_END}]*"
"""A URI of one of `SCHEMES` within a text."""

_STORES = (
    rf"{_any_case('s3')}[A-Za-z0-9.-]{{0,100}}\.{_any_case('amazonaws.com')}(\.{_any_case('cn')})?"
    rf"|{_any_case('storage.googleapis.com')}|{_any_case('storage.cloud.google.com')}"
)
_ACCOUNTS = rf"({_any_case('blob')}|{_any_case('dfs')})\.{_any_case('core')}\.[A-Za-z0-9.-]+"
_REST = r"\.?(:[0-9]*)?"
WEB_BUCKET = (
    f"({schemes_pattern('http')})://"
    rf"([^/?#]+\.({_STORES}|{_ACCOUNTS}){_REST}([/?#][\s\S]*)?|([^/?#]*@)?({_STORES}){_REST}/[\s\S]+)"
)
"""The whole of a URL of a bucket at Amazon, Google or Azure (sources: Amazon S3, virtual hosting of buckets; Cloud
Storage, request endpoints; Azure Storage, resource URIs)."""

_WEB_URI = re.compile(f"({schemes_pattern('http')})://")
_ANY_URI = re.compile(ANY_URI, re.ASCII)
_BUCKET_URI = re.compile(BUCKET_URI)


def is_bucket_uri(uri: str) -> bool:
    """Return whether a text is the URI of a bucket or folder that somebody can be granted."""
    return _BUCKET_URI.fullmatch(uri) is not None


def bucket_uris(text: str) -> Iterator[str]:
    """Yield the URIs of buckets that are anywhere in a text."""
    for found in _ANY_URI.finditer(text):
        uri = found[0]
        if not _WEB_URI.match(uri) or matches(f"^({WEB_BUCKET})$", uri):
            yield uri


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
        account: the same steps to the name of the account that the bucket is in; empty for none.
    """

    driver: str
    scheme: str
    path: tuple[str, ...]
    inline: tuple[str, ...]
    option: str = ""
    word: str = ""
    marked: bool = False
    own: bool = True
    account: tuple[str, ...] = ()


_PREFIX = ("prefix ", "[pP][rR][eE][fF][iI][xX]")
_FOLDER = ("only-dir=", "[oO][nN][lL][yY].?[dD][iI][rR]")
_SUBDIRECTORY = ("--subdirectory=", "[sS][uU][bB].?[dD][iI][rR]")
_AZURE_CONTAINER = ("volumeAttributes", "containerName")
_AZURE_ACCOUNT = ("volumeAttributes", "storageAccount")

BUCKET_DRIVERS = (
    BucketDriver("ru.yandex.s3.csi", "s3", ("volumeHandle",), ("volumeHandle",)),
    BucketDriver("s3.csi.aws.com", "s3", _BUCKET_NAME, _BUCKET_NAME, *_PREFIX),
    BucketDriver("gcsfuse.csi.storage.gke.io", "gs", ("volumeHandle",), _BUCKET_NAME, *_FOLDER, marked=True),
    BucketDriver(
        "blob.csi.azure.com", "az", _AZURE_CONTAINER, _AZURE_CONTAINER, *_SUBDIRECTORY, account=_AZURE_ACCOUNT
    ),
    BucketDriver("s3.csi.scality.com", "s3", _BUCKET_NAME, _BUCKET_NAME, *_PREFIX, own=False),
    BucketDriver("ch.ctrox.csi.s3-driver", "s3", ("volumeHandle",), ("volumeHandle",), own=False),
)
"""The drivers that mount buckets.

Sources: k8s-csi-s3 0.43, `volumeIDToBucketPrefix`, and GeeseFS, which is called with `BUCKET:FOLDER`. The driver of
Mountpoint for S3 2, `mountpoint.ParseArgs`: `prefix x`, `--prefix x`, `prefix=x`, `--prefix=x`; Scality's is a copy.
The Cloud Storage FUSE CSI driver 1.17, `parseVolumeID`, and `parseVolumeAttributes`, which joins the mount options of a
PersistentVolume and its attribute `mountOptions`; `only-dir=x`, and `only-dir:x` as in a configuration file. The Azure
Blob CSI driver 1.27, `NodeStageVolume`, which ignores the case of attributes: of the names in `ATTRIBUTES`, another
spelling is an attribute that must be granted; and blobfuse2's `--subdirectory`.
"""

MARK = r"[^:]*:[A-Za-z0-9._-]*"
"""The whole of a name that a colon and a mark end, as a pattern of RE2 and Python."""

HANDLE = "[A-Za-z0-9._#-]*"
"""The whole of a handle that adds no option to the command of blobfuse2, as a pattern of RE2 and Python.

The Azure Blob CSI driver 1.27 joins its arguments with spaces, one of which, `--tmp-path`, has the handle.
"""

INLINE_OPTIONS = ("csi", "volumeAttributes", "mountOptions")
"""The attribute with mount options and commas, of pods' volumes and PersistentVolumes (source: Cloud Storage FUSE)."""

S3_OPTIONS = "--memory-limit=1000 --dir-mode=0555 --file-mode=0444"
"""What kaigen sets as the attribute `options` of ru.yandex.s3.csi."""

ATTRIBUTES = (
    "authenticationSource",
    "bucketName",
    "containerName",
    "mountOptions",
    "mounter",
    "options",
    "protocol",
    "storageAccount",
)
"""Attributes that name the bucket and whose credentials the driver uses, and those with options."""

OPTIONS = (
    "--subdirectory=*",
    "-o allow_other",
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
    if row.account:
        handle = "" if inline else str(csi.get("volumeHandle") or "")
        other = "" if re.fullmatch(HANDLE, handle) else " "
        name = f"{next((str(value) for _, value in values_at(csi, row.account)), '')}{other}/{name}"
    return f"{row.scheme}://{name}" + (f"/{' '.join(folders)}" if row.word else "")


def mount_options(spec: Object, *, inline: bool) -> list[object]:
    """Return the mount options of a PersistentVolume's `spec`, or of the volume of a pod, with those in attributes."""
    options = [] if inline else spec.get("mountOptions")
    attributes = [part for _, value in values_at(spec, INLINE_OPTIONS) for part in str(value).split(",")]
    return [*(options if isinstance(options, list) else []), *attributes]
