"""From what is asked for to a complete folder with its marker."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kaigen_downloader import marker as markers
from kaigen_downloader import partial
from kaigen_downloader.digest import Digest
from kaigen_downloader.errors import NoSpace
from kaigen_downloader.folder import STATE, Folder, explain
from kaigen_downloader.marker import Marker, StoredFile
from kaigen_downloader.net import Net
from kaigen_downloader.progress import Meter
from kaigen_downloader.remote import RemoteFile, Snapshot, Source
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.text import duration, plural, say, size, timestamp
from kaigen_downloader.transfer import BUFFER, Transfer

LOCK = f"{STATE}/lock"
OWNED = f"{STATE}/owned.json"
# What directories, journals and the marker may need beside the files.
_SPARE = 4 << 20
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Order:
    """What `fetch` is told.

    Attributes:
        source: where from and which files.
        dest: the model folder.
        identity: the compiler's name for the source spec.
        token: for the Hub, or None.
        connections: how many at once.
        part_size: bytes asked for at once.
        timeout: seconds that one connect or read may take.
        patience: for failures that pass.
        progress: seconds between two lines of progress.
    """

    source: Source
    dest: str
    identity: str
    token: str | None = None
    connections: int = 4
    part_size: int = 16 << 20
    timeout: float = 60.0
    patience: Patience = field(default_factory=Patience)
    progress: float = 10.0


def fetch(order: Order) -> Marker:
    """Makes the folder hold exactly what the order says, and marks it.

    Args:
        order: what to fetch and where to.

    Returns:
        The marker, new or found.

    Raises:
        Failure: why not. The folder then has no such marker, and what was fetched stays for the next run.
    """
    folder = Folder(order.dest, create=True)
    try:
        with _only_writer(folder, order.progress):
            found = markers.read(folder)
            if found is not None and found.identity == order.identity:
                wrong = markers.wrong_sizes(folder, found)
                if not wrong:
                    say(f"already complete: {found.summary}")
                    return found
                say(f"marked complete, but {wrong[0]}{' and more' if wrong[1:] else ''}: fetching again")
            return _fill(folder, order, found)
    except OSError as error:
        raise explain(error, order.dest) from error
    finally:
        folder.close()


@contextlib.contextmanager
def _only_writer(folder: Folder, every: float) -> Iterator[None]:
    """Holds the folder's lock. Waits for it without limit; the kernel frees it when its holder dies."""
    fd = folder.open(LOCK, os.O_RDWR | os.O_CREAT, create=True)
    try:
        said = -every
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - said >= every:
                    say("another download writes to this folder, waiting for it to end")
                    said = time.monotonic()
                time.sleep(0.2)
            except OSError as error:
                say(f"warning: this file system has no locks ({error.strerror}): run one download only")
                break
        yield
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done to a folder.

    Attributes:
        listing: what it shall hold.
        kept: sha256 by path of the files that it holds already.
        missing: the others.
        gone: files to remove first, those included that stand in the place of a missing one.
        owned: all files that are ours, of this model and of those before.
    """

    listing: Snapshot
    kept: dict[str, str]
    missing: tuple[RemoteFile, ...]
    gone: tuple[str, ...]
    owned: frozenset[str]


def _fill(folder: Folder, order: Order, found: Marker | None) -> Marker:
    started = time.time()
    retry = Retry(order.patience, threading.Event())
    net = Net(order.source.endpoint, order.token, timeout=order.timeout, stop=retry.stop)
    with contextlib.closing(net):
        listing = order.source.snapshot(net, retry, order.token is not None)
        plan = _plan(folder, listing, found, order.progress)
        _check_space(folder, plan)
        _clear(folder, plan)
        sums, fetched = _transfer(folder, order, plan, net, retry)
    finished = time.time()
    marker = Marker(
        identity=order.identity,
        source=order.source.facts,
        commit=listing.commit,
        files=tuple(StoredFile(file.path, file.size, sums[file.path]) for file in listing.files),
        started=timestamp(started),
        finished=timestamp(finished),
        fetched=fetched,
    )
    partial.forget_others(folder, ())
    markers.write(folder, marker)
    folder.remove(OWNED)
    seconds = max(finished - started, 0.001)
    say(
        f"complete: {marker.summary}; fetched {size(fetched)} in {duration(seconds)}, "
        f"{fetched / seconds / 1e6:.1f} MB/s, {_proof(listing)}"
    )
    return marker


def _proof(listing: Snapshot) -> str:
    unproven = sum(not file.provable for file in listing.files)
    return f"{plural(unproven, 'file')} without a checksum to prove" if unproven else "every checksum right"


def _plan(folder: Folder, listing: Snapshot, found: Marker | None, every: float) -> _Plan:
    kept = _intact(folder, listing, every)
    missing = tuple(file for file in listing.files if file.path not in kept)
    wanted = {file.path for file in listing.files}
    owned = _owned(folder) | ({file.path for file in found.files} if found is not None else set())
    # What stands in the place of a file to fetch goes first too: the volume need not hold both.
    blocked = {file.path for file in missing if folder.file_size(file.path) is not None}
    gone = tuple(sorted((owned - wanted) | blocked, reverse=True))
    return _Plan(listing, kept, missing, gone, frozenset(owned | wanted))


def _clear(folder: Folder, plan: _Plan) -> None:
    """Takes the marker away, so that nobody uses the folder any more, and then what stands in the way."""
    partial.forget_others(folder, plan.missing)
    folder.write(OWNED, json.dumps(sorted(plan.owned)).encode())
    folder.remove(markers.PATH)
    for path in plan.gone:
        folder.remove(path)
    for file in plan.missing:
        folder.make_way(file.path)


def _transfer(
    folder: Folder, order: Order, plan: _Plan, net: Net, retry: Retry
) -> tuple[dict[str, str], int]:
    """Fetches what is missing.

    Returns:
        sha256 of all files by path, and the bytes that came over the network.
    """
    source, listing, missing = order.source, plan.listing, plan.missing
    total = sum(file.size for file in missing)
    before = sum(partial.kept_bytes(folder, file) for file in missing)
    say(
        f"{source.name} is commit {listing.commit}: {plural(len(listing.files), 'file')}, {size(listing.bytes)}"
    )
    if missing:
        earlier = f", of which {size(before)} from an earlier run" if before else ""
        files = "all" if len(missing) == len(listing.files) else plural(len(missing), "file")
        say(f"fetching {files}, {size(total)}{earlier}, with {plural(order.connections, 'connection')}")
    meter = Meter("fetched", total, before, every=order.progress)
    transfer = Transfer(
        folder,
        missing,
        net,
        meter,
        connections=order.connections,
        part_size=order.part_size,
        retry=retry,
        refusal=lambda path, status, code, message: source.refusal(
            path, status, code, message, order.token is not None
        ),
    )
    return plan.kept | transfer.run(), meter.added


def _owned(folder: Folder) -> set[str]:
    """Files that runs which did not come to an end may have put in the folder."""
    try:
        return {str(path) for path in json.loads(folder.read(OWNED) or b"[]")}
    except ValueError:
        return set()


def _intact(folder: Folder, listing: Snapshot, every: float) -> dict[str, str]:
    """Those files that are there already with the right content: their sha256 by path."""
    candidates = [
        file for file in listing.files if file.provable and folder.file_size(file.path) == file.size
    ]
    if not candidates:
        return {}
    meter = Meter("checked", sum(file.size for file in candidates), every=every)

    def check(file: RemoteFile) -> tuple[str, str] | None:
        digest = Digest(file)
        buffer = bytearray(BUFFER)
        with os.fdopen(folder.open(file.path, os.O_RDONLY), "rb", buffering=0) as content:
            while count := content.readinto(buffer):
                digest.update(memoryview(buffer)[:count])
                meter.add(count)
                meter.line()
        return (file.path, digest.sha256) if digest.matches() else None

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return dict(filter(None, pool.map(check, candidates)))


def _check_space(folder: Folder, plan: _Plan) -> None:
    """Says before the first byte that the volume cannot hold the model.

    Raises:
        NoSpace: it cannot, even when all that will be removed is gone.
    """
    free, whole = folder.free()
    need = sum(file.size - partial.kept_bytes(folder, file) for file in plan.missing)
    need += _SPARE + _BLOCK * len(plan.missing)
    for path in (*plan.gone, *partial.others(folder, plan.missing)):
        found = folder.stat(path)
        free += found.st_blocks * 512 if found is not None and found.st_nlink == 1 else 0
    if need > free:
        raise NoSpace(
            f"{folder.path} has {size(free)} left of {size(whole)}, and {size(need)} more is needed: "
            f"the model takes {size(plan.listing.bytes)}, give the volume at least that"
        )
