"""A bucket as a store: objects appear whole and right, and the run that came last is the only writer.

S3 has no lock. A run that begins to change something leaves a token of its own; one that finds another's there
ends before it makes an object or the marker. The token is written on the condition that nobody wrote one since it was
read, so that of two runs that begin at the same moment one ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kaigen_downloader import marker as markers
from kaigen_downloader.clients import client_of
from kaigen_downloader.digest import Digest
from kaigen_downloader.errors import BadInput, Failure, Refused, Stopped, Unavailable
from kaigen_downloader.folder import STATE, split
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.pace import DEFAULT, Pace
from kaigen_downloader.remote import Layer, RemoteFile, Snapshot
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.s3 import Address, Client, text
from kaigen_downloader.s3_errors import Absent, Conflict
from kaigen_downloader.sending import PARAMETER, Sender
from kaigen_downloader.store import OWNED, Files, Plan, Work
from kaigen_downloader.text import plural, say, size
from kaigen_downloader.upload import Receipt, Upload

SUMS = f"{STATE}/sums.json"
"""Checksums of objects of several parts that an unfinished run has completed."""
_LARGEST_OBJECT = 5 << 40
"""Bytes of an object of any server (source: Amazon S3, multipart upload limits)."""


@contextlib.contextmanager
def opened(
    where: Address, patience: Patience, *, timeout: float, connections: int, pace: Pace = DEFAULT
) -> Iterator[Bucket]:
    """The store that a bucket, or a prefix of one, is.

    Args:
        where: the bucket and the prefix.
        patience: for failures that pass.
        timeout: seconds that one connect, read or write may take.
        connections: how many are used at once.
        pace: the lowest speed of an answer.

    Raises:
        Failure: there are no credentials, or the settings make no sense.
    """
    # What is done before and after the transfer has no other threads that could stop it.
    retry = Retry(patience, threading.Event())
    client = client_of(where, retry, os.environ, timeout=timeout, connections=connections, pace=pace)
    yield Bucket(client, connections)


class Bucket:
    """See `Store` and `Target` for the methods."""

    def __init__(self, client: Client, connections: int) -> None:
        """Takes the client, and how many requests it may send at once."""
        self._client = client
        self._sender = Sender(client)
        self._connections = connections
        self._run = uuid.uuid4().hex
        self._sizes: dict[str, int] | None = None
        self._ours: frozenset[str] = frozenset()
        self._warned = False
        self._recorded: dict[str, object] = {}
        self._recording = threading.Lock()

    # As a store.

    def read(self, path: str) -> bytes | None:
        """Reads a small object."""
        return self._client.read(path)

    def write(self, path: str, data: bytes) -> None:
        """Makes a small object, if this run is still the one that writes."""
        self._still_the_writer()
        self._client.call("PutObject", path, body=memoryview(data))

    def record(self, path: str, data: bytes) -> None:
        """Makes a small object, whichever run writes to the prefix."""
        self._client.call("PutObject", path, body=memoryview(data))

    def file_size(self, path: str) -> int | None:
        """As the bucket was listed when this run began."""
        if self._sizes is None:
            start = len(self._client.where.prefix)
            self._sizes = {
                text(entry, "Key")[start:]: size
                for entry in self._client.listed("ListObjectsV2")
                if isinstance(size := entry.get("Size"), int)
            }
        return self._sizes.get(path)

    def owned(self) -> set[str]:
        """Return the paths in the note that an unfinished run wrote before its first change."""
        return _paths(self._note().get("files"))

    def _note(self) -> dict[str, object]:
        return self._document(OWNED)

    def _document(self, path: str) -> dict[str, object]:
        """Return a JSON object of ours; an empty one if there is none."""
        try:
            found = json.loads(self._client.read(path) or b"{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def intact(self, listing: Snapshot) -> dict[str, str]:
        """Asks for the checksum that each object of the right size was uploaded with."""
        candidates = [file for file in listing.files if file.provable and self.file_size(file.path) == file.size]
        self._recorded = self._document(SUMS) if self.file_size(SUMS) is not None else {}
        with ThreadPoolExecutor(self._connections) as pool:
            proofs = pool.map(self._proof, candidates)
            return {file.path: proof for file, proof in zip(candidates, proofs, strict=True) if proof}

    def _proof(self, file: RemoteFile) -> str | None:
        """The sha256 of an object, when it is the right one."""
        try:
            head = self._client.call("HeadObject", file.path)
        except Absent:
            return None
        found = head.get("Metadata")
        # Some servers use other capitalization for header names.
        sums = {name.lower(): value for name, value in found.items()} if isinstance(found, dict) else {}
        sha256 = text(sums, "sha256")
        if not sha256:
            recorded = self._recorded.get(file.path)
            record = recorded if isinstance(recorded, dict) else {}
            sha256 = text(record, "sha256")
            right = (record.get("source"), record.get("etag")) == (file.oid, text(head, "ETag"))
        elif file.sha256:
            right = sha256 == file.sha256
        elif file.git_sha1:
            right = text(sums, "git-sha1") == file.git_sha1
        else:
            right = text(sums, "source-md5") == file.md5
        return sha256 if right and len(sha256) == 64 and head.get("ContentLength") == file.size else None

    def check_names(self, paths: Iterable[str]) -> None:
        """Do nothing: a bucket distinguishes all keys."""

    def check_space(self, plan: Plan) -> None:
        """A bucket is never full; but a name or a file may not fit."""
        for file in plan.listing.files:
            self._client.key(file.path)
            if file.size > _LARGEST_OBJECT:
                raise BadInput(
                    f"{file.path} has {size(file.size)}, and an object has at most {size(_LARGEST_OBJECT)}: "
                    "store it in a volume"
                )

    def clear(self, plan: Plan) -> None:
        """From here on this run is the writer."""
        self._ours = plan.owned
        note = {"run": self._run, "files": sorted(plan.owned)}
        self._take_over(memoryview(json.dumps(note).encode()))
        self._delete(markers.PATH)
        self._abort_leftovers()
        for path in _paths(list(plan.gone)):
            if self.file_size(path) is not None:
                self._delete(path)

    def _delete(self, path: str) -> None:
        """Remove an object, if it is there. Google answers 404 if it is not, S3 does not."""
        with contextlib.suppress(Absent):
            self._client.call("DeleteObject", path)

    def _take_over(self, note: memoryview) -> None:
        """Write the note with the token, unless another run writes one at this moment."""
        try:
            condition = self._client.unchanged(self._client.call("HeadObject", OWNED))
        except Absent:
            condition = {"IfNoneMatch": "*"}
        try:
            self._sender.probe(OWNED, note, **condition)
        except (Absent, Conflict):
            # The note is this run's own if only the answer to an earlier try was lost.
            self._still_the_writer()
        except Refused:
            self._client.call("PutObject", OWNED, body=note)
            say(
                f"warning: {self._client.server} has no conditional writes: of two runs that begin at the same moment "
                "both may write"
            )

    def kept_bytes(self, file: RemoteFile) -> int:
        """Of an object that is not complete nothing is used again."""
        return 0

    def fill(self, files: Sequence[RemoteFile], work: Work) -> dict[str, str]:
        """Carries each part from the source to the bucket."""
        with self._client.used_with(work.retry):
            return dict(Upload(self, files, work).run())

    def tidy(self) -> None:
        """Aborts what a run that this one took over from has begun since."""
        self._still_the_writer()
        self._abort_leftovers()

    def disown(self) -> None:
        """Removes the list and the token."""
        self._still_the_writer()
        if self._recorded or self.file_size(SUMS) is not None:
            self._delete(SUMS)
        self._delete(OWNED)

    def take(self, root: Files, offers: Mapping[str, str]) -> set[str]:
        """Copy the objects within the bucket, with their checksums."""
        assert isinstance(root, Bucket)
        client, size_of = self._client, root.file_size

        def copied(path: str, where: str) -> str:
            source = {"Bucket": client.where.bucket, "Key": root._client.key(where)}
            try:
                client.call("CopyObject", path, CopySource=source)
            except Failure as error:
                say(f"{path} of another revision cannot be copied, so it is fetched: {error}")
                return ""
            return path

        small = {
            path: where
            for path, where in offers.items()
            if self.file_size(path) is None and (size_of(where) or 0) <= client.largest_copy
        }
        self._still_the_writer()
        with ThreadPoolExecutor(self._connections) as pool:
            taken = set(pool.map(copied, small.keys(), small.values()))
        self._sizes = None
        return taken - {""}

    def unpack(self, layers: Sequence[Layer], plan: Plan) -> list[StoredFile]:
        """Unpack nothing: a bucket cannot change an object."""
        raise BadInput("layers can be unpacked in a folder only")

    def drop_layers(self) -> None:
        """Do nothing: a bucket has no layers."""

    def discard(self) -> None:
        """A prefix without objects does not exist."""

    def _still_the_writer(self) -> None:
        if self._note().get("run") != self._run:
            raise Unavailable(
                f"another run has begun to write to {self._client.where.name}: this one ends here; "
                "trying again finds what that one has done"
            )

    def _abort_leftovers(self) -> None:
        """Aborts unfinished uploads of our files. Those of other files are somebody else's."""
        keys = {self._client.where.prefix + path for path in self._ours}
        try:
            found = [entry for entry in self._client.listed("ListMultipartUploads") if text(entry, "Key") in keys]
        except Refused as error:
            if not self._warned:
                say(f"warning: unfinished uploads of earlier runs are not looked for: {error}")
            self._warned = True
            return
        for entry in found:
            with contextlib.suppress(Absent):
                path = text(entry, "Key")[len(self._client.where.prefix) :]
                self._client.call("AbortMultipartUpload", path, UploadId=text(entry, "UploadId"))
        if found:
            say(f"aborted {plural(len(found), 'unfinished upload')} of an earlier run")

    # As the target of an upload.

    def put(self, file: RemoteFile, content: memoryview, digest: Digest) -> None:
        """One request; the object keeps its checksums."""
        self._still_the_writer()
        sums = {"sha256": digest.sha256}
        if file.git_sha1 is not None:
            sums["git-sha1"] = file.git_sha1
        elif file.md5:
            sums["source-md5"] = file.md5
        self._sender.send("PutObject", file.path, content, Metadata=sums)

    def begin(self, file: RemoteFile) -> str:
        """The checksum goes with the first request, so that only one that is known beforehand can be kept."""
        sums = {"sha256": file.sha256} if file.sha256 is not None else {}
        reply = self._client.call("CreateMultipartUpload", file.path, Metadata=sums, **self._sender.algorithm)
        upload = text(reply, "UploadId")
        if not upload:
            raise Unavailable(f"{self._client.server} does not respond like an S3 server")
        return upload

    def part(self, file: RemoteFile, upload: str, number: int, content: memoryview) -> Receipt:
        """The server gets a checksum with the bytes and compares."""
        try:
            reply = self._sender.send("UploadPart", file.path, content, UploadId=upload, PartNumber=number)
        except Absent:
            self._still_the_writer()
            raise Unavailable(f"{file.path}: another client aborted the upload") from None
        return Receipt(text(reply, "ETag"), text(reply, PARAMETER))

    def complete(self, file: RemoteFile, upload: str, parts: Sequence[Receipt], digest: Digest) -> bool:
        """Complete an upload. If a retry finds no upload because the first response was lost, check the object."""
        self._still_the_writer()
        # A server that verified the checksums of the parts requires them here.
        listed = [
            {"PartNumber": number, "ETag": part.tag} | ({PARAMETER: part.crc32} if part.crc32 else {})
            for number, part in enumerate(parts, 1)
        ]
        try:
            reply = self._client.call(
                "CompleteMultipartUpload", file.path, UploadId=upload, MultipartUpload={"Parts": listed}
            )
        except Absent:
            self._still_the_writer()
            return self._proof(file) is not None
        if file.sha256 is None and file.provable:
            self._record_sum(file, text(reply, "ETag"), digest.sha256)
        return True

    def _record_sum(self, file: RemoteFile, tag: str, sha256: str) -> None:
        """Record the sha256 of an object that could not get it with its first request, for a run after a failure."""
        with self._recording:
            self._recorded[file.path] = {"source": file.oid, "etag": tag, "sha256": sha256}
            self._client.call("PutObject", SUMS, body=memoryview(json.dumps(self._recorded).encode()))

    def abort(self, file: RemoteFile, upload: str) -> None:
        """One try."""
        with contextlib.suppress(Failure, Stopped):
            self._client.once("AbortMultipartUpload", file.path, UploadId=upload)


def _paths(listed: object) -> set[str]:
    """Those of a list that are names of files; it may have been written by anybody."""
    paths: set[str] = set()
    for path in listed if isinstance(listed, list) else ():
        with contextlib.suppress(BadInput):
            if isinstance(path, str) and split(path)[0] != STATE:
                paths.add(path)
    return paths
