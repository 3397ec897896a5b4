"""Processes that evaluate templates and patches of users: one for each of the two, started when it is first needed.

A process has no file, no socket, no environment and no memory of this one, and its own limits of time and memory. When
it reaches one it ends, and the next request starts a new one. Where the system has no such limits (Windows), requests
are evaluated in this process.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from msgspec import Struct

import kaigen
from kaigen.diagnostics.errors import InvalidLimit, KaigenError, SystemFailure
from kaigen.extend import child
from kaigen.system.limits import EXTENSION_ANSWER_MIB, EXTENSION_MEMORY, EXTENSION_TIME

TEMPLATES = "kaigen.extend.template_process"
PATCHES = "kaigen.extend.patch_process"
"""The modules that processes run."""

_START = (
    "import sys; sys.path[:] = sys.argv[4:]; from kaigen.extend.child import main; "
    "main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"
)
_INHERITED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""Variables without which some builds of Python do not start."""
_START_S = 120
_WAITING = 3
"""How many times longer than its processor time a request may take, on a machine that is busy."""
_GRACE_S = 1.0
_FRAME = re.compile(r'File "template:([0-9]{1,9})", line ([0-9]{1,9})')


class Stopped(KaigenError):
    """A process ended before it answered.

    Attributes:
        message: why, without the subject.
        place: the number that the process last reported.
        line: number of a template and line of its code that was running; None where it is not known.
    """

    def __init__(self, message: str, hint: str, place: int, line: tuple[int, int] | None) -> None:
        super().__init__(message, hint=hint)
        self.message = message
        self.place = place
        self.line = line


def out_of_memory(place: int) -> Stopped:
    """Return why a process ended that has no memory left.

    Args:
        place: the number that it last reported.
    """
    message = f"needed more than {EXTENSION_MEMORY.read():,} MiB of memory and was stopped"
    return Stopped(message, EXTENSION_MEMORY.hint, place, None)


def unreadable(error: ValueError) -> Stopped:
    """Return why an answer is of no use: a process that works as it should never sends it."""
    return Stopped(f"has an answer that cannot be read: {error}", "", 0, None)


class _Key(Struct, frozen=True):
    """What a process is started for."""

    module: str
    seconds: int
    mebibytes: int


class _Process:
    """A running process."""

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.owner = os.getpid()
        self._ready = False
        self._socket, theirs = socket.socketpair()
        flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        arguments = [sys.executable, *flags, "-c", _START, key.module, str(key.seconds), str(key.mebibytes)]
        try:
            self._process = subprocess.Popen(
                [*arguments, *_search_path()],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=os.sep,
                env={name: os.environ[name] for name in _INHERITED if name in os.environ},
            )
        except OSError as error:
            self._socket.close()
            raise _no_start(str(error)) from None
        finally:
            theirs.close()

    def ask(self, request: bytes) -> bytes:
        """Return the answer to a request.

        Raises:
            Stopped: the process ended, or was ended, before it answered.
        """
        place = 0
        seconds = self.key.seconds * _WAITING
        try:
            self._wait_until_ready()
            end = time.monotonic() + seconds if seconds else None
            self._socket.settimeout(seconds or None)
            self._socket.sendall(child.head(child.ANSWER, len(request)) + request)
            while True:
                kind, content = self._receive(end)
                if kind == child.ANSWER:
                    return content
                if kind == child.BUG:
                    raise RuntimeError(f"in the process {self.key.module}: {content.decode()}")
                if kind == child.MEMORY:
                    raise out_of_memory(place)
                place = int.from_bytes(content, "big")
        except TimeoutError:
            if not self._ready:
                raise _no_start(f"nothing in {_START_S} s") from None
            message = f"took more than {seconds} s and was stopped"
            raise Stopped(message, EXTENSION_TIME.hint, place, _running(self._dump())) from None
        except (EOFError, ConnectionError):
            raise self._ended(place) from None

    def _wait_until_ready(self) -> None:
        if not self._ready:
            self._receive(time.monotonic() + _START_S)
            self._ready = True

    def _receive(self, end: float | None) -> tuple[bytes, bytes]:
        first = self._read(child.HEAD, end)
        size = int.from_bytes(first[1:], "big")
        if size > EXTENSION_ANSWER_MIB << 20:
            raise ConnectionError
        return first[:1], self._read(size, end)

    def _read(self, size: int, end: float | None) -> bytes:
        parts = []
        while size:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _ended(self, place: int) -> Stopped:
        """Return why the process ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        code = self._process.returncode
        dump = self._dump()
        if not self._ready:
            raise _no_start(dump.strip().rpartition("\n")[2] or f"it ended with code {code}")
        if code == -signal.SIGXCPU:
            message = f"took more than {self.key.seconds} s and was stopped"
            return Stopped(message, EXTENSION_TIME.hint, place, _running(dump))
        if code is None:
            return Stopped(f"produced more than {EXTENSION_ANSWER_MIB} MiB and was stopped", "", place, None)
        if code >= 0:
            raise RuntimeError(f"the process {self.key.module} ended with code {code}: {dump}")
        return Stopped(f"ended its process by signal {-code}", EXTENSION_MEMORY.hint, place, _running(dump))

    def _dump(self) -> str:
        """End the process, and return where it was."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGXCPU)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._kill()
        assert self._process.stderr is not None
        errors = self._process.stderr.fileno()
        os.set_blocking(errors, False)
        with suppress(BlockingIOError):
            return os.read(errors, 1 << 16).decode("ascii", "replace")
        return ""

    def end(self) -> None:
        """End the process."""
        self._socket.close()
        self._kill()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _no_start(reason: str) -> SystemFailure:
    return SystemFailure(
        f"{sys.executable} does not start the process for templates and patches: {reason}",
        hint="run kaigen with a Python that has kaigen's packages",
    )


def _search_path() -> list[str]:
    """Return where the process finds modules: as this one, without the working folder."""
    own = str(Path(kaigen.__file__).absolute().parent.parent)
    return [own, *(path for path in sys.path if os.path.isabs(path) and path != own)]


def _running(dump: str) -> tuple[int, int] | None:
    """Return the template that was running, by its number, and the line of its code."""
    found = _FRAME.search(dump)
    return (int(found[1]), int(found[2])) if found else None


_lock = threading.RLock()
"""A process answers one request after the other."""
_processes: dict[str, _Process] = {}
_of_others: list[_Process] = []
"""Processes of the process that this one is a fork of, which must not use them."""


def ask(module: str, request: bytes) -> bytes:
    """Return the answer of a process to a request.

    Args:
        module: `TEMPLATES` or `PATCHES`.
        request: as `kaigen.extend.wire` encodes it.

    Raises:
        Stopped: the process ended, or was ended, before it answered.
        InvalidLimit: a limit in the environment is not a number.
    """
    if sys.platform == "win32" or not sys.executable:
        answer: bytes = import_module(module).answer(request, lambda _: None)
        return answer
    with _lock:
        process = _process_of(module)
        try:
            return process.ask(request)
        except BaseException:
            # Also when a limit of the run interrupts: the answer would be that of the next request.
            forget(module)
            raise


def forget(module: str) -> None:
    """End the process of a module; the next request starts a new one."""
    with _lock:
        process = _processes.pop(module, None)
        if process is not None:
            process.end()


def _process_of(module: str) -> _Process:
    try:
        key = _Key(module, EXTENSION_TIME.read(), EXTENSION_MEMORY.read())
    except ValueError as error:
        raise InvalidLimit(str(error)) from None
    known = _processes.get(module)
    if known is not None and known.owner != os.getpid():
        _of_others.append(_processes.pop(module))
        known = None
    if known is not None and known.key != key:
        forget(module)
        known = None
    if known is None:
        known = _processes[module] = _Process(key)
    return known


@atexit.register
def _end() -> None:
    for module in list(_processes):
        if _processes[module].owner == os.getpid():
            forget(module)
