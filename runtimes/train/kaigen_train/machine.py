"""The number of processors that this container may use, which PyTorch does not check."""

from __future__ import annotations

import math
import os
from pathlib import Path


def cpus(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return the processors that this process may use: its affinity, or the CPU limit if that is lower.

    Args:
        limit: file in which the kernel shows the limit of the control group.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = limit.read_text("ascii").split()
        return max(1, min(allowed, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or `max`
        return allowed
