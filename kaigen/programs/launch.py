"""Starts an engine that finds a module of this folder: `launch.py MODULE COMMAND ...`.

The variable PYTHONPATH of the image stays. A container that starts again drains no more.
"""

import os
import sys

DRAINING = "/tmp/kaigen/draining"


def main(module: str, *command: str) -> None:
    """Become the engine of a command line, which finds the module of a path."""
    os.makedirs(os.path.dirname(DRAINING), exist_ok=True)
    if os.path.exists(DRAINING):
        os.remove(DRAINING)
    folders = (os.path.dirname(module), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
