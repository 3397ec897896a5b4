"""The limits of a listing: a server may send large pages, and pages without an end."""

from __future__ import annotations

from kaigen_downloader.errors import Unavailable
from kaigen_downloader.text import size

LARGEST_ANSWER = 8 << 20
"""Bytes of an answer that is read whole: a page of a listing, or a manifest.

A page of the Hub or of S3 has at most 1,000 files, a key of S3 at most 1 KiB, and a manifest mostly less than 4 MiB.
"""
MOST_PAGES = 2_000
MOST_FILES = 1_000_000
MOST_BYTES = 256 << 20


class Total:
    """What the pages of a listing have so far."""

    def __init__(self, server: str, name: str) -> None:
        """Initialize.

        Args:
            server: the server, for messages.
            name: what it lists.
        """
        self._server, self._name = server, name
        self._pages = self._files = self._bytes = 0

    def add(self, files: int, length: int) -> None:
        """Count a page.

        Args:
            files: how many files it has.
            length: its bytes.

        Raises:
            Unavailable: the listing is over a limit.
        """
        self._pages += 1
        self._files += files
        self._bytes += length
        if self._pages > MOST_PAGES or self._files > MOST_FILES or self._bytes > MOST_BYTES:
            raise Unavailable(
                f"{self._server} returns an endless listing of {self._name}: more than {MOST_PAGES} pages, "
                f"{MOST_FILES} files or {size(MOST_BYTES)}"
            )
