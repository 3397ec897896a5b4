"""Files below a prefix of a bucket, as a source."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from kaigen_downloader.errors import BadInput, Corrupt, Failure, Refused, Transient
from kaigen_downloader.folder import STATE
from kaigen_downloader.globs import chosen, duplicates, report_skipped
from kaigen_downloader.locked import Locked
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.net import Net
from kaigen_downloader.ranges import Served
from kaigen_downloader.recent import ALL, Recent, time_of
from kaigen_downloader.remote import RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.s3 import Client, Reply, text
from kaigen_downloader.s3_errors import Absent
from kaigen_downloader.store import Work
from kaigen_downloader.text import file_size, plural, say, shown

_MD5 = re.compile(r"[0-9a-f]{32}(-[1-9][0-9]{0,4})?")
_OWN_KEYS = {"aws:kms", "aws:kms:dsse"}
"""Encryptions with which an ETag is no MD5 (source: Amazon S3, Object)."""
_REQUESTS = 16


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The files below a prefix.

    Attributes:
        client: of the bucket and the prefix.
        include: globs over the whole path, `*` crossing slashes; none means all files.
        exclude: globs of files left out.
        skip_duplicates: whether weights that the bucket has as safetensors are not fetched in other formats as well.
        locked: number, bytes and digest of the files, with ETags in place of checksums; None for whatever is there.
        recent: which of them are chosen by the time of their last change.
        only: paths of the only files that count; None for all.
    """

    client: Client
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skip_duplicates: bool = False
    locked: Locked | None = None
    recent: Recent = ALL
    only: frozenset[str] | None = None

    @property
    def endpoint(self) -> str:
        """Return the URL of the server, which gets signed requests."""
        return self.client.url("")

    @property
    def name(self) -> str:
        """Return `s3://BUCKET/PREFIX`."""
        return self.client.where.name

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the source for the marker."""
        return {"type": "s3", "uri": self.name, "server": self.client.server}

    def selection(self, paths: Collection[str]) -> set[str]:
        """Return the files that the globs select."""
        found = {path for path in paths if _is_file(path) and chosen(path, self.include, self.exclude)}
        return found - self._skipped(found)

    def _skipped(self, paths: Collection[str]) -> set[str]:
        return duplicates(paths) if self.skip_duplicates and not self.include else set()

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers of a signed request, with the credentials of this moment."""
        return self.client.signed(url, headers)

    def served(self, remote: RemoteFile, work: Work) -> Served:
        """Return the bytes of a file."""
        return Served(remote, work.net, work.meter, work.retry, work.refusal)

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """Return the permanent failure for a status."""
        if status == 404:
            return Corrupt(f"{path} was removed from {self.name} while it was fetched")
        if self.client.is_rejected(status) and self.client.renewed():
            return Transient(f"{self.client.server} rejects the token, asking for a new one")
        return Refused(
            f"{path}: {self.client.server} answers {status}: the credentials may not read {self.name} any more"
        )

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """List the files, and ask for the checksum of each.

        Raises:
            Refused: the bucket may not be listed, or its files are not those of the lock.
            BadInput: names that could do harm, or globs that choose nothing.
            Corrupt: a file without a usable size.
            Unavailable: the server cannot be reached.
        """
        start, total = len(self.client.where.prefix), 0
        found: dict[str, tuple[int, str]] = {}
        modified: dict[str, datetime | None] = {}
        for entry in self.client.listed("ListObjectsV2"):
            path, size = text(entry, "Key")[start:], file_size(entry.get("Size"))
            if not _is_file(path):
                continue
            total += 1
            if not chosen(path, self.include, self.exclude) or (self.only is not None and path not in self.only):
                continue
            if size is None:
                raise Corrupt(f"{self.client.server} lists {shown(path)} without a usable size")
            found[path] = (size, text(entry, "ETag").strip('"'))
            modified[path] = time_of(entry)
        found = {path: found[path] for path in self.recent.chosen(modified, self.name)}
        if not found:
            what = f"the globs select none of its {plural(total, 'file')}" if total else "it has no files"
            raise BadInput(f"{self.name}: {what}")
        check_names(list(found))
        listing = "".join(f"{etag} {size} {path}\n" for path, (size, etag) in sorted(found.items()))
        digest, bytes_in_all = (hashlib.sha256(listing.encode()).hexdigest(), sum(size for size, _ in found.values()))
        say(f"revision of {self.name}: {len(found)}:{bytes_in_all}:{digest}")
        self._check(found)
        skipped = self._skipped(found)
        report_skipped(skipped)
        with ThreadPoolExecutor(_REQUESTS) as pool:
            files = tuple(pool.map(lambda path: self._file(path, *found[path]), sorted(found.keys() - skipped)))
        return Snapshot(digest[:40], files)

    def _check(self, found: Mapping[str, tuple[int, str]]) -> None:
        if self.locked is None:
            return
        seen = [StoredFile(path, size, etag) for path, (size, etag) in found.items()]
        if not self.locked.matches(seen):
            raise Refused(
                f"{self.name} has {plural(len(seen), 'file')} with {sum(file.size for file in seen)} bytes, and they "
                "are not those of the revision in the spec: review the change, and set the new revision"
            )

    def _file(self, path: str, size: int, etag: str) -> RemoteFile:
        try:
            head = self.client.call("HeadObject", path, ChecksumMode="ENABLED")
        except Absent:
            raise Corrupt(f"{path} was removed from {self.name} while it was listed") from None
        if text(head, "ETag").strip('"') != etag or head.get("ContentLength") != size:
            raise Corrupt(f"{path} of {self.name} changed while it was listed")
        sha256 = _sha256(head)
        md5, part = ("", 0) if sha256 else self._md5(path, head, etag, size)
        return RemoteFile(path, size, sha256, None, self.client.url(path), text(head, "ETag"), md5, part)

    def _md5(self, path: str, head: Reply, etag: str, size: int) -> tuple[str, int]:
        """Return the MD5 of an object and the size of its parts; nothing if its ETag is none."""
        checksum = self.client.checksum(head)
        if checksum is not None:
            return checksum, 0
        is_md5 = _MD5.fullmatch(etag) and text(head, "ServerSideEncryption") not in _OWN_KEYS
        if not is_md5 or "SSECustomerAlgorithm" in head or self.client.where.bucket.endswith("--x-s3"):
            return "", 0
        count = int(etag.partition("-")[2] or 0)
        if not count:
            return etag, 0
        first = self.client.call("HeadObject", path, PartNumber=1)
        part = first.get("ContentLength")
        if not isinstance(part, int) or part < 1 or first.get("PartsCount") != count:
            return "", 0
        return (etag, part) if -(-size // part) == count else ("", 0)


def _is_file(path: str) -> bool:
    """Return whether a key is a file, and no state of kaigen."""
    # A key that ends in a slash is what consoles show as a folder.
    return bool(path) and not path.endswith("/") and path.split("/")[0] != STATE


def _sha256(head: Reply) -> str | None:
    """Return the sha256 of an object: the server's, or the one that kaigen stored with it."""
    try:
        known = base64.b64decode(text(head, "ChecksumSHA256"), validate=True).hex()
    except (binascii.Error, ValueError):
        known = ""  # Of an object of several parts it is a checksum of checksums, with their number.
    if len(known) != 64 or text(head, "ChecksumType") == "COMPOSITE":
        metadata = head.get("Metadata")
        stored = metadata if isinstance(metadata, dict) else {}
        known = next((str(value) for name, value in stored.items() if name.lower() == "sha256"), "")
    return known if re.fullmatch("[0-9a-f]{64}", known) else None
