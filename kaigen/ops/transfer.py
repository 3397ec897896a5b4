"""Files to a volume and back, by tar in a pod that mounts it, with checksums at the other end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import StreamBroken
from kaigen.cluster.execution import CommandStream, run_command
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.ops.archive import Entry, Received, content_of, digest_of_start, mode_of, read_archive, write_archive
from kaigen.system.progress import Progress

_Result = TypeVar("_Result")

_STDOUT, _STDERR = 1, 2
# `-o` keeps the user of the pod as the owner, in the tar of GNU and of BusyBox.
_UNPACK = 'mkdir -p -- "$1" && exec tar -x -o -f - -C "$1"'
_VERIFY = 'mkdir -p -- "$1" && cd -- "$1" && exec sha256sum -c -'
_KIND = 'if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; else echo none; fi'
_SIZE = 'du -s -k -- "$1" | cut -f 1'
_STATE = 'wc -c < "$1" && sha256sum < "$1"'
_APPEND = 'cat >> "$1" && chmod "$2" -- "$1" && touch -d "@$3" -- "$1"'
_FREE = 'df -P -k -- "$1" | tail -n 1'
# Every process but this one and the first of the pod: those of a connection that ended may still write.
_END = "kill -9 -1 2>/dev/null; true"
_FULL_KIB = 64
"""A volume with less free space is full."""
_TRIES = 5
"""How often a copy goes on after its connection ended, without a file that was copied in between."""


class Mount(Struct, frozen=True):
    """A container that mounts a volume.

    Attributes:
        cluster: the cluster.
        namespace: namespace of the pod.
        pod: name of the pod.
    """

    cluster: Cluster
    namespace: str
    pod: str

    def output(self, script: str, path: str) -> str:
        """Return what a script prints; its first argument is a path.

        Raises:
            SystemFailure: it failed.
        """
        printed = bytearray()
        done = run_command(
            self.cluster, self.namespace, self.pod, ["sh", "-c", script, "sh", path], stdout=printed.extend
        )
        if done.exit_code:
            raise SystemFailure(f"{path}: {done.errors or f'exit code {done.exit_code}'}")
        return printed.decode(errors="replace").strip()

    def kind(self, path: str) -> str:
        """Return `file`, `folder` or `none` for a path."""
        return self.output(_KIND, path)

    def end_commands(self) -> None:
        """End the commands of connections that ended. The pod is that of one user's command, and runs nothing else."""
        self.output(_END, "/")

    def persist(self, copy: Callable[[], _Result], is_going_on: Callable[[], bool] = lambda: False) -> _Result:
        """Return what a copy returns; begin it again when its connection ends.

        Args:
            copy: the copy. What it copied already, it leaves out when it is called again.
            is_going_on: whether something was copied since the last call of this function.

        Raises:
            StreamBroken: the connection ended again and again.
        """
        tries, is_broken = 0, False
        while True:
            try:
                if is_broken:
                    self.end_commands()
                return copy()
            except StreamBroken as error:
                tries, is_broken = 1 if is_going_on() else tries + 1, True
                if tries > _TRIES:
                    raise
                self.cluster.say(f"{error}; going on")


def upload(mount: Mount, entries: list[Entry], folder: str, progress: Progress | None = None) -> int:
    """Copy files into a folder of a volume, check them there, and return the number of bytes.

    Args:
        mount: where the volume is mounted.
        entries: what is copied.
        folder: absolute path in the container; it is created.
        progress: receives the bytes that were sent, and all bytes.

    Raises:
        SystemFailure: a file could not be written, or differs from the original.
    """
    work = _Upload(mount, entries, folder, progress)
    mount.persist(work.send, work.is_going_on)
    mount.persist(lambda: verify(mount, work.checksums, folder))
    return work.total


class _Upload:
    """Files on their way to a volume. When the connection ends, those that arrived are not sent again.

    Attributes:
        checksums: SHA-256 of each file that was sent, by name.
        total: bytes of all files.
    """

    def __init__(self, mount: Mount, entries: list[Entry], folder: str, progress: Progress | None) -> None:
        self.checksums: dict[str, str] = {}
        self.total = sum(entry.size for entry in entries)
        self._mount = mount
        self._folder = folder
        self._left = entries
        self._counter = _Counter("uploading", self.total, progress)
        self._is_begun = False
        self._arrived = self._arrived_before = 0

    def is_going_on(self) -> bool:
        """Return whether bytes arrived since the last call."""
        before, self._arrived_before = self._arrived_before, self._arrived
        return self._arrived > before

    def send(self) -> None:
        """Send what did not arrive yet."""
        if self._is_begun:
            self._skip_arrived()
        self._is_begun = True
        archive = write_archive(self._left, self.checksums, self._counter.advance)
        self._run(["sh", "-c", _UNPACK, "sh", self._folder], archive)

    def _run(self, command: list[str], data: Iterator[bytes]) -> None:
        mount = self._mount
        done = run_command(mount.cluster, mount.namespace, mount.pod, command, stdin=data)
        if done.exit_code:
            raise self._failure(done.errors or "tar failed")

    def _failure(self, errors: str) -> SystemFailure:
        """Return the error for files that could not be written; a full volume is named."""
        text = self._mount.output(_FREE, self._folder).split()
        if len(text) > 3 and text[3].isdecimal() and int(text[3]) < _FULL_KIB:
            size = int(text[1]) / (1 << 20)
            hint = "use a larger volume, such as one with a larger --pvc-size"
            return SystemFailure(f"the volume of {size:.1f} GiB is full: {errors}", hint=hint)
        return SystemFailure(f"the files could not be written to {self._folder}: {errors}")

    def _skip_arrived(self) -> None:
        """Leave out the files that arrived, and send the rest of the one that did in part."""
        sent = {entry.name: self.checksums[entry.name] for entry in self._left if entry.name in self.checksums}
        wrong = set(differing(self._mount, sent, self._folder))
        self._left = [entry for entry in self._left if entry.name not in sent or entry.name in wrong]
        self._note(0)
        first = next((entry for entry in self._left if not entry.is_folder), None)
        if first is not None:
            self._append(first)

    def _append(self, entry: Entry) -> None:
        path = f"{self._folder.rstrip('/')}/{entry.name}"
        if self._mount.kind(path) != "file":
            return
        count, digest = self._mount.output(_STATE, path).split()[:2]
        start = int(count)
        if not 0 < start <= entry.size:
            return
        known = digest_of_start(entry, start)
        if known.hexdigest() != digest:
            return
        self._note(start)
        rest = content_of(entry, self.checksums, self._counter.advance, known, start)
        mode, moment = f"{mode_of(entry):o}", str(int(entry.path.stat().st_mtime))
        self._run(["sh", "-c", _APPEND, "sh", path, mode, moment], rest)
        self._left = [each for each in self._left if each is not entry]
        self._note(0)

    def _note(self, more: int) -> None:
        """Note how much arrived: all files that are not left, and some bytes of the next one."""
        self._arrived = self.total - sum(entry.size for entry in self._left) + more
        self._counter.done = self._arrived


def download(mount: Mount, path: str, target: Callable[[str], Path], progress: Progress | None = None) -> Received:
    """Copy a file, or the content of a folder, from a volume, and check the copy.

    Args:
        mount: where the volume is mounted.
        path: absolute path in the container.
        target: returns where a file goes, by its path in the folder; a single file has its own name.
        progress: receives the bytes that were received, and about all bytes.

    Raises:
        NotFound: there is no such path.
        SystemFailure: a copy differs from the original.
    """
    found = mount.persist(lambda: _download(mount, path, target, progress))
    return found


def _download(mount: Mount, path: str, target: Callable[[str], Path], progress: Progress | None) -> Received:
    kind = mount.kind(path)
    if kind == "none":
        raise NotFound(f"{path}: no such file or folder in the volume")
    parent, _, name = path.rstrip("/").rpartition("/")
    folder, chosen = (path, ".") if kind == "folder" else (parent or "/", name)
    total = int(mount.output(_SIZE, path) or 0) * 1024
    with CommandStream(
        mount.cluster, mount.namespace, mount.pod, ["tar", "-c", "-f", "-", "-C", folder, "--", chosen]
    ) as run:
        stream = _Output(run.outputs())
        try:
            found = read_archive(io.BufferedReader(stream), target, _Counter("downloading", total, progress).advance)
        except SystemFailure:
            stream.check(run)
            raise
        stream.drain()
        code = run.exit_code
    if code:
        raise SystemFailure(f"{path} could not be read: {stream.errors() or 'tar failed'}")
    verify(mount, found.checksums, folder)
    return found


def verify(mount: Mount, checksums: dict[str, str], folder: str) -> None:
    """Check the files of a folder in a volume.

    Args:
        mount: where the volume is mounted.
        checksums: SHA-256 by path in the folder.
        folder: absolute path in the container.

    Raises:
        SystemFailure: a file differs or is missing.
    """
    if failed := differing(mount, checksums, folder):
        raise SystemFailure(f"the copy differs from the original: {', '.join(failed[:3])}", hint="copy again")


def differing(mount: Mount, checksums: dict[str, str], folder: str) -> list[str]:
    """Return the files of a folder in a volume that are missing or differ.

    Args:
        mount: where the volume is mounted.
        checksums: SHA-256 by path in the folder.
        folder: absolute path in the container.

    Raises:
        SystemFailure: they could not be compared.
    """
    if not checksums:
        return []
    lines = "".join(f"{digest}  {name}\n" for name, digest in checksums.items())
    printed = bytearray()
    command = ["sh", "-c", _VERIFY, "sh", folder]
    done = run_command(
        mount.cluster, mount.namespace, mount.pod, command, stdin=iter([lines.encode()]), stdout=printed.extend
    )
    if not done.exit_code:
        return []
    failed = [line for line in printed.decode(errors="replace").splitlines() if not line.endswith(": OK")]
    if not failed:
        raise SystemFailure(f"the copies in {folder} could not be checked: {done.errors}")
    return [line.rpartition(":")[0] for line in failed]


class _Counter:
    """The bytes of a copy.

    Attributes:
        done: bytes that were copied.
    """

    def __init__(self, what: str, total: int, progress: Progress | None) -> None:
        self.done = 0
        self._what = what
        self._total = total
        self._progress = progress

    def advance(self, count: int) -> None:
        """Count more bytes."""
        self.done += count
        if self._progress is not None:
            self._progress(self._what, self.done, max(self._total, self.done))


class _Output(io.RawIOBase):
    """The standard output of a command as a file."""

    def __init__(self, outputs: Iterator[tuple[int, bytes]]) -> None:
        self._outputs = outputs
        self._left = b""
        self._errors = bytearray()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            item = next(self._outputs, None)
            if item is None:
                return 0
            channel, data = item
            if channel == _STDOUT:
                self._left = data
            elif channel == _STDERR:
                self._errors.extend(data)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def drain(self) -> None:
        """Read to the end, where the exit code is."""
        while self.read(1 << 16):
            pass

    def check(self, run: CommandStream) -> None:
        """Check that the command has ended, and not only its connection.

        Raises:
            StreamBroken: the connection ended.
        """
        self.drain()
        assert run.exit_code is not None

    def errors(self) -> str:
        """Return what the command wrote to standard error."""
        return self._errors.decode(errors="replace").strip()
