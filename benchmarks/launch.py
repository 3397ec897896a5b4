"""Runs one command and tells what it took. A program of its own, started with `python -I -S`.

The peak memory that a system tells of a process includes what its parent held when it was started. This
parent is small and always of the same size, whatever the benchmark itself holds by then.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    """Read a command from the first argument, as JSON; print what running it took, as JSON."""
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
    unit = 1024 if sys.platform == "darwin" else 1  # bytes there, KiB elsewhere
    told = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_s": wall,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_kib": usage.ru_maxrss // unit,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
