"""The completion marker, `.kaigen/model.json`: it is written last, and other pods wait for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaigen_downloader.folder import STATE
from kaigen_downloader.text import file_size, plural, size

if TYPE_CHECKING:
    from typing import Protocol

    from kaigen_downloader.store import Files

    class Readable(Protocol):
        """A place with small files by their paths."""

        def read(self, path: str) -> bytes | None:
            """Return the content, or None when it is not there."""


PATH = f"{STATE}/model.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the model: path relative to the folder, bytes, and sha256 in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Marker:
    """The description of a complete folder.

    Attributes:
        identity: the compiler's name for the source spec; opaque here.
        source: where it was fetched from: `type` and other fields, such as `repo` and `revision`.
        commit: the commit of that revision.
        files: sorted by path.
        started: RFC 3339, when the run that completed the folder began.
        finished: RFC 3339, when it ended.
        fetched: bytes that run took from the network; less than `bytes` after a resume.
    """

    identity: str
    source: Mapping[str, str]
    commit: str
    files: tuple[StoredFile, ...]
    started: str
    finished: str
    fetched: int

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def summary(self) -> str:
        """Return source, commit, files and size in one phrase, for logs."""
        names = (self.source.get(field) for field in ("repo", "uri", "ref", "type"))
        name = next((name for name in names if name), "files")
        return f"{name}@{self.commit[:12]}, {plural(len(self.files), 'file')}, {size(self.bytes)}"


def read(files: Readable) -> Marker | None:
    """Return the marker of a folder or bucket; None when it does not exist or is invalid."""
    data = files.read(PATH)
    if data is None:
        return None
    try:
        found = json.loads(data)
        if found["schema"] != SCHEMA:
            return None
        source = found["source"]
        return Marker(
            identity=str(found["identity"]),
            source={"type": str(source["type"])}
            | {name: str(value) for name, value in source.items() if name != "commit"},
            commit=str(source["commit"]),
            files=tuple(
                StoredFile(str(file["path"]), _bytes(file["size"]), str(file["sha256"])) for file in found["files"]
            ),
            started=str(found["started"]),
            finished=str(found["finished"]),
            fetched=_bytes(found.get("fetched", found["bytes"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _bytes(value: object) -> int:
    found = file_size(value)
    if found is None:
        raise ValueError
    return found


def write(files: Files, marker: Marker) -> None:
    """Write the marker durably and atomically."""
    document = {
        "schema": SCHEMA,
        "identity": marker.identity,
        "source": {**marker.source, "commit": marker.commit},
        "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in marker.files],
        "bytes": marker.bytes,
        "fetched": marker.fetched,
        "started": marker.started,
        "finished": marker.finished,
    }
    files.write(PATH, (json.dumps(document, indent=1) + "\n").encode())


def wrong_sizes(files: Files, marker: Marker) -> list[str]:
    """Return the differences from the marker, by names and sizes only; empty when there are none."""
    wrong = []
    for file in marker.files:
        found = files.file_size(file.path)
        if found is None:
            wrong.append(f"{file.path} is missing")
        elif found != file.size:
            wrong.append(f"{file.path} has {found} bytes instead of {file.size}")
    return wrong
