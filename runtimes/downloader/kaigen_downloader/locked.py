"""What a review has seen of the files of a source: their number, bytes and contents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaigen_downloader.errors import Refused
from kaigen_downloader.text import plural

if TYPE_CHECKING:
    from kaigen_downloader.marker import StoredFile
    from kaigen_downloader.remote import Snapshot

_FORM = re.compile(r"([0-9]{1,9}):([0-9]{1,18}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Locked:
    """The files that a lock lists.

    Attributes:
        count: number of files.
        size: bytes of all files.
        digest: SHA-256 of a line `SHA256 SIZE PATH` for each file, by path.
    """

    count: int
    size: int
    digest: str

    def check_listing(self, listing: Snapshot) -> None:
        """Check number and bytes of the files before the first one is fetched.

        Raises:
            Refused: they are others.
        """
        if (len(listing.files), listing.bytes) != (self.count, self.size):
            raise Refused(
                f"the source has {plural(len(listing.files), 'file')} with {plural(listing.bytes, 'byte')}, and "
                f"kaigen.lock has {self.count} with {self.size}: run `kaigen lock --upgrade` and review the change"
            )

    def matches(self, files: Sequence[StoredFile]) -> bool:
        """Return whether these are the files."""
        lines = (f"{file.sha256} {file.size} {file.path}\n" for file in sorted(files, key=lambda file: file.path))
        return hashlib.sha256("".join(lines).encode()).hexdigest() == self.digest

    def check(self, files: Sequence[StoredFile]) -> None:
        """Check the contents of the files, which have been fetched.

        Raises:
            Refused: they are others.
        """
        if not self.matches(files):
            raise Refused("the files are not those of kaigen.lock: a name or a checksum differs")


def parse(text: str) -> Locked:
    """Return what an argument says.

    Raises:
        ValueError: it is not of the form FILES:BYTES:SHA256.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("must be FILES:BYTES:SHA256")
    return Locked(int(found[1]), int(found[2]), found[3])
