"""Waits until the leader of a group is gone: `wait_for_leader.py LEADER PORT SECONDS`.

Kubernetes does not expand variables in a hook, so this does.
"""

import os
import re
import socket
import sys
import time


def main(leader: str, port: int, seconds: float) -> None:
    """Wait until nothing answers at a port of the leader, but no longer than some seconds."""
    host = re.sub(r"\$\((\w+)\)", lambda found: os.environ[found[1]], leader)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection((host, port), 5).close()
        except OSError:
            break
        time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
