"""The API keys that clients may send: fixed ones, and those of a file, which may change while the server runs."""

from __future__ import annotations

import hmac
from pathlib import Path


class Keys:
    """The valid keys.

    Args:
        fixed: keys that stay.
        file: further keys, one a line; None for none. It is read again when it is another, as kubelet replaces the file
            of a Secret; without it, or with none in it, only the fixed ones are valid.
    """

    def __init__(self, fixed: tuple[bytes, ...] = (), file: Path | None = None) -> None:
        self._fixed = fixed
        self._file = file
        self._version: tuple[int, ...] = ()
        self._read: tuple[bytes, ...] = ()

    @property
    def required(self) -> bool:
        """Whether clients must send a key."""
        return bool(self._fixed) or self._file is not None

    def is_valid(self, sent: bytes) -> bool:
        """Whether a key is one of them; comparing takes as long whichever it is, so that timing reveals nothing."""
        return any([hmac.compare_digest(sent, key) for key in self.current()])

    def current(self) -> tuple[bytes, ...]:
        """The keys that are valid now."""
        if self._file is not None:
            try:
                found = self._file.stat()
                version = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
                if version != self._version:
                    self._read = keys_in(self._file.read_text("utf-8"))
                    self._version = version
            except (OSError, UnicodeDecodeError):
                self._read, self._version = (), ()
        return (*self._fixed, *self._read)


def keys_in(text: str) -> tuple[bytes, ...]:
    """The keys of a text, one a line."""
    return tuple(key.encode() for line in text.splitlines() if (key := line.strip()))
