"""What a process of templates could do if a template left the sandbox. `test_extension_limits.py` runs it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable

import msgspec


def prepare() -> None:
    """Load nothing."""


def answer(request: bytes, report: Callable[[int], None]) -> bytes:
    """Do what the request names, and return what came of it."""
    report(7)
    return msgspec.json.encode(ACTIONS[request.decode()]())


def _write() -> object:
    with open("/tmp/kaigen-probe", "w", encoding="utf-8") as file:
        return file.write("x")


def _thread() -> object:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return "started"


def _sleep_deaf() -> None:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    time.sleep(60)


def _tried(action: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        try:
            return str(action())
        except Exception as error:
            return type(error).__name__

    return run


def _descriptors() -> list[int]:
    found = []
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


ACTIONS: dict[str, Callable[[], object]] = {
    "read a file": _tried(lambda: os.listdir("/etc")),
    "write a file": _tried(_write),
    "open a socket": _tried(socket.socket),
    "start a thread": _tried(_thread),
    "environment": lambda: sorted(os.environ),
    "descriptors": _descriptors,
    "folder": os.getcwd,
    "sleep": lambda: time.sleep(60),
    "sleep deaf": _sleep_deaf,
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exhaust memory": lambda: bytes(1 << 40),
    "answer too much": lambda: "x" * (40 << 20),
    "nothing": lambda: None,
}
