"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

from kaigen.core.text import printable
from kaigen.diagnostics.errors import KaigenError
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.diagnostics import report as diagnostics_report
    from kaigen.diagnostics.reporters import summary

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.system.progress import Progress


class Console:
    """Output of one run.

    Attributes:
        verbosity: -1 for errors only, 0 by default, 1 and more for details.
        color: `auto`, `always` or `never`.
    """

    def __init__(self, verbosity: int = 0, color: str = "auto") -> None:
        self.verbosity = verbosity
        self.color = color

    def colored(self, *, err: bool) -> bool:
        """Return whether a stream is colored."""
        if self.color != "auto":
            return self.color == "always"
        stream = sys.stderr if err else sys.stdout
        return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()

    def width(self) -> int:
        """Return the width of the terminal; 100 columns without one."""
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):
            return 100

    def out(self, text: str = "") -> None:
        """Print a line of the result."""
        click.echo(text, color=self.colored(err=False))

    def write(self, text: str) -> None:
        """Print a part of the result, without adding a line end."""
        click.echo(text, nl=False, color=self.colored(err=False))

    def say(self, text: str, *, level: int = 0) -> None:
        """Print a message, unless the verbosity is below the level."""
        if self.verbosity >= level:
            self._err(text)

    def report(self, diagnostics: Sequence[Diagnostic], files: Iterable[str] = ()) -> None:
        """Print diagnostics as text on standard error."""
        text = diagnostics_report.render_report(diagnostics, "text", color=self.colored(err=True), files=list(files))
        self._err(text.rstrip("\n"))
        if diagnostics and sys.stderr.isatty():
            self.say(f"explain a code with: kaigen explain {diagnostics[0].code}")

    def failure(self, error: KaigenError) -> None:
        """Print an error without a place in a file."""
        label = click.style("error:", fg="red", bold=True) if self.colored(err=True) else "error:"
        self._err(f"{label} {_quoted(str(error))}")
        if error.hint:
            self._err(f"  = hint: {_quoted(error.hint)}")

    def _err(self, text: str) -> None:
        """Print a line on standard error, in which GitHub's runner would obey `##[command]` at any place."""
        colored = self.colored(err=True)
        shown = text if colored else click.unstyle(text)
        click.echo(shown.replace("##[", "# ["), err=True, color=colored)


def _quoted(text: str) -> str:
    """Return text whose further lines start with a bar, so that no line of a file name is a command for a pipeline."""
    return "\n  | ".join(summary.safe_text(line) for line in text.split("\n"))


def _cell(text: str) -> str:
    return printable(text, "�").replace("##[", "# [")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with aligned columns; the first row is the header.

    A cell is on one line, without characters that a terminal acts on and without `##[`, a command of GitHub's runner.
    """
    rows = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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
