"""Measure commands in rounds, each command once per round."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.command import Command, CommandFailed, Sample, discard, run
from benchmarks.objects import NotTheSame

PATIENCE_S = 60.0
"""A peer that takes longer than this, in seconds, runs only once."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a table.

    Attributes:
        name: the name of the row.
        command: the command to measure.
        before: prepares each run; not measured.
        check: checks the result of the first run; may raise `NotTheSame`.
        is_peer: whether the benchmark continues without it when it fails or takes too long.
    """

    name: str
    command: Command
    before: Callable[[], None] | None = None
    check: Callable[[], None] | None = None
    is_peer: bool = False


def fresh(command: Command) -> Callable[[], None]:
    """Return a function that removes the result of the previous run."""
    return lambda: discard(command.output)


def measure(contenders: Sequence[Contender], runs: int, about: str) -> Mapping[str, Sequence[Sample]]:
    """Run every contender once to warm up, then `runs` rounds of all of them: A B C A B C.

    Other work on the machine affects all of them in the same round, so that ratios within a round stay valid.

    Args:
        contenders: the commands to measure.
        runs: number of rounds.
        about: the name of the measurement in the progress line.

    Returns:
        Samples by name, one per round. A peer that failed has none; a peer slower than `PATIENCE_S` has the sample of
        its warm-up.

    Raises:
        CommandFailed: kaigen failed.
        NotTheSame: kaigen wrote objects that differ.
    """
    samples: dict[str, list[Sample]] = {}
    steady = []
    for contender in contenders:
        _progress(f"{about}: warming up {contender.name}")
        try:
            first = _once(contender)
            if contender.check is not None:
                contender.check()
        except (CommandFailed, NotTheSame) as error:
            if not contender.is_peer:
                raise
            why = error.reason() if isinstance(error, CommandFailed) else str(error)
            _warn(f"{about}: skipped {contender.name}: {why}")
            continue
        if contender.is_peer and first.wall_s > PATIENCE_S:
            samples[contender.name] = [first]
        else:
            samples[contender.name] = []
            steady.append(contender)
    for number in range(1, runs + 1):
        _progress(f"{about}: round {number} of {runs}")
        for contender in steady:
            samples[contender.name].append(_once(contender))
    _progress("")
    return samples


def _once(contender: Contender) -> Sample:
    if contender.before is not None:
        contender.before()
    return run(contender.command)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:100]}", end="", file=sys.stderr, flush=True)


def _warn(text: str) -> None:
    _progress("")
    print(text, file=sys.stderr)
