"""Counts bytes and files, and shows the progress as a bar or as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from kaigen_downloader.text import duration, emit, redact, show_status, size, timestamp

Style: TypeAlias = Literal["bar", "json", "none"]

STYLES = ("auto", "bar", "json", "none")
"""The values of `--progress`."""

_BAR_EVERY = 0.2
_WINDOW = 5.0
_BAR_CELLS = 24
_MOVING = {"check": "checking", "fetch": "fetching", "unpack": "unpacking"}


class Counts(NamedTuple):
    """What a meter has counted.

    Attributes:
        action: `check`, `fetch` or `unpack`.
        added: bytes that were counted, including those that are counted again.
        lost: bytes that were damaged and are counted again.
        done: bytes that are done, also in an earlier run.
        total: bytes in all.
        completed: files that are complete.
        files: files in all.
    """

    action: str
    added: int
    lost: int
    done: int
    total: int
    completed: int
    files: int


def phrase(counts: Counts, speed: float) -> str:
    """Return the progress of an action as text: `fetching 34% of 3.5 GiB (2m05s left)`.

    Args:
        counts: what its meter has counted.
        speed: bytes per second; 0 where it is not known.
    """
    share = counts.done / counts.total if counts.total else 1.0
    left = f" ({duration((counts.total - counts.done) / speed)} left)" if speed > 0 else ""
    return f"{_MOVING[counts.action]} {int(100 * share)}% of {size(counts.total)}{left}"


@dataclass(frozen=True, slots=True)
class Display:
    """How the progress of a run is shown.

    Attributes:
        style: a bar, lines of JSON, or nothing.
        every: seconds between two lines of JSON.
        source: name of the source.
        dest: name of the destination.
        meters: the last meter of each action.
    """

    style: Style = "none"
    every: float = 10.0
    source: str = ""
    dest: str = ""
    meters: dict[str, Meter] = field(default_factory=dict, repr=False, compare=False)

    @property
    def pause(self) -> float:
        """Return the seconds between two updates."""
        return min(self.every, _BAR_EVERY) if self.style == "bar" else self.every

    def between(self, source: str, dest: str) -> Display:
        """Return the display for a run from a source to a destination."""
        return replace(self, source=redact(source), dest=redact(dest))

    def counts(self) -> list[Counts]:
        """Return what the meters have counted, in the order in which the actions began."""
        return [meter.counts() for meter in list(self.meters.values())]


def display(progress: str, every: float) -> Display:
    """Return the display for a value of `--progress`; `auto` is a bar on a terminal, and else JSON."""
    if progress == "auto":
        progress = "bar" if sys.stderr.isatty() else "json"
    styles: dict[str, Style] = {"bar": "bar", "json": "json"}
    return Display(styles.get(progress, "none"), every)


class Meter:
    """A counter that many threads add to and one thread prints."""

    def __init__(self, action: str, shown: Display, total: int, files: int, done: int = 0) -> None:
        """Start counting.

        Args:
            action: `check`, `fetch` or `unpack`.
            shown: how the progress is shown.
            total: bytes in all.
            files: files in all.
            done: bytes that were there before, which count as done and not for the speed.
        """
        self._action = action
        self._shown = shown
        self._total = total
        self._files = files
        self._before = done
        self._lock = threading.Lock()
        self._added = 0
        self._lost = 0
        self._completed = 0
        self._samples = deque([(time.monotonic(), 0)])
        shown.meters[action] = self

    def add(self, count: int) -> None:
        """Count bytes that were just fetched."""
        with self._lock:
            self._added += count

    def have(self, count: int) -> None:
        """Count bytes that need not be fetched."""
        with self._lock:
            self._before += count

    def lose(self, count: int) -> None:
        """Count bytes that were damaged and are fetched again."""
        with self._lock:
            self._lost += count

    def complete_file(self) -> None:
        """Count a file that is complete."""
        with self._lock:
            self._completed += 1

    @property
    def added(self) -> int:
        """Return the bytes counted with `add`, including those fetched twice."""
        return self._added

    def counts(self) -> Counts:
        """Return what was counted."""
        with self._lock:
            return self._counts()

    def _counts(self) -> Counts:
        done = min(self._total, max(0, self._before + self._added - self._lost))
        return Counts(self._action, self._added, self._lost, done, self._total, self._completed, self._files)

    def wait(self) -> float:
        """Return the seconds until the next update is due."""
        return max(0.0, self._samples[-1][0] + self._shown.pause - time.monotonic())

    def update(self) -> None:
        """Show the progress if an update is due."""
        with self._lock:
            now = time.monotonic()
            if now - self._samples[-1][0] >= self._shown.pause:
                self._show(now)

    def finish(self) -> None:
        """Show the end of the action."""
        with self._lock:
            if self._files:
                self._show(time.monotonic())
        if self._shown.style == "bar":
            show_status("")

    def _show(self, now: float) -> None:
        window = max(self._shown.pause, _WINDOW)
        while len(self._samples) > 1 and now - self._samples[1][0] >= window:
            self._samples.popleft()
        then, before = self._samples[0]
        self._samples.append((now, self._added))
        speed = (self._added - before) / max(now - then, 0.001)
        done = self._counts().done
        left = (self._total - done) / speed if speed > 0 else None
        if self._shown.style == "json":
            emit(self._json(done, speed, left))
        elif self._shown.style == "bar":
            show_status(self._bar(done, speed, left))

    def _json(self, done: int, speed: float, left: float | None) -> str:
        fields = {
            "time": timestamp(time.time()),
            "event": "progress",
            "action": self._action,
            "source": self._shown.source,
            "dest": self._shown.dest,
            "bytes": done,
            "bytesTotal": self._total,
            "files": self._completed,
            "filesTotal": self._files,
            "bytesPerSecond": round(speed),
            "etaSeconds": None if left is None else round(left, 1),
        }
        return json.dumps(fields)

    def _bar(self, done: int, speed: float, left: float | None) -> str:
        share = done / self._total if self._total else 1.0
        cells = int(share * _BAR_CELLS)
        eta = "" if left is None else f", about {duration(left)} left"
        line = (
            f"{_MOVING[self._action]} {int(100 * share):3d}% [{'#' * cells}{'.' * (_BAR_CELLS - cells)}] "
            f"{size(done)} of {size(self._total)}, {self._completed} of {self._files} files, "
            f"{speed / 1e6:.1f} MB/s{eta}"
        )
        return line[: max(1, _columns() - 1)]


def _columns() -> int:
    """Return the width of the terminal, 80 if it is not known."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
