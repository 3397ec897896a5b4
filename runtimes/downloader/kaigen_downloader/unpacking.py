"""Unpacks verified layers into a folder: plain files only, in the order of the layers, with their deletions.

The archives are read twice. The first pass decides which entry of which layer is the final content of each path, and
refuses what is not a plain file inside the folder, before anything is written. The second pass writes those files.
A build context also has links inside the folder, empty folders, and files that can be run.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from typing import IO, Self, cast

from kaigen_downloader.errors import BadInput, NoSpace
from kaigen_downloader.folder import LONGEST_PATH, STATE, Folder, explain, sync
from kaigen_downloader.globs import report_skipped
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.names import check_volume
from kaigen_downloader.progress import Display, Meter
from kaigen_downloader.ranges import BUFFER
from kaigen_downloader.remote import Layer, check_names
from kaigen_downloader.store import OWNED
from kaigen_downloader.text import plural, say, shown, size

_MOST_ENTRIES = 200_000
_SPARE = 4 << 20
_EXTENDED = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_LONGNAME}
)
_LARGEST_HEADER = 64 << 10
_READS_OF_THE_END = 2
_TEMPORARY = f"{STATE}/partial/unpacked"
_DELETION = ".wh."
_DELETES_ALL = ".wh..wh..opq"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The final content of a path: an entry of a layer, by number; a link with its target."""

    layer: int
    number: int
    size: int
    is_file: bool = True
    target: str = ""


def unpack(folder: Folder, layers: Sequence[Layer], owned: Collection[str], progress: Display) -> list[StoredFile]:
    """Write the files in layers.

    Args:
        folder: has the layers, and gets the files.
        layers: each over the ones before.
        owned: paths that are ours already.
        progress: how progress is shown.

    Raises:
        BadInput: a layer has links or names that lead out of the folder, or is not an archive.
        NoSpace: the files do not fit.
    """
    final, folders = _final(folder, layers)
    skipped = {path for layer in layers for path in layer.skipped(final)}
    report_skipped(skipped)
    for each in skipped:
        del final[each]
    if not any(entry.is_file for entry in final.values()):
        roots = sorted({layer.root or "/" for layer in layers})
        raise BadInput(f"the layers have no file in {' or '.join(roots)} that the globs select")
    check_names(list(final), folders)
    check_volume(folder, final)
    links = {path: entry.target for path, entry in final.items() if not entry.is_file}
    for link, target in links.items():
        if _leads_out(folder, link, target, links):
            raise BadInput(f"the layer has {shown(link)}, a link that leads out of the folder")
    need, (free, _) = sum(entry.size for entry in final.values()) + _SPARE, folder.free()
    if need > free:
        raise NoSpace(
            f"{folder.path} has {size(free)} left, and the files in the layers take {size(need)}: "
            "give the volume a larger size"
        )
    # A run that is killed from here on has files that the next one may replace.
    folder.write(OWNED, json.dumps(sorted({*owned, *final})).encode())
    meter = Meter("unpack", progress, need - _SPARE, sum(entry.is_file for entry in final.values()))
    places = {(entry.layer, entry.number): path for path, entry in final.items()}
    stored = []
    for index, layer in enumerate(layers):
        for number, member, archive in _entries(folder, layer):
            path = places.get((index, number))
            if path is not None:
                if member.issym():
                    folder.make_link(path, member.linkname)
                    continue
                mode = 0o755 if layer.is_context and member.mode & 0o100 else 0o644
                stored.append(_write(folder, path, mode, member, archive, meter))
                meter.complete_file()
    for path in sorted(folders):
        folder.make_folder(path)
    meter.finish()
    say(f"unpacked {plural(len(stored), 'file')} of {plural(len(layers), 'layer')}")
    return stored


def _final(folder: Folder, layers: Sequence[Layer]) -> tuple[dict[str, _Entry], set[str]]:
    """Return the final content of each chosen path, and the folders of build contexts."""
    final: dict[str, _Entry] = {}
    folders: set[str] = set()
    for index, layer in enumerate(layers):
        mine: set[str] = set()
        for number, member, _ in _entries(folder, layer):
            path = _below(member.name, layer.root)
            if path is None:
                continue
            above, _, name = path.rpartition("/")
            if layer.is_context and member.isdir():
                folders.add(path)
            elif name == _DELETES_ALL and not layer.is_context:
                _delete(final, f"{above}/" if above else "", mine)
            elif name.startswith(_DELETION) and not layer.is_context:
                gone = f"{above}/{name.removeprefix(_DELETION)}".lstrip("/")
                final.pop(gone, None)
                _delete(final, f"{gone}/", mine)
            elif not member.isdir() and layer.chosen(path):
                _check_kind(layer, path, member)
                mine.add(path)
                final[path] = _Entry(index, number, member.size, member.isreg(), member.linkname)
    return final, folders


def _check_kind(layer: Layer, path: str, member: tarfile.TarInfo) -> None:
    """Refuse what is neither a plain file nor a link that a layer may have.

    Raises:
        BadInput: it is.
    """
    if layer.is_context and member.issym():
        return
    if not member.isreg() or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else "not a plain file"
        raise BadInput(f"the layer has {shown(member.name)}, which is {kind}: only plain files are unpacked")


def _leads_out(folder: Folder, path: str, target: str, links: Mapping[str, str]) -> bool:
    """Return whether a link may lead out of the folder.

    Each link stays inside. So a target that goes on below another link does, too, but after a link `..` is another
    folder than its text says.

    Args:
        folder: may have links of an earlier run.
        path: the link.
        target: its target.
        links: the links of the layers, with their targets.
    """
    if not target or not target.isprintable() or target.startswith("/") or len(target) > LONGEST_PATH:
        return True
    above = [""]
    for part in path.split("/")[:-1]:
        above.append(f"{above[-1]}{part}/")
    after_link = False
    for part in target.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            above.pop()
            if after_link or not above:
                return True
        else:
            after_link = after_link or _is_link(folder, above[-1] + part, links)
            above.append(f"{above[-1]}{part}/")
    return False


def _is_link(folder: Folder, path: str, links: Mapping[str, str]) -> bool:
    found = folder.stat(path) if path not in links else None
    return path in links or (found is not None and stat.S_ISLNK(found.st_mode))


def _delete(final: dict[str, _Entry], prefix: str, keep: Collection[str]) -> None:
    """Remove what earlier layers have below a folder."""
    for path in [path for path in final if path.startswith(prefix) and path not in keep]:
        del final[path]


def _below(name: str, root: str) -> str | None:
    """Return the path of an entry below a folder; None for one elsewhere.

    Raises:
        BadInput: the name leads out.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadInput(f"the layer has the name {shown(name)}, which leads out of the folder")
    path, top = "/".join(parts), f"{root}/" if root else ""
    return path.removeprefix(top) if path.startswith(top) and path != root and path else None


class _Header(tarfile.TarInfo):
    """A header of an archive. tarfile reads extended headers into memory, so their size has a limit."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header in a block."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"an extended header has more than {_LARGEST_HEADER} bytes")
        return found


class _Ending:
    """A stream that fails if it is read again after its end: tarfile reads on for as long as a header says."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self._ended = 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        data = self._stream.read(size)
        self._ended += not data
        if self._ended > _READS_OF_THE_END:
            raise EOFError("it ends inside an entry")
        return data


@contextmanager
def _opened(folder: Folder, layer: Layer) -> Iterator[tarfile.TarFile]:
    try:
        with (
            os.fdopen(folder.open(layer.path, os.O_RDONLY), "rb") as blob,
            # tarfile's own gzip decompresses each piece whole: 1 MiB of zeros can become 1 GiB.
            gzip.GzipFile(fileobj=blob) if layer.compressed else blob as stream,
            tarfile.open(
                fileobj=cast("IO[bytes]", _Ending(stream)), mode="r|", bufsize=BUFFER, tarinfo=_Header
            ) as archive,
        ):
            yield archive
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, ValueError, RecursionError) as error:
        raise BadInput(f"the layer {layer.path.rpartition('/')[2][:12]} is not an archive: {error}") from None


def _entries(folder: Folder, layer: Layer) -> Iterator[tuple[int, tarfile.TarInfo, tarfile.TarFile]]:
    with _opened(folder, layer) as archive:
        for number, member in enumerate(archive):
            if number >= _MOST_ENTRIES:
                raise BadInput(f"the layer has more than {_MOST_ENTRIES} entries")
            archive.members = []  # type: ignore[attr-defined]  # Otherwise every entry stays in memory.
            yield number, member, archive


def _write(
    folder: Folder, path: str, mode: int, member: tarfile.TarInfo, archive: tarfile.TarFile, meter: Meter
) -> StoredFile:
    content = archive.extractfile(member)
    assert content is not None
    digest, count = hashlib.sha256(), 0
    try:
        folder.make_way(path)
        fd = folder.open(_TEMPORARY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, create=True)
        with os.fdopen(fd, "wb", buffering=0) as file:
            while piece := content.read(BUFFER):
                file.write(piece)
                digest.update(piece)
                count += len(piece)
                meter.add(len(piece))
                meter.update()
            os.fchmod(fd, mode)
            sync(fd)
        if count != member.size:
            raise BadInput(f"the layer ends inside {shown(member.name)}")
        folder.move(_TEMPORARY, path)
    except OSError as error:
        raise explain(error, path) from error
    return StoredFile(path, count, digest.hexdigest())
