"""What the objects of an app request of GPUs: data that the cache stores."""

from __future__ import annotations

from msgspec import Struct

ScaledKey = tuple[str, str, str]
"""Namespace, kind and name of an object that an autoscaler may scale."""


class GpuObject(Struct, frozen=True, array_like=True):
    """An object whose pods request GPUs.

    Attributes:
        key: its namespace, kind and name.
        gpus: what its pods request together, without an autoscaler.
        each: what one replica requests; 0 for an object that no autoscaler scales.
        unlimited: why it may make any number of pods; empty for one with a limit.
        surge: how many replicas a rollout starts before it stops old ones.
        surge_percent: the same as a share of the replicas, which is rounded up.
        hour: price of an hour of its pods, without an autoscaler and rollouts; None when it is unknown.
        hour_each: price of an hour of one replica; 0 for an object that no autoscaler scales.
    """

    key: ScaledKey
    gpus: int
    each: int = 0
    unlimited: str = ""
    surge: int = 0
    surge_percent: int = 0
    hour: float | None = None
    hour_each: float = 0

    def most(self, replicas: int) -> int:
        """Return what its pods request at most, if an autoscaler may set as many replicas."""
        surge = self.surge if replicas else 0
        return max(self.gpus, self.each * (replicas + surge - (-replicas * self.surge_percent // 100)))

    def most_an_hour(self, replicas: int) -> float | None:
        """Return what its pods cost in an hour at most; None when it is unknown."""
        return None if self.hour is None else max(self.hour, self.hour_each * replicas)


class GpuFacts(Struct, frozen=True, array_like=True):
    """The objects of an app that request GPUs, and its autoscalers.

    Attributes:
        objects: those that request GPUs.
        replicas: the most replicas that its autoscalers set, each with what it scales.
    """

    objects: tuple[GpuObject, ...] = ()
    replicas: tuple[tuple[ScaledKey, int], ...] = ()
