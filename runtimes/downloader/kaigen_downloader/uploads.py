"""`wait-files`: block until files that a person uploads are in a folder."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import Folder, split
from kaigen_downloader.polling import Polling
from kaigen_downloader.text import plural, say, size


@dataclass(slots=True)
class Uploads:
    """Files that are uploaded.

    Attributes:
        dest: the folder; it need not exist yet.
        paths: the files in it.
        sums: sha256 of those that have one.
        settle: seconds for which a file without a checksum must not change.
    """

    dest: str
    paths: Sequence[str]
    sums: Mapping[str, str]
    settle: float
    _seen: dict[str, tuple[tuple[int, int], float]] = field(default_factory=dict)
    _wrong: dict[str, tuple[tuple[int, int], str]] = field(default_factory=dict)

    def wait(self, polling: Polling) -> None:
        """Block until every file is complete.

        Args:
            polling: how long and how often to look.

        Raises:
            BadInput: a path leads out of the folder.
            Unavailable: the time is over.
        """
        for path in self.paths:
            split(path)
        total = polling.wait(self._look, what=f" for {plural(len(self.paths), 'file')} in {self.dest}")
        say(f"ready: {plural(len(self.paths), 'file')}, {size(total)}")

    def _look(self) -> tuple[int | None, str]:
        """Return the size of all files, or what one of them lacks."""
        try:
            folder = Folder(self.dest)
        except BadInput as error:
            return None, str(error)
        try:
            sizes = []
            for path in self.paths:
                found, lack = self._file(folder, path)
                if lack:
                    return None, f"{path} {lack}"
                sizes.append(found)
            return sum(sizes), ""
        finally:
            folder.close()

    def _file(self, folder: Folder, path: str) -> tuple[int, str]:
        """Return the size of a file, and what it lacks."""
        try:
            descriptor = folder.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return 0, "is not there"
        except (OSError, BadInput) as error:
            return 0, f"cannot be read ({error})"
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            os.close(descriptor)
            return 0, "is not a file"
        with os.fdopen(descriptor, "rb") as file:
            version = (about.st_size, about.st_mtime_ns)
            if path in self.sums:
                if path in self._wrong and self._wrong[path][0] == version:
                    return 0, self._wrong[path][1]
                found = hashlib.file_digest(file, "sha256").hexdigest()
                if found == self.sums[path]:
                    return about.st_size, ""
                reason = f"has {size(about.st_size)} and sha256 {found}, expected {self.sums[path]}"
                self._wrong[path] = (version, reason)
                return 0, reason
        if not about.st_size:
            return 0, "is empty"
        now = time.monotonic()
        before, since = self._seen.setdefault(path, (version, now))
        if before != version:
            since = now
            self._seen[path] = (version, now)
        return about.st_size, "" if now - since >= self.settle else "is being uploaded"
