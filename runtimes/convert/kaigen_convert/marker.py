"""The completion marker `.kaigen/model.json`, as kaigen-downloader writes and reads it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path

from kaigen_convert.documents import Document, Json, read_document
from kaigen_convert.errors import NotConvertible, NotFound

STATE = ".kaigen"
PATH = f"{STATE}/model.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The downloaded files.

    Attributes:
        folder: with the files.
        commit: of the model.
        origin: where they are from, as the downloader recorded it.
    """

    folder: Path
    commit: str
    origin: Document


def read_source(folder: Path, identity: str | None) -> Source:
    """Return the downloaded files of a folder, after comparing their sizes with the marker.

    Args:
        folder: with the files.
        identity: what the marker must have; None for a folder without marker.

    Raises:
        NotFound: it is not complete, or of another identity.
    """
    if identity is None:
        return Source(folder, "", {})
    found = _marker(folder)
    if found is None or found.get("identity") != identity:
        raise NotFound(f"{folder} is not marked complete as {identity}")
    files = found.get("files")
    for entry in files if isinstance(files, list) else []:
        path, size = (entry.get("path"), entry.get("size")) if isinstance(entry, dict) else (None, None)
        if not isinstance(path, str) or not _has_size(folder / path, size):
            raise NotFound(f"{folder}/{path} is missing or has another size than the marker says")
    source = found.get("source")
    origin = source if isinstance(source, dict) else {}
    return Source(folder, str(origin.get("commit", "")), origin)


def _has_size(path: Path, size: Json) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _marker(folder: Path) -> Document | None:
    """Return the marker of a folder; None when there is none, or it is invalid."""
    try:
        found = read_document(folder / PATH)
    except NotConvertible:
        return None
    return found if found is not None and found.get("schema") == SCHEMA else None


def finished(folder: Path, identity: str) -> Document | None:
    """Return the marker of a conversion that is complete; None for any other folder."""
    try:
        read_source(folder, identity)
    except NotFound:
        return None
    return _marker(folder)


def document(
    *,
    identity: str,
    source: Source,
    weights: str,
    files: list[tuple[str, int, str]],
    started: float,
    ended: float,
    facts: Document,
) -> bytes:
    """Return the content of a marker.

    Args:
        identity: of the result.
        source: what was converted.
        weights: type of the weights.
        files: path, bytes and sha256 of each file.
        started: seconds since 1970.
        ended: seconds since 1970.
        facts: what was measured.
    """
    content: Document = {
        "schema": SCHEMA,
        "identity": identity,
        "source": {
            **source.origin,
            "type": "distributed-llama",
            "from": source.origin.get("type", "folder"),
            "weights": weights,
            "commit": source.commit,
        },
        "files": [{"path": path, "size": size, "sha256": digest} for path, size, digest in sorted(files)],
        "bytes": sum(size for _, size, _ in files),
        "fetched": 0,
        "started": _timestamp(started),
        "finished": _timestamp(ended),
        "facts": facts,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _timestamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
