"""Files to a volume and back, by tar in a pod that mounts it, with checksums at the other end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.execution import CommandStream, run_command
from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops.archive import Entry, Received, read_archive, write_archive
from kaigen.system.progress import Progress

_STDOUT, _STDERR = 1, 2
# `-o` keeps the user of the pod as the owner, in the tar of GNU and of BusyBox.
_UNPACK = 'mkdir -p -- "$1" && exec tar -x -o -f - -C "$1"'
_VERIFY = 'cd -- "$1" && exec sha256sum -c -'
_KIND = 'if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; else echo none; fi'
_SIZE = 'du -s -k -- "$1" | cut -f 1'


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
    checksums: dict[str, str] = {}
    total = sum(entry.size for entry in entries)
    advance = _counter("uploading", total, progress)
    command = ["sh", "-c", _UNPACK, "sh", folder]
    archive = write_archive(entries, checksums, advance)
    done = run_command(mount.cluster, mount.namespace, mount.pod, command, stdin=archive)
    if done.exit_code:
        raise SystemFailure(f"the files could not be written to {folder}: {done.errors or 'tar failed'}")
    verify(mount, checksums, folder)
    return total


def download(mount: Mount, path: str, target: Callable[[str], Path], progress: Progress | None = None) -> Received:
    """Copy a file, or the content of a folder, from a volume, and check the copy.

    Args:
        mount: where the volume is mounted.
        path: absolute path in the container.
        target: returns where a file goes, by its path in the folder; a single file has its own name.
        progress: receives the bytes that were received, and about all bytes.

    Raises:
        SystemFailure: there is no such path, or a copy differs from the original.
    """
    kind = mount.kind(path)
    if kind == "none":
        raise SystemFailure(f"{path}: no such file or folder in the volume")
    parent, _, name = path.rstrip("/").rpartition("/")
    folder, chosen = (path, ".") if kind == "folder" else (parent or "/", name)
    total = int(mount.output(_SIZE, path) or 0) * 1024
    with CommandStream(
        mount.cluster, mount.namespace, mount.pod, ["tar", "-c", "-f", "-", "-C", folder, "--", chosen]
    ) as run:
        stream = _Output(run.outputs())
        found = read_archive(io.BufferedReader(stream), target, _counter("downloading", total, progress))
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
    if not checksums:
        return
    lines = "".join(f"{digest}  {name}\n" for name, digest in checksums.items())
    printed = bytearray()
    command = ["sh", "-c", _VERIFY, "sh", folder]
    done = run_command(
        mount.cluster, mount.namespace, mount.pod, command, stdin=iter([lines.encode()]), stdout=printed.extend
    )
    if done.exit_code:
        failed = [line for line in printed.decode(errors="replace").splitlines() if not line.endswith(": OK")]
        names = ", ".join(line.rpartition(":")[0] for line in failed[:3]) or done.errors
        raise SystemFailure(f"the copy differs from the original: {names}", hint="copy again")


def _counter(what: str, total: int, progress: Progress | None) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(what, done, max(total, done))

    return advance


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

    def errors(self) -> str:
        """Return what the command wrote to standard error."""
        return self._errors.decode(errors="replace").strip()
