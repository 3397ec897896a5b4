"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kaigen_train.errors import NotWritten


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Report errors of the file system as failures to write `path`.

    Raises:
        NotWritten: the disk is full, or the folder cannot be written to.
    """
    try:
        yield
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror or error}") from None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object in place of a file.

    Raises:
        NotWritten: it cannot be written.
    """
    draft = path.with_name(f".{path.name}.draft")
    with reported(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_folder(path.parent)


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Write a folder in place of another one.

    Pods that mount the old folder keep its files.

    Args:
        path: the folder.
        fill: writes the files to a draft of the folder.

    Raises:
        NotWritten: it cannot be written.
    """
    draft, old = path.with_name(f".{path.name}.draft"), path.with_name(f".{path.name}.old")
    with reported(path):
        for each in (draft, old):
            remove(each)
        draft.mkdir(parents=True)
        fill(draft)
        for file in draft.rglob("*"):
            if file.is_file():
                file.chmod(0o644)  # Pods with another user may serve it.
        sync(draft)
        if path.exists():
            path.rename(old)
        draft.rename(path)
        _sync_folder(path.parent)
        remove(old)


def write_result(output: Path, flat: bool, name: str, fill: Callable[[Path], None]) -> None:
    """Write a result into a folder of the output, or into the output itself.

    Args:
        output: the output.
        flat: whether the files are in the output itself.
        name: name of the folder.
        fill: writes the files to a draft of the folder.

    Raises:
        NotWritten: it cannot be written.
    """
    if flat:
        write_files(output, fill)
    else:
        write_folder(output / name, fill)


def write_files(path: Path, fill: Callable[[Path], None]) -> None:
    """Write files into a folder that has other files too, those that describe others last.

    Args:
        path: the folder.
        fill: writes the files to a draft of the folder.

    Raises:
        NotWritten: they cannot be written.
    """
    draft = path / ".result.draft"
    with reported(path):
        write_folder(draft, fill)
        for file in sorted(draft.iterdir(), key=lambda file: (file.suffix == ".json", file.name)):
            file.replace(path / file.name)
        _sync_folder(path)
        remove(draft)


def sync(folder: Path) -> None:
    """Wait until the disk has the files of a folder."""
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(root))


def remove(folder: Path) -> None:
    """Remove a folder if it exists."""
    if folder.exists():
        shutil.rmtree(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
