"""Comparing what an output tree holds with what it shall hold. Only reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from stat import S_ISDIR, S_ISLNK, S_ISREG

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, InputError
from kaigen.output.contents import FileContent, Stamp, TreeState, digest, digest_of, now_ns, stamp_of
from kaigen.output.index import INDEX_NAME, check_paths, collisions, fold, format_index, parents, parse_index
from kaigen.output.location import Place

Scope = Callable[[str], bool]
"""Of a path of the tree: whether this run may remove it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to do.

    Attributes:
        owned: paths that the index names now.
        wanted: paths that it shall name.
        writes: files to write, the index too when it changes.
        added: of `writes`, those that do not exist.
        removes: files to remove; the index too when nothing is left to own.
        unchanged: how many output files are right as they are.
        stamps: when a state was given, the stamp and digest of each file that is right.
        checked_ns: when the survey began, nanoseconds since the epoch.
    """

    owned: frozenset[str]
    wanted: frozenset[str]
    writes: dict[str, FileContent]
    added: frozenset[str]
    removes: frozenset[str]
    unchanged: int
    stamps: dict[str, tuple[Stamp, str]]
    checked_ns: int


def read_index(place: Place) -> tuple[frozenset[str], bytes]:
    """The owned paths and the bytes of a tree's index; empty when there is none.

    Raises:
        InputError: KG0605, when the index cannot be trusted.
    """
    mark = place.mark(INDEX_NAME)
    path = os.path.join(place.path, INDEX_NAME)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return frozenset(), b""
    if not S_ISREG(found.st_mode):
        hint = "restore the file from Git"
        raise InputError.of("KG0605", f"the index is {_kind(found.st_mode)}", mark=mark, hint=hint)
    data = read_file(path)
    owned, problems = parse_index(data, mark.file)
    problems.raise_errors()
    return owned, data


def index_after(owned: frozenset[str], files: Mapping[str, object], scope: Scope | None) -> bytes:
    """The index that a tree will have: `files`, and what it owned that is out of scope."""
    kept = (path for path in owned if not scope(path)) if scope is not None else ()
    return format_index({*files, *kept})


def survey(
    place: Place, files: Mapping[str, FileContent], scope: Scope | None, state: TreeState | None
) -> Survey:
    """Find what differs.

    Raises:
        InputError: KG0601, KG0603 and KG0605, all of a kind at once.
        ValueError: a path of `files` is not one that kaigen may own.
    """
    checked_ns = now_ns()
    owned, index = read_index(place)
    check_paths(files.keys() - owned)
    kept = (
        frozenset(path for path in owned if path not in files and not scope(path)) if scope else frozenset()
    )
    wanted = frozenset(files.keys() | kept)
    problems = Diagnostics()
    for first, second in collisions(wanted):
        problems.add(_collision(place, first, second))
    problems.raise_errors()

    disk = Disk(place, owned - wanted)
    stamps: dict[str, tuple[Stamp, str]] = {}
    writes: dict[str, FileContent] = {}
    added: set[str] = set()
    for path, content in files.items():
        found = disk.find(path, problems)
        if found is None or disk.is_stale_alias(path):
            writes[path] = content
            added.add(path)
        elif S_ISREG(found.st_mode) and _holds(place, path, found, content, state, stamps):
            pass
        elif path in owned and S_ISREG(found.st_mode):
            writes[path] = content
        else:
            problems.add(_foreign(place, path, found.st_mode))
    problems.raise_errors()

    removes = {path for path in disk.stale if disk.is_own_file(path)}
    unchanged = len(files) - len(writes)
    index_wanted = format_index(wanted)
    if index_wanted != index:
        if index_wanted:
            writes[INDEX_NAME] = index_wanted
        else:
            removes.add(INDEX_NAME)
        if not index:
            added.add(INDEX_NAME)
    return Survey(owned, wanted, writes, frozenset(added), frozenset(removes), unchanged, stamps, checked_ns)


class Disk:
    """What the file system holds at the paths of a tree, without following any symbolic link."""

    def __init__(self, place: Place, stale: frozenset[str]) -> None:
        self.stale = stale
        self._place = place
        self._base = place.path + "/"
        self._directories: dict[str, bool | None] = {"": place.exists}
        self._stale_folded = {fold(path) for path in stale}
        self._listings: dict[str, frozenset[str]] = {}

    def find(self, path: str, problems: Diagnostics) -> os.stat_result | None:
        """What is at the path of an output file; None when nothing is, or nothing that stays.

        Adds KG0603 when something of another's makes the path impossible.
        """
        above = path.rpartition("/")[0]
        inside = self._is_directory(above)
        if inside is None:
            blocker = next(p for p in reversed(list(parents(path))) if self._is_directory(p) is None)
            problems.add(_blocked(self._place, blocker))
            return None
        found = self._lstat(path) if inside else None
        if found is None or not S_ISDIR(found.st_mode):
            return found
        stays = self._first_that_stays(path)
        if stays:
            problems.add(_occupied(self._place, path, stays))
        return None

    def is_own_file(self, path: str) -> bool:
        """Whether there is a plain file at an owned path, in plain directories."""
        if not self._is_directory(path.rpartition("/")[0]):
            return False
        found = self._lstat(path)
        return found is not None and S_ISREG(found.st_mode)

    def is_stale_alias(self, path: str) -> bool:
        """Whether what was found is an own file that will go, by a path that differs from this in case only.

        Never so where case matters. Where not, the file is to be written anew under its new name.
        """
        return fold(path) in self._stale_folded and self._as_listed(path) in self.stale

    def _as_listed(self, path: str) -> str:
        """An existing path with the case and Unicode form that the file system keeps it in."""
        above, _, name = path.rpartition("/")
        above = self._as_listed(above) if above else ""
        if above not in self._listings:
            self._listings[above] = frozenset(os.listdir(self._base + above))
        names = self._listings[above]
        if name not in names:
            name = next((other for other in names if fold(other) == fold(name)), name)
        return f"{above}/{name}" if above else name

    def _lstat(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._base + path)
        except FileNotFoundError:
            return None

    def _is_directory(self, path: str) -> bool | None:
        """True; False when it does not exist or will go; None when something else is in its place."""
        if path in self._directories:
            return self._directories[path]
        result = self._is_directory(path.rpartition("/")[0])
        if result:
            found = self._lstat(path)
            if found is None or (path in self.stale and S_ISREG(found.st_mode)):
                result = False
            elif not S_ISDIR(found.st_mode):
                result = None
        self._directories[path] = result
        return result

    def _first_that_stays(self, directory: str) -> str:
        """Something below that kaigen will not remove; empty when the directory will go as a whole."""
        with os.scandir(self._base + directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        if not found:
            return directory
        for entry in found:
            path = f"{directory}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if stays := self._first_that_stays(path):
                    return stays
            elif path not in self.stale or not entry.is_file(follow_symlinks=False):
                return path
        return ""


def read_file(path: str) -> bytes:
    """All of a plain file; never follows a link in its last part, never waits for a pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = os.fstat(file).st_size
        data = os.read(file, size + 1)
        if len(data) == size:
            return data
        chunks = [data]
        while chunk := os.read(file, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(file)


def _holds(
    place: Place,
    path: str,
    found: os.stat_result,
    content: FileContent,
    state: TreeState | None,
    stamps: dict[str, tuple[Stamp, str]],
) -> bool:
    """Whether a plain file holds this content already."""
    if state is None:
        return _reads_as(place, path, found, content)
    stamp = stamp_of(found)
    known = state.digest(path, stamp)
    shall = digest_of(content)
    same = _reads_as(place, path, found, content) if known is None else known == shall
    if same:
        stamps[path] = (stamp, shall)
    return same


def _reads_as(place: Place, path: str, found: os.stat_result, content: FileContent) -> bool:
    file = f"{place.path}/{path}"
    if isinstance(content, bytes):
        return found.st_size == len(content) and read_file(file) == content
    return digest(read_file(file)) == content.digest


def _kind(mode: int) -> str:
    if S_ISDIR(mode):
        return "a directory"
    return "a symbolic link" if S_ISLNK(mode) else "a special file"


def _foreign(place: Place, path: str, mode: int) -> Diagnostic:
    if S_ISREG(mode):
        what = "kaigen did not write this file and will not overwrite it"
    else:
        what = f"this is {_kind(mode)}, which kaigen did not make and will not replace"
    return Diagnostic("KG0601", what, place.mark(path), "move it away, or choose another output directory")


def _blocked(place: Place, blocker: str) -> Diagnostic:
    message = "output files need a directory here, but this is something else that kaigen did not write"
    return Diagnostic(
        "KG0603", message, place.mark(blocker), "move it away, or choose another output directory"
    )


def _occupied(place: Place, path: str, stays: str) -> Diagnostic:
    inside = "is empty and not kaigen's" if stays == path else f"holds {place.mark(stays).file}"
    message = f"an output file goes here, but this is a directory that {inside}"
    return Diagnostic("KG0603", message, place.mark(path), "move it away, or choose another output directory")


def _collision(place: Place, first: str, second: str) -> Diagnostic:
    if second.startswith(first + "/"):
        message = f"one output is this file and another needs a directory here, for {second}"
    else:
        message = f"outputs that differ only in case or Unicode form: {first} and {second}"
    hint = "rename one of the specs; Git trees are checked out on file systems that take them for the same"
    return Diagnostic("KG0603", message, place.mark(first), hint)
