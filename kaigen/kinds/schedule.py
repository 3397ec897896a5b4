"""Times of the day and the week: of runs of a Job, of a Notebook, and of more replicas of a Topology."""

from typing import Annotated, Literal

from msgspec import Meta

from kaigen.kinds.base import Duration, text
from kaigen.kinds.block import Block

_FIELD = "[0-9A-Za-z*?,/-]+"
_FIELDS = f"{_FIELD}(?: +{_FIELD}){{4}}"
CRON = f"^(@[a-z]+( [0-9.a-z]+)?|{_FIELDS})$"
"""The form of a cron expression; the checks of a CronJob read its fields."""

_ZONE = "^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*$"

Cron = Annotated[
    str,
    text(
        CRON,
        max_length=200,
        description="When runs start: minute, hour, day of the month, month and day of the week, or a word such as "
        "`@daily`.",
        examples=["0 2 * * *", "30 6 * * MON-FRI"],
    ),
]


TimeZone = Annotated[
    str,
    text(
        _ZONE,
        max_length=64,
        description="Time zone of the times, by its name in the time zone database.",
        examples=["Europe/Berlin"],
    ),
]

Moment = Annotated[str, text(f"^{_FIELDS}$", max_length=200)]


class Hours(Block):
    """Times between which something runs."""

    start: Annotated[
        Moment,
        Meta(
            description="When it starts: minute, hour, day of the month, month and day of the week.",
            examples=["0 6 * * MON-FRI"],
        ),
    ]
    end: Annotated[Moment, Meta(description="When it stops.", examples=["0 20 * * MON-FRI"])]
    time_zone: TimeZone = "Etc/UTC"


class Window(Hours):
    """Times between which at least a number of replicas runs."""

    replicas: Annotated[int, Meta(ge=1, le=1000, description="Least number of replicas between the two.")]


class KeptRuns(Block):
    """How many finished runs are kept, with their pods and logs. The results in the output stay."""

    completed: Annotated[int, Meta(ge=0, le=1000, description="Number of completed runs to keep.")] = 3
    failed: Annotated[int, Meta(ge=0, le=1000, description="Number of failed runs to keep.")] = 3


class Schedule(Block):
    """Times at which runs start."""

    cron: Cron
    time_zone: TimeZone = "Etc/UTC"
    concurrency: Annotated[
        Literal["Forbid", "Allow", "Replace"],
        Meta(
            description="What happens when a run is due and the last one still runs. `Forbid`: the new run is left "
            "out; `Allow`: both run; `Replace`: the last one is deleted."
        ),
    ] = "Forbid"
    starting_deadline: Annotated[
        Duration,
        Meta(
            description="How late a run may start, for example because the schedule was suspended. A run that is later "
            "is left out."
        ),
    ] = "1h"
    keep: Annotated[
        Annotated[int, Meta(ge=0, le=1000)] | KeptRuns,
        Meta(
            description="Number of finished runs to keep, of completed and of failed ones each, or a block.",
            examples=[5],
        ),
    ] = 3
    suspend: Annotated[bool, Meta(description="Start no further runs. A run in progress continues.")] = False
