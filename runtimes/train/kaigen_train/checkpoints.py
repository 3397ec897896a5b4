"""Checkpoints: those of this run that are complete, in a folder of the output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kaigen_train import __version__, files
from kaigen_train.errors import BadInput

FOLDER = ".checkpoints"
"""Folder of the output."""

_PREFIX = "checkpoint-"


def identity(settings: Mapping[str, Any], model: Path, dataset: str, processes: int) -> str:
    """Return what a run computes: a checkpoint of another run does not continue it.

    Args:
        settings: the settings.
        model: folder of the model.
        dataset: checksum of the dataset.
        processes: number of processes, which share each step.

    Raises:
        BadInput: the model cannot be read.
    """
    try:
        known = [
            [str(file.relative_to(model)), file.stat().st_size] for file in sorted(model.rglob("*")) if file.is_file()
        ]
        # The marker of kaigen's downloader has the checksum of each file.
        about = [
            file.read_text("utf-8") for file in (model / "config.json", model / ".kaigen/model.json") if file.is_file()
        ]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{model} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    content = [__version__, dict(settings), known, about, dataset, processes]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


class Checkpoints:
    """The checkpoints of one run.

    Attributes:
        folder: the folder of this run.
        MARKER: the file that makes a checkpoint complete.
    """

    MARKER = "complete.json"

    def __init__(self, output: Path, run: str) -> None:
        """Take the output folder and the identity of the run."""
        self._root = output / FOLDER
        self.folder = self._root / run

    def last(self) -> Path | None:
        """Return the last complete checkpoint; None without one."""
        found = [file.parent for file in self.folder.glob(f"{_PREFIX}*/{self.MARKER}")]
        return max(found, key=lambda folder: int(folder.name.removeprefix(_PREFIX)), default=None)

    def complete(self, step: int, facts: Mapping[str, Any]) -> None:
        """Mark a checkpoint as complete when the disk has it, and then remove older ones.

        Args:
            step: its step.
            facts: what the marker contains.

        Raises:
            NotWritten: the disk is full.
        """
        folder = self.folder / f"{_PREFIX}{step}"
        with files.reported(folder):
            files.sync(folder)
            files.write_json(folder / self.MARKER, facts)
            for older in self.folder.glob(f"{_PREFIX}*"):
                if int(older.name.removeprefix(_PREFIX)) < step:
                    files.remove(older)

    def remove_others(self) -> None:
        """Remove the checkpoints of other runs, such as those with earlier settings.

        Raises:
            NotWritten: they cannot be removed.
        """
        with files.reported(self._root):
            for other in self._root.glob("*"):
                if other != self.folder:
                    files.remove(other)

    def remove(self) -> None:
        """Remove all checkpoints.

        Raises:
            NotWritten: they cannot be removed.
        """
        with files.reported(self._root):
            files.remove(self._root)
