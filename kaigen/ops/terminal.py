"""A shell in a pod on the terminal of this process."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from kaigen.cluster.client import Cluster
from kaigen.cluster.execution import PING_S, CommandStream
from kaigen.diagnostics.errors import SystemFailure

_CHUNK = 4096


def shell(cluster: Cluster, namespace: str, pod: str) -> int:
    """Connect the terminal with a shell in a pod until it ends, and return its exit code.

    Raises:
        SystemFailure: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise SystemFailure("a shell needs a terminal", hint="run a command instead: debug JOB -- COMMAND")
    stdin, stdout = sys.stdin.fileno(), sys.stdout.fileno()
    with CommandStream(cluster, namespace, pod, ["sh"], stdin=True, tty=True) as run, _raw(stdin):
        _resize(run)
        signal.signal(signal.SIGWINCH, lambda _number, _frame: _resize(run))
        try:
            while True:
                ready = [run] if run.has_output() else select.select([run, stdin], [], [], PING_S)[0]
                if not ready:
                    run.ping()
                if run in ready:
                    item = run.read()
                    if item is None:
                        return run.exit_code
                    os.write(stdout, item[1] if item[0] == 1 else b"")
                if stdin in ready:
                    data = os.read(stdin, _CHUNK)
                    if not data or not run.send(data):
                        return run.exit_code
        finally:
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)


def _resize(run: CommandStream) -> None:
    size = shutil.get_terminal_size()
    run.resize(size.columns, size.lines)


@contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Pass each key to the shell, Ctrl-C included."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed while the pod started is kept
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
