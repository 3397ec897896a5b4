"""Synchronizes two folders by the hashes of their files, so that no version of a file is lost on either side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct

Base = dict[str, str]
"""The hash of each file when both sides had the same content last."""
Say = Callable[[str], object]


class Side(Protocol):
    """One of the two folders."""

    def digests(self) -> Mapping[str, str]:
        """Return the SHA-256 of each file by its path."""

    def read(self, path: str) -> bytes:
        """Return the content of a file."""

    def write(self, path: str, data: bytes, expected: str | None) -> bool:
        """Write a file if it still has the expected hash, or does not exist if that is None.

        Returns:
            Whether it was written. If not, the file is as it was.
        """


class Direction(Enum):
    """The sides that may change."""

    BOTH = "both"
    TO_NOTEBOOK = "to-notebook"
    FROM_NOTEBOOK = "from-notebook"


class Step(Enum):
    """What one file needs."""

    NOTHING = ""
    UPLOAD = "to the notebook"
    DOWNLOAD = "from the notebook"
    CONFLICT = "conflict"


class Result(Struct):
    """What a synchronization did.

    Attributes:
        copied: lines about copied files.
        skipped: lines about files that could not be copied; they are tried again next time.
    """

    copied: list[str]
    skipped: list[str]


def step_of(base: str | None, local: str | None, remote: str | None) -> Step:
    """Return what a file needs.

    A file that one side deleted stays on the other: it is copied back only after a change there.

    Args:
        base: its hash when both sides had the same content last; None if they never had.
        local: its hash in the local folder; None if it does not exist.
        remote: its hash in the notebook; None if it does not exist.
    """
    if local == remote:
        return Step.NOTHING
    if local is None or local == base:
        # Only the notebook changed it. If it was deleted there, the local file stays.
        return Step.NOTHING if remote is None or remote == base else Step.DOWNLOAD
    if remote is None or remote == base:
        return Step.UPLOAD
    return Step.CONFLICT


def synchronize(
    local: Side, remote: Side, base: Base, direction: Direction = Direction.BOTH, say: Say = lambda text: None
) -> Result:
    """Copy what changed between two folders.

    Of a file that changed on both sides, the local version keeps the name, and the version of the notebook is stored
    next to it under another name, on both sides.

    Args:
        local: the local folder.
        remote: the folder of the notebook.
        base: the last common hashes; updated after each file.
        direction: the sides that may change.
        say: receives a line for each copied file.
    """
    run = _Run(local, remote, base, direction, say)
    for path in sorted({*run.of_local, *run.of_remote}):
        run.visit(path)
    for path in set(base) - {*run.of_local, *run.of_remote}:
        del base[path]
    return run.result


class _Run:
    def __init__(self, local: Side, remote: Side, base: Base, direction: Direction, say: Say) -> None:
        self.local, self.remote = local, remote
        self.of_local, self.of_remote = dict(local.digests()), dict(remote.digests())
        self.base, self.direction, self.say = base, direction, say
        self.result = Result([], [])

    def visit(self, path: str) -> None:
        local, remote = self.of_local.get(path), self.of_remote.get(path)
        match step_of(self.base.get(path), local, remote):
            case Step.NOTHING:
                if local is not None and local == remote:
                    self.base[path] = local
            case Step.UPLOAD if self.direction is not Direction.FROM_NOTEBOOK:
                self._copy(path, self.local, self.remote, self.of_remote, Step.UPLOAD)
            case Step.DOWNLOAD if self.direction is not Direction.TO_NOTEBOOK:
                self._copy(path, self.remote, self.local, self.of_local, Step.DOWNLOAD)
            case Step.CONFLICT:
                self._resolve(path)

    def _copy(self, path: str, source: Side, target: Side, there: dict[str, str], step: Step) -> None:
        if not _fits(path, there):
            self.result.skipped.append(f"{path}: a file and a folder have the same name")
            return
        data = source.read(path)
        if not target.write(path, data, there.get(path)):
            self.result.skipped.append(f"{path}: not copied {step.value}; the target changed or is ignored")
            return
        there[path] = self.base[path] = digest_of(data)
        self._copied(f"{path}: {step.value}")

    def _resolve(self, path: str) -> None:
        """Store the version of the notebook under another name on both sides, then copy the local one."""
        if self.direction is not Direction.BOTH:
            hint = "synchronize both ways to keep both versions"
            self.result.skipped.append(f"{path}: changed on both sides; {hint}")
            return
        theirs = self.remote.read(path)
        found = digest_of(theirs)
        name = self._free_name(path, found)
        for side, there in ((self.local, self.of_local), (self.remote, self.of_remote)):
            if there.get(name) != found and not side.write(name, theirs, None):
                self.result.skipped.append(f"{path}: changed on both sides; {name} cannot be written")
                return
            there[name] = found
        self.base[name] = found
        ours = self.local.read(path)
        if not self.remote.write(path, ours, found):
            self.result.skipped.append(f"{path}: changed in the notebook during the synchronization")
            return
        self.of_remote[path] = self.base[path] = digest_of(ours)
        self._copied(f"{path}: changed on both sides; the version of the notebook is {name}")

    def _free_name(self, path: str, digest: str) -> str:
        """Return the name for a version of the notebook; one that has this version already, if there is one."""
        number = 0
        while True:
            name = conflict_name(path, digest, number)
            if {self.of_local.get(name), self.of_remote.get(name)} <= {None, digest}:
                return name
            number += 1

    def _copied(self, line: str) -> None:
        self.result.copied.append(line)
        self.say(line)


def conflict_name(path: str, digest: str, number: int = 0) -> str:
    """Return the path of the notebook's version of a file."""
    name = PurePosixPath(path)
    suffix = f"-{number}" if number else ""
    return str(name.with_name(f"{name.stem}.notebook-{digest[:8]}{suffix}{name.suffix}"))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(data).hexdigest()


def _fits(path: str, there: Mapping[str, str]) -> bool:
    """Return whether a path can be written: no parent is a file, and no file is in it as a folder."""
    parents = {str(parent) for parent in PurePosixPath(path).parents}
    return not parents & there.keys() and not any(other.startswith(f"{path}/") for other in there)
