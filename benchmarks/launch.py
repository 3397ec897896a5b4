"""Run one command and print its time and memory. A program of its own, started with `python -I -S`.

The peak memory that a system reports for a process includes its parent's memory at the start. This parent is small and
always the same size, however large the benchmark has become.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    """Read a command as JSON from the first argument; print its measurements as JSON."""
    task = json.loads(sys.argv[1])
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, task["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
    ]
    os.chdir(task["cwd"])
    arguments = task["argv"]
    started = time.perf_counter()
    process = os.posix_spawn(arguments[0], arguments, task["env"], file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - started
    unit = 1024 if sys.platform == "darwin" else 1  # macOS reports bytes, others KiB
    result = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_kib": usage.ru_maxrss // unit,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
