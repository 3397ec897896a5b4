"""A folder of a volume as a store: a lock for one writer, and files that are moved into place when complete."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kaigen_downloader import marker as markers
from kaigen_downloader import partial, unpacking
from kaigen_downloader.crew import Crew
from kaigen_downloader.digest import Digest
from kaigen_downloader.errors import NoSpace
from kaigen_downloader.folder import LOCK, STATE, Folder, explain
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.names import check_volume
from kaigen_downloader.progress import Display, Meter
from kaigen_downloader.ranges import BUFFER
from kaigen_downloader.remote import LAYERS, Layer, RemoteFile, Snapshot
from kaigen_downloader.store import OWNED, Files, Plan, Work
from kaigen_downloader.text import say, size
from kaigen_downloader.transfer import Transfer

# Space for directories, journals and the marker, in addition to the files.
_SPARE = 4 << 20
_BLOCK = 4096


@contextlib.contextmanager
def opened(path: str, progress: Display) -> Iterator[Disk]:
    """A folder as a store, while this process is its only writer.

    Args:
        path: the folder; made when it is not there.
        progress: how the progress of what takes long is shown.

    Raises:
        Failure: what the file system says against it, also later.
    """
    folder = Folder(path, create=True)
    try:
        with _only_writer(folder, progress.every):
            yield Disk(folder, progress)
    except OSError as error:
        raise explain(error, path) from error
    finally:
        folder.close()


@contextlib.contextmanager
def _only_writer(folder: Folder, every: float) -> Iterator[None]:
    """Lock the folder. Waits without limit; the kernel frees the lock when its owner dies."""
    fd = folder.open(LOCK, os.O_RDWR | os.O_CREAT, create=True)
    try:
        printed_at = -every
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - printed_at >= every:
                    say("another download is writing to this folder, waiting for it")
                    printed_at = time.monotonic()
                time.sleep(0.2)
            except OSError as error:
                say(f"warning: this file system has no locks ({error.strerror}): run one download only")
                break
        yield
    finally:
        os.close(fd)


class Disk:
    """See `Store` for the methods."""

    def __init__(self, folder: Folder, progress: Display) -> None:
        """Initialize with an open folder, and how the progress of long operations is shown."""
        self._folder = folder
        self._progress = progress
        self.read = folder.read
        self.write = folder.write
        self.record = folder.write
        self.file_size = folder.file_size

    def owned(self) -> set[str]:
        """The list of paths that a run writes before it changes anything."""
        try:
            found = json.loads(self._folder.read(OWNED) or b"[]")
        except (ValueError, RecursionError):
            return set()
        return {path for path in found if isinstance(path, str)} if isinstance(found, list) else set()

    def intact(self, listing: Snapshot) -> dict[str, str]:
        """Read every file that has the right size."""
        folder = self._folder
        candidates = [file for file in listing.files if file.provable and folder.file_size(file.path) == file.size]
        if not candidates:
            return {}
        meter = Meter("check", self._progress, sum(file.size for file in candidates), len(candidates))

        def check(file: RemoteFile) -> tuple[str, str] | None:
            digest = Digest(file)
            buffer = bytearray(BUFFER)
            with os.fdopen(folder.open(file.path, os.O_RDONLY), "rb", buffering=0) as content:
                while count := content.readinto(buffer):
                    digest.update(memoryview(buffer)[:count])
                    meter.add(count)
                    meter.update()
            meter.complete_file()
            return (file.path, digest.sha256) if digest.matches() else None

        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            found = dict(filter(None, pool.map(check, candidates)))
        meter.finish()
        return found

    def _first(self, plan: Plan) -> list[str]:
        """Remove obsolete files before anything is fetched, deepest first."""
        # An entry at the path of a file to fetch is removed too: the volume need not hold both.
        blocked = {file.path for file in plan.missing if self._folder.file_size(file.path) is not None}
        return sorted(blocked.union(plan.gone), reverse=True)

    def check_space(self, plan: Plan) -> None:
        """Compare the needed space with the free space."""
        folder = self._folder
        free, whole = folder.free()
        need = sum(file.size - partial.kept_bytes(folder, file) for file in plan.missing)
        need += _SPARE + _BLOCK * len(plan.missing)
        for path in (*self._first(plan), *partial.others(folder, plan.missing)):
            found = folder.stat(path)
            free += found.st_blocks * 512 if found is not None and found.st_nlink == 1 else 0
        if need > free:
            raise NoSpace(
                f"{folder.path} has {size(free)} left of {size(whole)}, and {size(need)} more is needed: "
                f"the model takes {size(plan.listing.bytes)}, give the volume at least that"
            )

    def check_names(self, paths: Iterable[str]) -> None:
        """Ask the volume, which may ignore case."""
        check_volume(self._folder, paths)

    def clear(self, plan: Plan) -> None:
        """Also create the folders of the new files."""
        folder, first = self._folder, self._first(plan)
        partial.forget_others(folder, plan.missing)
        folder.write(OWNED, json.dumps(sorted(plan.owned)).encode())
        folder.remove(markers.PATH)
        for path in first:
            folder.remove(path)
        for file in plan.missing:
            folder.make_way(file.path)

    def kept_bytes(self, file: RemoteFile) -> int:
        """Return the bytes of its partial file on disk."""
        return partial.kept_bytes(self._folder, file)

    def fill(self, files: Sequence[RemoteFile], work: Work) -> dict[str, str]:
        """Write each part to its position in a partial file. Of files with one content, fetch one and copy it."""
        first: dict[tuple[str, int], RemoteFile] = {}
        for file in files:
            if file.sha256 is not None:
                first.setdefault((file.sha256, file.size), file)
        same = {file.path: first.get((file.sha256 or "", file.size), file) for file in files}
        transfer = Transfer(
            self._folder,
            [file for file in files if same[file.path] is file],
            work.serve,
            Crew(work.net, work.meter, work.retry.stop),
            work.meter,
            connections=work.connections,
            part_size=work.part_size,
            retry=work.retry,
        )
        sums = transfer.run()
        for file in files:
            if (source := same[file.path]) is not file:
                self._folder.copy(source.path, file.path)
                sums[file.path] = sums[source.path]
                work.meter.have(file.size)
                work.meter.complete_file()
        return sums

    def tidy(self) -> None:
        """Remove every partial file."""
        partial.forget_others(self._folder, ())

    def disown(self) -> None:
        """Remove the list."""
        self._folder.remove(OWNED)

    def take(self, root: Files, offers: Mapping[str, str]) -> set[str]:
        """Link the files, which takes no space."""
        assert isinstance(root, Disk)
        taken = set()
        for path, where in offers.items():
            if self.file_size(path) is None:
                try:
                    self._folder.link(root._folder, where, path)
                except OSError as error:
                    say(f"files of other revisions cannot be linked, so they are fetched: {error.strerror}")
                    break
                taken.add(path)
        return taken

    def unpack(self, layers: Sequence[Layer], plan: Plan) -> list[StoredFile]:
        """See `Store`."""
        return unpacking.unpack(self._folder, layers, plan.owned, self._progress)

    def drop_layers(self) -> None:
        """Remove the files in the folder of the layers."""
        for name in self._folder.names(LAYERS):
            self._folder.remove(f"{LAYERS}/{name}")

    def discard(self) -> None:
        """Remove the folder if it is empty except for the lock."""
        self._folder.remove_empty((LOCK,), (partial.WHERE, LAYERS, STATE))
