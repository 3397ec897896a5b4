"""What was measured: tables of rows, and how the targets fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.command import Sample


@dataclass(frozen=True, slots=True)
class Row:
    """One command.

    Attributes:
        name: what it is called.
        samples: one a round.
        ratios: its time over the ruler's, round by round.
        cpu_ratio: its processor time over the ruler's, by their medians; 0 without a ruler.
    """

    name: str
    samples: Sequence[Sample]
    ratios: Sequence[float]
    cpu_ratio: float

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    @property
    def peak_kib(self) -> int:
        """The most memory that any run held."""
        return max(sample.peak_kib for sample in self.samples)


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio that kaigen shall keep.

    Attributes:
        what: what is compared.
        ratio: what was measured, by the clock.
        cpu_ratio: the same by processor time, which other work on the machine hardly changes.
        limit: what it must not pass.
        at_least: whether the limit is the lowest, not the highest.
    """

    what: str
    ratio: float
    cpu_ratio: float
    limit: float
    at_least: bool = False

    @property
    def held(self) -> bool:
        """Whether it is kept."""
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit


@dataclass(slots=True)
class Table:
    """Commands that were measured in the same rounds.

    Attributes:
        title: what was asked.
        ruler: the row that the others are compared with.
        rows: every command.
        targets: how the targets fared.
        notes: what else there is to say.
    """

    title: str
    ruler: str
    rows: Sequence[Row]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, name: str) -> Row | None:
        """A row by its name; None when it was left out."""
        return next((row for row in self.rows if row.name == name), None)

    def expect(self, name: str, what: str, limit: float, *, at_least: bool = False) -> None:
        """Hold a row against a target; nothing when the row was left out."""
        row = self.row(name)
        if row is not None and row.ratios:
            self.targets.append(Target(what, row.ratio, row.cpu_ratio, limit, at_least))


def tabulate(title: str, samples: Mapping[str, Sequence[Sample]], ruler: str) -> Table:
    """Make a table of samples.

    Args:
        title: what was asked.
        samples: by name, one a round.
        ruler: the name that the others are compared with; without its samples there are no ratios.
    """
    measured = samples.get(ruler, ())
    rows = [
        Row(name, own, _ratios(own, measured), _cpu_ratio(own, measured)) for name, own in samples.items()
    ]
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
