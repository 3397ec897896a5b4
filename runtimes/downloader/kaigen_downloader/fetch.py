"""Fetches an order into a store and writes its marker."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kaigen_downloader import marker as markers
from kaigen_downloader.cluster import ApiUnavailable
from kaigen_downloader.errors import BadInput, Failure, NoSpace
from kaigen_downloader.folder import Folder
from kaigen_downloader.locked import Locked
from kaigen_downloader.marker import Marker, StoredFile
from kaigen_downloader.net import Net
from kaigen_downloader.pace import DEFAULT, Pace
from kaigen_downloader.progress import Display, Meter
from kaigen_downloader.remote import Snapshot, Source
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.revisions import Readers, Revisions
from kaigen_downloader.store import Plan, Store, Work
from kaigen_downloader.text import duration, plural, say, size, timestamp

if TYPE_CHECKING:
    from kaigen_downloader.s3 import Address
    from kaigen_downloader.signature import Signed


def _unknown(names: Collection[str]) -> Mapping[str, str]:
    raise ApiUnavailable("no API server is given")


@dataclass(frozen=True, slots=True)
class Order:
    """The options of `fetch`.

    Attributes:
        source: where from and which files.
        dest: the model folder, or where in which bucket.
        identity: the compiler's name for the source spec.
        token: for the Hub, or None.
        connections: how many at once.
        part_size: bytes asked for at once.
        timeout: seconds that one connect or read may take.
        pace: the lowest speed of an answer.
        patience: for failures that pass.
        progress: how progress is shown.
        keep: how many earlier revisions stay next to this one; None if `dest` is not one of several revisions.
        derived: folder for files that are made of these, next to those of earlier revisions; None for none.
        readers: returns which revisions pods read.
        locked: what the files must be; None for whatever the source has.
        signed: the signature that the files must have; None for none.
    """

    source: Source
    dest: str | Address
    identity: str
    token: str | None = None
    connections: int = 4
    part_size: int = 16 << 20
    timeout: float = 60.0
    pace: Pace = DEFAULT
    patience: Patience = field(default_factory=Patience)
    progress: Display = field(default_factory=Display)
    keep: int | None = None
    derived: str | None = None
    readers: Readers = _unknown
    locked: Locked | None = None
    signed: Signed | None = None


def fetch(order: Order) -> Marker:
    """Make the folder or bucket match the order, and write the marker.

    Args:
        order: what to fetch and where to.

    Returns:
        The marker, new or found.

    Raises:
        Failure: why not. There is then no such marker, and what was fetched stays for the next run.
    """
    if order.keep is None:
        with _opened(order, order.dest) as store:
            return _complete(store, order, None)
    if order.derived is not None:
        _remove_old_derived(order, order.derived, order.keep)
    above, own = _above(order.dest), str(_name(order.dest))
    if own != order.identity:
        raise BadInput(f"--keep-revisions needs a folder with the name of the identity, not {own!r}")
    with _opened(order, above) as root:
        revisions = Revisions(root, lambda name: _opened(order, _below(above, name)), own)
        stay = revisions.remove_old(order.keep, order.readers)
        with _opened(order, order.dest) as store:
            try:
                return _complete(store, order, revisions)
            except NoSpace as error:
                raise NoSpace("; revision ".join((str(error), *stay))) from error


def _remove_old_derived(order: Order, derived: str, keep: int) -> None:
    """Remove old folders with files that were made of earlier revisions, before the download needs their space."""
    above = os.path.dirname(derived.rstrip("/")) or "."
    with _opened(order, above) as root:
        revisions = Revisions(root, lambda name: _opened(order, os.path.join(above, name)), _name(derived))
        revisions.remove_old(keep, order.readers)


def put(order: Order) -> Marker:
    """Store the files of a folder and write the marker; in the folder itself, only the marker is written.

    Args:
        order: its source is a `Local`.

    Raises:
        Failure: as `fetch`.
    """
    own = getattr(order.source, "folder", None)
    if not (isinstance(own, Folder) and isinstance(order.dest, str) and _is_same(own.path, order.dest)):
        return fetch(order)
    with _opened(order, order.dest) as store:
        return _fill(store, order, markers.read(store), None)


def _is_same(one: str, other: str) -> bool:
    return os.path.isdir(other) and os.path.samefile(one, other)


def _complete(store: Store, order: Order, revisions: Revisions | None) -> Marker:
    found = markers.read(store)
    if found is not None and found.identity == order.identity:
        wrong = markers.wrong_sizes(store, found) or _unlocked(order, found) or _unsigned(store, order, found)
        if not wrong:
            say(f"already complete: {found.summary}")
            store.drop_layers()
            return found
        say(f"marked complete, but {wrong[0]}{' and more' if wrong[1:] else ''}: fetching again")
    moved = revisions.move_in(store) if revisions is not None and found is None else None
    if moved is not None and not _unlocked(order, moved) and not _unsigned(store, order, moved):
        return moved
    return _fill(store, order, found, revisions)


def _unlocked(order: Order, found: Marker) -> list[str]:
    """Return how stored files differ from those of the lock."""
    if order.locked is None or order.locked.matches(found.files):
        return []
    return ["the files are not those of kaigen.lock"]


def _unsigned(store: Store, order: Order, found: Marker) -> list[str]:
    """Return why stored files are not those of the signature: another run may not have checked it."""
    if order.signed is None:
        return []
    try:
        order.signed.check(found.files, store.read, order.source.selection)
    except Failure as error:
        return [str(error)]
    return []


def _opened(order: Order, dest: str | Address) -> AbstractContextManager[Store]:
    if isinstance(dest, str):
        from kaigen_downloader import disk

        return disk.opened(dest, order.progress)
    from kaigen_downloader import bucket

    return bucket.opened(dest, order.patience, timeout=order.timeout, connections=order.connections, pace=order.pace)


def _name(dest: str | Address) -> str:
    """Return the name of the last folder of a destination."""
    return (dest if isinstance(dest, str) else dest.prefix).rstrip("/").rpartition("/")[2]


def _above(dest: str | Address) -> str | Address:
    """Return the folder above a destination."""
    if isinstance(dest, str):
        return os.path.dirname(dest.rstrip("/")) or "."
    above = dest.prefix.rstrip("/").rpartition("/")[0]
    return replace(dest, prefix=f"{above}/" if above else "")


def _below(dest: str | Address, name: str) -> str | Address:
    """Return a folder below a destination."""
    if isinstance(dest, str):
        return os.path.join(dest, name)
    return replace(dest, prefix=f"{dest.prefix}{name}/")


def _fill(store: Store, order: Order, found: Marker | None, revisions: Revisions | None) -> Marker:
    started = time.time()
    retry = Retry(order.patience, threading.Event())
    net = Net(
        order.source.endpoint,
        order.token,
        timeout=order.timeout,
        stop=retry.stop,
        sign=order.source.sign,
        pace=order.pace,
    )
    with contextlib.closing(net):
        listing = order.source.snapshot(net, retry, order.token is not None)
        if listing.layers and not isinstance(order.dest, str):
            raise BadInput(
                f"{order.source.name} has layers to unpack, which needs a folder: store it in a volume, or use an "
                "artifact whose layers are the files"
            )
        plan = _plan(store, listing, found)
        offers = revisions.offers(plan.missing) if revisions is not None else {}
        store.check_space(replace(plan, missing=tuple(each for each in plan.missing if each.path not in offers)))
        store.check_names(file.path for file in listing.files)
        store.clear(plan)
        if order.locked is not None:  # After the marker of other files is gone.
            order.locked.check_listing(listing)
        if revisions is not None and offers:
            plan = _taken(store, plan, revisions.take(store, offers))
        sums, fetched = _transfer(store, order, plan, net, retry)
        packed = {layer.path for layer in listing.layers}
        stored = [
            StoredFile(file.path, file.size, sums[file.path]) for file in listing.files if file.path not in packed
        ]
        stored += store.unpack(listing.layers, plan) if listing.layers else []
    finished = time.time()
    marker = Marker(
        identity=order.identity,
        source=order.source.facts,
        commit=listing.commit,
        files=tuple(sorted(stored, key=lambda file: file.path)),
        started=timestamp(started),
        finished=timestamp(finished),
        fetched=fetched,
    )
    if order.locked is not None:
        order.locked.check(marker.files)
    if order.signed is not None:
        say(order.signed.check(marker.files, store.read, order.source.selection))
    store.tidy()
    markers.write(store, marker)
    store.drop_layers()
    store.disown()
    seconds = max(finished - started, 0.001)
    say(
        f"complete: {marker.summary}; fetched {size(fetched)} in {duration(seconds)}, "
        f"{fetched / seconds / 1e6:.1f} MB/s, {_proof(listing)}"
    )
    return marker


def _proof(listing: Snapshot) -> str:
    unproven = sum(not file.provable for file in listing.files)
    return f"{plural(unproven, 'file')} without a checksum to prove" if unproven else "every checksum right"


def _plan(store: Store, listing: Snapshot, found: Marker | None) -> Plan:
    kept = store.intact(listing)
    missing = tuple(file for file in listing.files if file.path not in kept)
    wanted = {file.path for file in listing.files}
    owned = store.owned() | ({file.path for file in found.files} if found is not None else set())
    return Plan(listing, kept, missing, tuple(sorted(owned - wanted)), frozenset(owned | wanted))


def _taken(store: Store, plan: Plan, paths: set[str]) -> Plan:
    """Return the plan without the files that other revisions had; each of them is verified."""
    kept = store.intact(replace(plan.listing, files=tuple(each for each in plan.listing.files if each.path in paths)))
    missing = tuple(each for each in plan.missing if each.path not in kept)
    if kept:
        say(f"{plural(len(kept), 'file')} of other revisions used, {plural(len(missing), 'file')} to fetch")
    return replace(plan, kept=plan.kept | kept, missing=missing)


def _transfer(store: Store, order: Order, plan: Plan, net: Net, retry: Retry) -> tuple[dict[str, str], int]:
    """Fetch missing files.

    Returns:
        sha256 of all files by path, and the bytes that came over the network.
    """
    source, listing, missing = order.source, plan.listing, plan.missing
    total = sum(file.size for file in missing)
    before = sum(map(store.kept_bytes, missing))
    say(f"{source.name} is commit {listing.commit}: {plural(len(listing.files), 'file')}, {size(listing.bytes)}")
    if missing:
        earlier = f", of which {size(before)} from an earlier run" if before else ""
        files = "all" if len(missing) == len(listing.files) else plural(len(missing), "file")
        say(f"fetching {files}, {size(total)}{earlier}, with {plural(order.connections, 'connection')}")
    meter = Meter("fetch", order.progress, total, len(missing), before)
    work = Work(
        net=net,
        meter=meter,
        retry=retry,
        refusal=lambda path, status, code, message: source.refusal(
            path, status, code, message, order.token is not None
        ),
        connections=order.connections,
        part_size=order.part_size,
        source=source,
    )
    sums = store.fill(missing, work)
    meter.finish()
    return plan.kept | sums, meter.added
