"""How far an upload or download is: a bar on a terminal, else a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from kaigen.cli.console import Console
from kaigen.cli.live.session import size_text
from kaigen.cli.progress import TerminalLine, is_terminal

if TYPE_CHECKING:
    from kaigen.system.progress import Progress

LINE_S = 10.0
"""Seconds between two lines where there is no terminal."""
_BAR = 16
"""Characters of a full bar."""


@contextmanager
def transfer_line(console: Console) -> Iterator[Progress | None]:
    """Yield the function that receives the bytes of a transfer; None with `--quiet`."""
    if console.verbosity < 0:
        yield None
        return
    if not is_terminal():
        yield _plain(console)
        return
    line = TerminalLine()
    try:
        yield _reporter(line.show, bar=True)
    finally:
        line.clear()


def _plain(console: Console) -> Progress:
    due = monotonic() + LINE_S

    def show(text: str) -> None:
        nonlocal due
        if monotonic() >= due:
            due = monotonic() + LINE_S
            console.say(text)

    return _reporter(show, bar=False)


def _reporter(show: Callable[[str], None], *, bar: bool) -> Progress:
    start = monotonic()

    def report(what: str, done: int, total: int) -> None:
        rate = done / max(monotonic() - start, 0.001)
        filled = _BAR * done // max(total, 1)
        state = f"[{'#' * filled}{'.' * (_BAR - filled)}]" if bar else f"{100 * done // max(total, 1)}%"
        left = f", {_time((total - done) / rate)} left" if rate and done < total else ""
        show(f"{what} {state} {size_text(done)} of {size_text(total)}, {size_text(int(rate))}/s{left}")

    return report


def _time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
