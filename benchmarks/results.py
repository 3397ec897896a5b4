"""Tables of measurements and their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.command import Sample


@dataclass(frozen=True, slots=True)
class Row:
    """One command.

    Attributes:
        name: its name in the table.
        samples: one per round.
        ratios: its time divided by the ruler's, per round.
        cpu_ratio: its median processor time divided by the ruler's; 0 without a ruler.
    """

    name: str
    samples: Sequence[Sample]
    ratios: Sequence[float]
    cpu_ratio: float

    @property
    def ratio(self) -> float:
        """Return the median of the ratios."""
        return median(self.ratios)

    @property
    def peak_kib(self) -> int:
        """Return the peak memory of all runs."""
        return max(sample.peak_kib for sample in self.samples)


@dataclass(frozen=True, slots=True)
class Target:
    """A limit on a ratio.

    Attributes:
        what: the comparison.
        ratio: the measured ratio of elapsed time.
        cpu_ratio: the same ratio of processor time, which depends less on other work on the machine.
        limit: the limit of the ratio.
        at_least: whether the limit is a minimum and not a maximum.
    """

    what: str
    ratio: float
    cpu_ratio: float
    limit: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the ratio is within the limit."""
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit


@dataclass(slots=True)
class Table:
    """Commands that were measured in the same rounds.

    Attributes:
        title: the heading.
        ruler: the row the others are compared with.
        rows: every command.
        targets: the targets and their measured ratios.
        notes: remarks below the table.
    """

    title: str
    ruler: str
    rows: Sequence[Row]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> Row | None:
        """Return a row by name, or None if it was not measured."""
        return next((row for row in self.rows if row.name == name), None)

    def expect(self, name: str, what: str, limit: float, *, at_least: bool = False) -> None:
        """Add a target for a row, unless the row was not measured."""
        row = self.row(name)
        if row is not None and row.ratios:
            self.targets.append(Target(what, row.ratio, row.cpu_ratio, limit, at_least))


def tabulate(title: str, samples: Mapping[str, Sequence[Sample]], ruler: str) -> Table:
    """Return a table of samples.

    Args:
        title: the heading.
        samples: one per round, by name.
        ruler: the name the others are compared with; without its samples there are no ratios.
    """
    measured = samples.get(ruler, ())
    rows = [Row(name, own, _ratios(own, measured), _cpu_ratio(own, measured)) for name, own in samples.items()]
    return Table(title, ruler, rows)


def _ratios(own: Sequence[Sample], ruler: Sequence[Sample]) -> list[float]:
    if not ruler:
        return []
    if len(own) == len(ruler):
        return [mine.wall_s / other.wall_s for mine, other in zip(own, ruler, strict=True)]
    usual = median(sample.wall_s for sample in ruler)
    return [sample.wall_s / usual for sample in own]


def _cpu_ratio(own: Sequence[Sample], ruler: Sequence[Sample]) -> float:
    if not ruler:
        return 0.0
    return median(sample.cpu_s for sample in own) / median(sample.cpu_s for sample in ruler)
