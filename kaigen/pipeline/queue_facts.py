"""What an app has to do with queues: data that the cache stores."""

from __future__ import annotations

from msgspec import Struct

from kaigen.core.json_types import Json, JsonObject


class QueueFacts(Struct, frozen=True, array_like=True):
    """The queues that an app defines, and what it puts into queues.

    Attributes:
        objects: the objects of Kueue, each with its namespace.
        workloads: what waits in a queue, each a `kaigen.kubernetes.workload.Workload` as plain data: renders that
            compile nothing do not import it.
    """

    objects: tuple[tuple[str, JsonObject], ...] = ()
    workloads: tuple[Json, ...] = ()
