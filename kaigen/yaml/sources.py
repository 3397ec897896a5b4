"""Read texts to compile from files, folders and standard input, none of which is trusted."""

from __future__ import annotations

import errno
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.files import read_regular, reason_of, size_text, too_deep
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import FILE_BYTES, FOLDER_DEPTH

if TYPE_CHECKING:
    from pathlib import Path

with lazy_imports():
    from kaigen.core import credentials
    from kaigen.diagnostics import suggest


STDIN = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
SKIPPED_FOLDERS = frozenset({"node_modules"})
"""Folders that are not searched, in addition to hidden ones."""
_DESCRIPTORS = "/dev/fd/"
"""What a shell names a pipe from another command, `<(COMMAND)`. Other pipes may have no writer."""
TREE_INDEX = ".kaigen-index"
"""A subfolder with this file is output of kaigen and is not searched."""

_CONTENT = re.compile(r"^(?!(?:---|\.\.\.)?[ \t\r]*(?:#.*)?$|%)", re.MULTILINE)


class Limits(Struct, frozen=True):
    """Limits of what is read.

    Attributes:
        file_bytes: size of one file or of standard input, in bytes.
        documents: documents in one file.
        files: files in one run.
    """

    file_bytes: int = FILE_BYTES
    documents: int = 2_000
    files: int = 20_000


class Source(Struct, frozen=True):
    """One text.

    Attributes:
        path: as the user would type it, or `<stdin>`; for the file of a commit, with `@` and the start of the hash.
        text: its content, without a byte order mark.
        commit: the full hash of the commit that it was read from; empty for a file of the working tree.
    """

    path: str
    text: str
    commit: str = ""

    @property
    def file(self) -> str:
        """The path of the file, without the commit."""
        return self.path.removesuffix(commit_suffix(self.commit))

    @property
    def digest(self) -> str:
        """The SHA-256 of the text in UTF-8, in hex."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def mark_at(self, start: int, end: int | None = None) -> Mark:
        """Return the mark of the characters from `start` to before `end`, or to the end of the first line."""
        text = self.text
        start = min(max(start, 0), len(text))
        starts = _line_starts(text)
        line = bisect_right(starts, start)
        first = starts[line - 1]
        stop = starts[line] if line < len(starts) else len(text)
        shown = _line(text, first, stop)
        last = first + len(shown)
        length = max(1, min(last if end is None else end, last) - start)
        return Mark(self.path, line, min(start, last) - first + 1, length, shown)


def commit_suffix(commit: str) -> str:
    """Return what the path of a file of a commit ends in; nothing for a file of the working tree."""
    return f"@{commit[:12]}" if commit else ""


def read_contents(files: Mapping[str, bytes], commit: str, root: Path) -> tuple[list[Source], Diagnostics]:
    """Return the files of a commit that may have specs, with the same limits as those of folders.

    Args:
        files: content by path, below the folders of specs.
        commit: the full hash of the commit.
        root: the repository.
    """
    reader = _Reader(root, None, Limits(), ())
    for path, data in sorted(files.items()):
        *folders, name = path.split("/")
        is_spec = name.lower().endswith(SUFFIXES) and not name.startswith(("kaigen.", "."))
        if is_spec and not any(folder.startswith(".") or folder in SKIPPED_FOLDERS for folder in folders):
            reader.keep(path + commit_suffix(commit), data)
    return [Source(source.path, source.text, commit) for source in reader.sources], reader.diagnostics


def read_sources(
    paths: Sequence[str],
    *,
    root: Path,
    stdin: IO[bytes] | None = None,
    limits: Limits | None = None,
    exclude: Collection[Path] = (),
) -> tuple[list[Source], Diagnostics]:
    """Read the paths of a command line.

    Args:
        paths: files, folders (searched below for `SUFFIXES`), and `-` for standard input.
        root: the repository; a symbolic link inside it must not lead out of it.
        stdin: what `-` reads; standard input by default.
        limits: the default limits if None.
        exclude: folders that are not searched, such as the output tree.

    Returns:
        The texts in the order of the paths, each file once, folders sorted by name; and the errors.
    """
    reader = _Reader(root, stdin, limits or Limits(), exclude)
    for path in paths:
        reader.take(path)
    return reader.sources, reader.diagnostics


class _Reader:
    def __init__(self, root: Path, stdin: IO[bytes] | None, limits: Limits, exclude: Collection[Path]) -> None:
        self.sources: list[Source] = []
        self.diagnostics = Diagnostics()
        self._root = os.path.realpath(root)
        self._root_as_named = os.path.abspath(root)
        self._stdin = stdin
        self._limits = limits
        self._excluded = frozenset(os.path.realpath(folder) for folder in exclude)
        self._seen: set[str] = set(self._excluded)
        self._full = False

    def _problem(self, code: str, message: str, path: str, hint: str = "", severity: Severity = Severity.ERROR) -> None:
        self.diagnostics.add(Diagnostic(code, message, Mark(path), hint, severity))

    def take(self, path: str) -> None:
        """Read one argument of the command line."""
        if path == "-":
            if "-" not in self._seen:
                self._seen.add("-")
                self._take_stdin()
            return
        if not path or "\0" in path:
            self._problem("KG0101", "the path is empty" if not path else "a path cannot contain NUL", path)
            return
        shown = _shown(path)
        real = os.path.realpath(path)
        named = os.path.abspath(path)
        inside = _within(named, self._root_as_named) or _within(named, self._root)
        if inside and not _within(real, self._root):
            self._reject_link(shown)
        elif os.path.isdir(path):
            if real in self._excluded:
                self._problem(
                    "KG0109",
                    "specs are not read from this folder",
                    shown,
                    "use another folder: this one is for output, kinds or patches",
                )
                return
            before = len(self.sources), len(self.diagnostics)
            seen = real in self._seen
            self._search(path, real, self._root if inside else real)
            if before == (len(self.sources), len(self.diagnostics)) and not seen:
                self._problem(
                    "KG0109", f"no {', '.join(SUFFIXES)} file in this folder", shown, severity=Severity.WARNING
                )
        else:
            self._take_file(path, real, explicit=True)

    def _reject_link(self, path: str) -> None:
        self._problem(
            "KG0103",
            "a symbolic link on this path leads out of the repository",
            path,
            "copy the file into the repository",
        )

    def _search(self, folder: str, real_folder: str, base: str) -> None:
        """Read the files of a folder and of those below it, in the order of their paths."""
        above = [self._folders(folder, real_folder, base)]
        while above:
            inner = next(above[-1], None)
            if inner is None:
                above.pop()
            elif len(above) > FOLDER_DEPTH:
                self.diagnostics.add(too_deep(inner[0]))
            else:
                above.append(self._folders(*inner, base))

    def _folders(self, folder: str, real_folder: str, base: str) -> Iterator[tuple[str, str]]:
        """Read the files of a folder; yield each folder in it, with its real path, in its place among them."""
        if real_folder in self._seen:
            return
        self._seen.add(real_folder)
        try:
            with os.scandir(folder) as found:
                # A file that is also linked is read under its own name.
                entries = sorted(found, key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError as error:
            self._problem("KG0102", f"cannot list this folder: {reason_of(error)}", _shown(folder))
            return
        for entry in entries:
            if self._full:
                return
            name = entry.name
            if name.startswith(".") or name in SKIPPED_FOLDERS:
                continue
            path = os.path.join(folder, name) if folder != "." else name
            linked = entry.is_symlink()
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            is_spec = name.lower().endswith(SUFFIXES) and not name.startswith("kaigen.")
            if not (is_folder or is_spec):
                continue
            real = os.path.realpath(path) if linked else os.path.join(real_folder, name)
            if linked and not _within(real, base):
                self._reject_link(_shown(path))
            elif is_folder:
                if not os.path.exists(os.path.join(path, TREE_INDEX)):
                    yield path, real
            else:
                self._take_file(path, real, explicit=False)

    def _take_stdin(self) -> None:
        stream = self._stdin
        if stream is None:
            stream = sys.stdin.buffer
        try:
            data = stream.read(self._limits.file_bytes + 1)
        except OSError as error:
            self._problem("KG0102", f"cannot read standard input: {reason_of(error)}", STDIN)
            return
        self.keep(STDIN, data, explicit=True)

    def _take_file(self, path: str, real: str, *, explicit: bool) -> None:
        if real in self._seen:
            return
        self._seen.add(real)
        shown = _shown(path)
        try:
            data = _content(path, self._limits.file_bytes)
        except FileNotFoundError:
            if os.path.islink(path):
                self._problem("KG0101", "this symbolic link is broken", shown)
            else:
                self._problem("KG0101", "no such file or folder", shown, _nearest_path(path))
            return
        except OSError as error:
            is_special = error.errno == errno.EINVAL
            hint = "replace it with a file; standard input is `-`" if is_special else ""
            self._problem("KG0102", f"cannot read this file: {reason_of(error)}", shown, hint)
            return
        self.keep(shown, data, explicit=explicit)

    def keep(self, path: str, data: bytes, *, explicit: bool = False) -> None:
        """Add a text, unless something is wrong with it."""
        limits = self._limits
        if len(data) > limits.file_bytes:
            self._problem("KG0104", f"the file is larger than {size_text(limits.file_bytes)}", path, "split the file")
            return
        text = self._decode(path, data)
        if text is None:
            return
        if not _CONTENT.search(text) and not _may_contain_secret(text):
            if explicit:
                self._problem("KG0108", "the file contains no document", path, "add a document, or remove the file")
            return
        if _count_documents(text, limits.documents) > limits.documents:
            self._problem("KG0105", f"more than {limits.documents} documents in one file", path, "split the file")
        elif len(self.sources) >= limits.files:
            self._full = True
            self._problem("KG0105", f"more than {limits.files} files", path)
        else:
            self.sources.append(Source(path, text))

    def _decode(self, path: str, data: bytes) -> str | None:
        encoding = "utf-8"
        if data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
        elif data.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding = "utf-16"
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            if b"\0" in data or encoding == "utf-16":
                text = "\0"
            else:
                before = data[: error.start]
                line = before.count(b"\n") + 1
                start = before.decode().rpartition("\n")[2]
                self.diagnostics.add(
                    Diagnostic(
                        "KG0107",
                        f"byte 0x{data[error.start]:02x} is not UTF-8",
                        Mark(path, line, len(start) + 1),
                        "save the file as UTF-8",
                    )
                )
                return None
        if "\0" in text:
            hint = "kaigen reads YAML and JSON text"
            if encoding == "utf-8" and data[1::2].count(0) + data[::2].count(0) > len(data) // 3:
                hint = "save the file as UTF-8: it may be UTF-16 or UTF-32"
            self._problem("KG0106", "this is a binary file", path, hint)
            return None
        return text


@lru_cache(maxsize=1)
def _line(text: str, first: int, stop: int) -> str:
    """Return a line without its line end. Cached: errors often share a line, which may be a whole large file."""
    return text[first:stop].removesuffix("\n").removesuffix("\r")


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    """Return where each line starts. Cached: a file may have thousands of errors."""
    return [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text))]


def _count_documents(text: str, enough: int) -> int:
    """Return the number of documents; an upper bound where that does not exceed `enough`."""
    quick = text.count("\n---") + 1
    return quick if quick <= enough else len(re.findall(r"^---(?=[ \t\r\n]|\Z)", text, re.MULTILINE))


def _may_contain_secret(text: str) -> bool:
    # A file of comments is not a spec, but its comments are in Git too.
    return credentials.may_contain_secret(text)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _content(path: str, most: int) -> bytes:
    """Return the content of a file, up to a limit and one byte more."""
    if not path.startswith(_DESCRIPTORS):
        return read_regular(path, most)
    with open(path, "rb") as stream:
        return stream.read(most + 1)


def _shown(path: str) -> str:
    shown = os.path.normpath(path)
    return shown.replace(os.sep, "/")


def _ancestors(path: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of a folder and the name in it, from the path's end to its start."""
    path = path.rstrip(os.sep)
    while path:
        folder, name = os.path.split(path)
        yield folder, name
        if folder == path:
            return
        path = folder


def _nearest_path(path: str) -> str:
    if any(char in path for char in "*?["):
        return "no file matches this pattern"
    for folder, name in _ancestors(path):
        if not os.path.isdir(folder or "."):
            continue
        try:
            names = sorted(os.listdir(folder or "."))[:5000]
        except OSError:
            return ""
        close = suggest.nearest(name, [each for each in names if not each.startswith(".")])
        return f"did you mean `{_shown(os.path.join(folder, close[0]))}`?" if close else ""
    return ""
