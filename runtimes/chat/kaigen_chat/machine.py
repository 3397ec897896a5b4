"""The number of processors that this container may use, which PyTorch does not check."""

from __future__ import annotations

import math
import os
from pathlib import Path


def cpus(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the processors that this process may use: its affinity, or the CPU limit if that is lower.

    Args:
        cgroups: where the kernel shows control groups; both versions are read.
    """
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
    limit = _limit(cgroups)
    return allowed if limit is None else max(1, min(allowed, math.ceil(limit)))


def _limit(cgroups: Path) -> float | None:
    words = _words(cgroups / "cpu.max")
    if len(words) == 2:
        return None if words[0] == "max" else int(words[0]) / int(words[1])
    quota, period = (_words(cgroups / "cpu" / "cpu.cfs_quota_us"), _words(cgroups / "cpu" / "cpu.cfs_period_us"))
    if quota and period and int(quota[0]) > 0:
        return int(quota[0]) / int(period[0])
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
