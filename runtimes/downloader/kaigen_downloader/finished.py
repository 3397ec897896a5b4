"""`fetch s3 --if-complete`: the stored results of a run, if the bucket has all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaigen_downloader import marker as markers
from kaigen_downloader.errors import Corrupt, Unavailable
from kaigen_downloader.locked import Locked
from kaigen_downloader.s3 import text
from kaigen_downloader.text import file_size, plural, say

if TYPE_CHECKING:
    from kaigen_downloader.bucket_source import BucketFiles
    from kaigen_downloader.marker import Marker, StoredFile


def finished(source: BucketFiles, identity: str) -> Marker | None:
    """Return the marker of a folder in a bucket if it is that of a run, and its files are there with their sizes.

    Args:
        source: the folder.
        identity: of the run.

    Raises:
        Failure: the bucket cannot be read.
    """
    found = markers.read(source.client)
    if found is None or found.identity != identity:
        say(f"not complete: {source.name} has {'no marker' if found is None else 'the marker of another run'}")
        return None
    start, wanted = len(source.client.where.prefix), {file.path: file.size for file in found.files}
    sizes = {
        text(entry, "Key")[start:]: file_size(entry.get("Size")) for entry in source.client.listed("ListObjectsV2")
    }
    lacking = [path for path, size in wanted.items() if sizes.get(path) != size]
    if lacking:
        what = f"{lacking[0]} and {len(lacking) - 1} more" if len(lacking) > 1 else lacking[0]
        say(f"not complete: {source.name} lacks {what} of {plural(len(wanted), 'file')}")
        return None
    return found


@dataclass(frozen=True, slots=True)
class _Stored(Locked):
    """The files that a marker lists."""

    def check(self, files: Sequence[StoredFile]) -> None:
        """Check the contents of the files, which have been fetched.

        Raises:
            Corrupt: they are others.
        """
        if not self.matches(files):
            raise Corrupt("a file differs from its checksum in the marker: delete the folder to run again")


def locked(marker: Marker) -> Locked:
    """Return what the files must be by a marker."""
    lines = (f"{file.sha256} {file.size} {file.path}\n" for file in sorted(marker.files, key=lambda file: file.path))
    return _Stored(len(marker.files), marker.bytes, hashlib.sha256("".join(lines).encode()).hexdigest())


def write_note(file: str, note: str) -> None:
    """Print a line, and write it to a file for the container that follows.

    Raises:
        Unavailable: the file cannot be written.
    """
    try:
        with open(file, "w", encoding="utf-8") as target:
            target.write(f"{note}\n")
    except OSError as error:
        raise Unavailable(f"cannot write {file}: {error.strerror}") from None
    say(note)
