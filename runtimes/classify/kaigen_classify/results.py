"""The result: JSON that appears whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from kaigen_classify.errors import NotWritten


def timestamp() -> str:
    """Return the time, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def written(path: Path) -> Iterator[IO[str]]:
    """Open a file that replaces `path` when the block ends without an error.

    Raises:
        NotWritten: the disk is full, or the folder cannot be written to.
    """
    draft = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
        draft = ""
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if draft:
            Path(draft).unlink(missing_ok=True)


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Write one JSON object: on one line if the name ends in `.jsonl`.

    Raises:
        NotWritten: it cannot be written.
    """
    with written(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=None if path.suffix == ".jsonl" else 2)
        file.write("\n")


class Images:
    """Writes the results of many images as they come, in memory that does not grow with their number."""

    def __init__(self, file: IO[str], head: Mapping[str, Any], *, lines: bool) -> None:
        """Begin a file.

        Args:
            file: where to write.
            head: what all images have in common.
            lines: write an object for each image, and no other.
        """
        self._file, self._head, self._lines, self._first = file, dict(head), lines, True
        if not lines:
            text = json.dumps(self._head, ensure_ascii=False, indent=2)
            file.write(text[: text.rindex("\n")] + ',\n  "images": [')

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write the result of an image."""
        if self._lines:
            self._file.write(json.dumps({**self._head, **entry}, ensure_ascii=False) + "\n")
            return
        self._file.write(("" if self._first else ",") + "\n    " + json.dumps(entry, ensure_ascii=False))
        self._first = False

    def end(self, tail: Mapping[str, Any]) -> None:
        """Write what is known at the end."""
        if not self._lines:
            text = json.dumps(dict(tail), ensure_ascii=False, indent=2)
            self._file.write(("" if self._first else "\n  ") + "]," + text[1:] + "\n")
