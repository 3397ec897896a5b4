"""One line on a terminal that says how far long work is, and goes when the work is done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaigen.cli.console import Console
    from kaigen.system.progress import Progress

DELAY_S = 0.5
"""Work that is done sooner says nothing."""
INTERVAL_S = 0.1


class TerminalLine:
    """The progress line of a terminal. Blanks overwrite the previous text, so no escape sequence is needed."""

    def __init__(self) -> None:
        self._next = monotonic() + DELAY_S
        self._shown = 0

    def update(self, what: str, done: int, total: int) -> None:
        """Show how many items of work are done."""
        self.show(f"{what} {done:,} of {total:,} …")

    def show(self, text: str) -> None:
        """Show a text, unless the last one is too new."""
        now = monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL_S
        self._write(text)

    def clear(self) -> None:
        """Remove the text."""
        if self._shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        # The last column is left free: a terminal may begin a new line behind it.
        text = text[: max(_columns() - 1, 0)]
        sys.stderr.write("\r" + text.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(text)


@contextmanager
def progress_line(console: Console) -> Iterator[Progress | None]:
    """Yield the function that receives progress; None if it would not be visible.

    That is when standard error is not a terminal, or one that cannot go back on its line, and with `--quiet`.
    """
    if console.verbosity < 0 or not is_terminal():
        yield None
        return
    line = TerminalLine()
    try:
        yield line.update
    finally:
        line.clear()


def is_terminal() -> bool:
    """Return whether standard error is a terminal that can go back on its line."""
    return os.environ.get("TERM", "dumb") != "dumb" and sys.stderr.isatty()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
