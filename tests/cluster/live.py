"""The commands `kaigen` and `egpu`, run as a user of a cluster does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.apps import CLAIM, JOB, POD
from tests.cluster.plane import Plane

SMALL = ("--cpu", "50m", "--memory", "64Mi")
_BIN = Path(sys.executable).parent


def call(plane: Plane, *words: str, folder: Path | None = None, code: int | None = 0) -> str:
    """Run a command to its end, and return everything that it printed.

    Args:
        plane: the cluster.
        words: `kaigen` or `egpu`, and its arguments.
        folder: working folder.
        code: the expected exit code; None for any.

    Raises:
        AssertionError: it exited with another code; the text is what it printed.
    """
    with start(plane, *words, folder=folder) as process:
        printed = process.communicate(timeout=300)[0]
    assert code is None or process.returncode == code, f"{' '.join(words)}: {process.returncode}\n{printed}"
    return printed


@contextmanager
def start(
    plane: Plane,
    *words: str,
    folder: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the network of a cluster during the block; its errors are among its output."""
    argv: Sequence[str] = [str(_BIN / words[0]), *words[1:]]
    process = subprocess.Popen(
        plane.network.command(argv),
        cwd=folder,
        env=os.environ | {"KUBECONFIG": str(plane.kubeconfig), "TERM": "xterm"},
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def objects(plane: Plane, namespace: str) -> set[str]:
    """Return the live Jobs, pods and claims of a namespace, without those that are being deleted."""
    return {
        f"{kind.rpartition('/')[2]}/{item['metadata']['name']}"
        for kind in (JOB, POD, CLAIM)
        for item in plane.client.objects(kind, namespace)
        if "deletionTimestamp" not in item["metadata"]
    }
