"""Checks of sources of files: credentials of buckets, stores inside of them, references of artifacts."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from kaigen.compile.builders.bucket_access import cloud_server
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.sources import S3, Oci
from kaigen.kubernetes.images import is_image

_AMAZON = ".amazonaws.com"
_WILDCARD = re.compile(r"[*?\[]")


def check_store_outside(s3: S3, store: Bucket, origin: FieldPath, problems: Problems) -> None:
    """Report a store inside of the folder that its files are copied from: the copies would be copied as well.

    Args:
        s3: the source.
        store: where its files, or those that are converted from them, are stored.
        origin: the spec's field of the store.
        problems: collects the error.
    """
    source, place = f"{s3.place}/", f"{store.uri.partition('://')[2].strip('/')}/"
    if _server(s3) != _server(store) or not place.startswith(source):
        return
    folder = place[len(source) :]
    if not _may_copy(s3, folder):
        return
    where = "in" if not folder else "below"
    exclude = f", or set `exclude: [{folder}]` in `source.s3`" if folder else ""
    problems.error(
        "KG0400",
        f"the files are stored {where} {s3.location}, the folder that they are copied from: the next download "
        "would copy the copies as well",
        (*origin, "uri"),
        f"set another prefix{exclude}",
    )


def _server(place: S3 | Bucket) -> str:
    """Return the server of a bucket; empty for Amazon, whose endpoints have the same buckets."""
    host = urlsplit(cloud_server(place)).netloc.lower()
    return "" if f".{host.partition(':')[0]}".endswith(_AMAZON) else host


def _may_copy(s3: S3, folder: str) -> bool:
    """Return whether the downloader copies files below a folder: whether globs can select any, and skip not all.

    Args:
        s3: the source.
        folder: path below its prefix, with a slash at the end; empty for the prefix itself.
    """

    def is_skipped(glob: str) -> bool:
        every = f"{glob}*" if glob.endswith("/") else glob
        return every.endswith("*") and fnmatchcase(folder, every)

    def is_selected(glob: str) -> bool:
        start = _WILDCARD.split(glob, maxsplit=1)[0]
        return start.startswith(folder) or folder.startswith(start)

    return not any(map(is_skipped, s3.exclude)) and (not s3.include or any(map(is_selected, s3.include)))


def check_reference(oci: Oci, origin: FieldPath, problems: Problems) -> None:
    """Report a reference that is not one of an artifact."""
    if not is_image(oci.ref):
        problems.error(
            "KG0395",
            f"`{oci.ref}` is not the reference of an artifact",
            (*origin, "ref"),
            "write REGISTRY/REPOSITORY:TAG, or REGISTRY/REPOSITORY@DIGEST",
        )
