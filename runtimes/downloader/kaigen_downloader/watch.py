"""`wait` and `verify`, the commands of other pods. They use no network and import nothing heavy."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from kaigen_downloader import marker as markers
from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import STATE, Folder
from kaigen_downloader.marker import Marker, StoredFile
from kaigen_downloader.polling import Polling
from kaigen_downloader.text import plural, say, size

_SHOWN = 40


def wait(dest: str, identity: str, polling: Polling) -> Marker:
    """Block until the folder has a marker with this identity and every file has its size.

    Args:
        dest: the model folder; it need not exist yet.
        identity: the marker's identity to wait for.
        polling: how long and how often to look.

    Raises:
        Unavailable: the time is over.
    """
    found = polling.wait(
        lambda: _look(dest, identity), what=f" for the model in {dest}", details=lambda: f", {_present(dest)}"
    )
    say(f"ready: {found.summary}")
    return found


def _look(dest: str, identity: str) -> tuple[Marker | None, str]:
    """Return the expected marker, or a description of the current state."""
    try:
        folder = Folder(dest)
    except BadInput as error:
        return None, str(error)
    try:
        found = markers.read(folder)
        if found is None:
            return None, "no marker"
        if found.identity != identity:
            return None, f"marker of another identity ({found.identity[:16]}, wanted {identity[:16]})"
        wrong = markers.wrong_sizes(folder, found)
        return (None, f"marker is there but {wrong[0]}") if wrong else (found, "")
    except (OSError, BadInput) as error:
        return None, f"the marker cannot be read ({error})"
    finally:
        folder.close()


def _present(dest: str) -> str:
    """Return the disk usage of the folder, including partial files."""
    try:
        folder = Folder(dest)
    except BadInput:
        return "0 B present"
    try:
        return f"{size(sum(found.st_blocks * 512 for _, found in folder.files()))} present"
    finally:
        folder.close()


@dataclass(frozen=True, slots=True)
class Finding:
    """One file of the marker: `ok`, or its problem."""

    file: StoredFile
    state: str

    @property
    def good(self) -> bool:
        """Whether the file is correct."""
        return self.state == "ok"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `verify`.

    Attributes:
        problem: why there is nothing to look at, or empty.
        marker: the marker, when there is one.
        findings: one per file of it.
        extra: other files.
        full: whether checksums were computed.
    """

    problem: str
    marker: Marker | None = None
    findings: tuple[Finding, ...] = ()
    extra: int = 0
    full: bool = False

    @property
    def good(self) -> bool:
        """Whether the folder is complete."""
        return not self.problem and all(finding.good for finding in self.findings)

    def lines(self) -> list[str]:
        """Return a table of the files (only those with problems when there are many) and a summary line."""
        if self.marker is None:
            return [f"FAILED: {self.problem}"]
        shown = self.findings
        if len(shown) > _SHOWN:
            shown = tuple(finding for finding in shown if not finding.good)
        width = max((len(finding.file.path) for finding in shown), default=0)
        table = [f"{finding.file.path:<{width}}  {finding.file.size:>14}  {finding.state}" for finding in shown]
        bad = sum(not finding.good for finding in self.findings)
        what = "names, sizes and sha256" if self.full else "names and sizes"
        found = self.marker
        table.append(
            f"{'OK' if self.good else 'FAILED'}: {found.summary}, {what} checked"
            + (f"; {plural(bad, 'file')} bad" if bad else "")
            + (f"; {plural(self.extra, 'other file')} in the folder" if self.extra else "")
            + (f"; {self.problem}" if self.problem else "")
        )
        return table


def verify(dest: str, identity: str | None, *, full: bool) -> Report:
    """Compare the folder with its marker.

    Args:
        dest: the model folder.
        identity: the identity that the marker must have, or None for any.
        full: compute every sha256 too.
    """
    try:
        folder = Folder(dest)
    except BadInput as error:
        return Report(str(error))
    try:
        found = markers.read(folder)
        if found is None:
            return Report(f"{dest} has no marker: the download is not complete")
        problem = ""
        if identity is not None and found.identity != identity:
            problem = f"the marker has identity {found.identity}, expected {identity}"
        findings = tuple(Finding(file, _state(folder, file, full=full)) for file in found.files)
        known = {file.path for file in found.files}
        extra = sum(path not in known and not path.startswith(f"{STATE}/") for path, _ in folder.files())
        return Report(problem, found, findings, extra, full)
    except (OSError, BadInput) as error:
        return Report(f"{dest} cannot be read: {error}")
    finally:
        folder.close()


def _state(folder: Folder, file: StoredFile, *, full: bool) -> str:
    found = folder.file_size(file.path)
    if found is None:
        return "missing"
    if found != file.size:
        return f"size {found}"
    if full:
        try:
            with os.fdopen(folder.open(file.path, os.O_RDONLY), "rb", buffering=0) as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != file.sha256:
                    return "wrong sha256"
        except (OSError, BadInput) as error:
            return f"unreadable ({error})"
    return "ok"
