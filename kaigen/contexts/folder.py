"""The files of a folder that a build may use, as Docker chooses them, and those of them that look like credentials."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from kaigen.contexts.patterns import IgnoreRules, MalformedPattern, Pattern, read_lines
from kaigen.core.credentials import looks_like_secret, may_contain_secret
from kaigen.core.text import printable
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.errors import InputError

CODE = "KG0911"
IGNORE_FILE = ".dockerignore"
MOST_ENTRIES = 100_000
"""Entries of a folder. The downloader unpacks at most twice as many."""
_LONGEST_PART = 255
_MOST_PROBLEMS = 20
_GIT = ".git"


class Entry(Struct, frozen=True):
    """A file, a folder or a symbolic link.

    Attributes:
        path: where it is.
        name: its path below the folder, with slashes.
        size: bytes of a file.
        is_executable: whether its owner may run it.
        is_folder: whether it is a folder.
        target: what a link names; empty for others.
    """

    path: Path
    name: str
    size: int = 0
    is_executable: bool = False
    is_folder: bool = False
    target: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return not self.is_folder and not self.target


def read_folder(folder: Path, dockerfile: str = "Dockerfile") -> list[Entry]:
    """Return what a build of a folder may use, sorted: all files but those that its ignore file and Git's own.

    Args:
        folder: the folder.
        dockerfile: path of the Dockerfile in the folder. It and the ignore file are always included.

    Raises:
        InputError: KG0911, there is no Dockerfile, or something cannot be packed; with all problems.
    """
    if not folder.is_dir():
        raise InputError.of(CODE, f"{folder} is not a folder")
    if not (folder / dockerfile).is_file():
        hint = "set the path of the Dockerfile in the folder with --dockerfile"
        raise InputError.of(CODE, f"{folder} has no {dockerfile}", hint=hint)
    walk = _Walk(folder, dockerfile)
    entries = sorted(walk.entries(), key=lambda entry: entry.name.encode("utf-8", "surrogateescape"))
    walk.problems.raise_errors()
    return entries


def read_rules(file: Path) -> IgnoreRules:
    """Return the rules of a `.dockerignore`.

    Raises:
        InputError: KG0911, it is not UTF-8, or has a pattern that BuildKit rejects.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError.of(CODE, f"{file} is not UTF-8", mark=Mark(str(file))) from None
    patterns, problems, lines = [], Diagnostics(), text.split("\n")
    for number, line in read_lines(text):
        try:
            patterns.append(Pattern(line))
        except MalformedPattern as error:
            mark = Mark(str(file), number, 1, max(len(lines[number - 1]), 1), lines[number - 1])
            problems.add(Diagnostic(CODE, str(error), mark, "fix the pattern: BuildKit rejects it, too"))
    problems.raise_errors()
    return IgnoreRules(patterns)


class _Walk:
    """A walk through a folder that collects what is wrong with it."""

    def __init__(self, folder: Path, dockerfile: str) -> None:
        self.problems = Diagnostics()
        self._folder = folder
        self._real = os.path.realpath(folder)
        own = f"{dockerfile}{IGNORE_FILE}"
        used = own if (folder / own).is_file() else IGNORE_FILE
        self._rules = read_rules(folder / used) if (folder / used).is_file() else IgnoreRules(())
        self._always = frozenset({dockerfile, used})
        self._above = frozenset(name[:at] for name in self._always for at, char in enumerate(name) if char == "/")

    def entries(self) -> Iterator[Entry]:
        """Yield what is included, in any order."""
        waiting = [(self._folder, "", self._rules.top)]
        count = 0
        while waiting:
            folder, prefix, above = waiting.pop()
            with os.scandir(folder) as found:
                items = list(found)
            for item in items:
                name = prefix + item.name
                if item.name == _GIT:
                    continue
                matches = self._rules.of(name, above)
                is_folder = item.is_dir(follow_symlinks=False)
                if is_folder and (not matches.ignored or self._is_entered(name)):
                    waiting.append((Path(item.path), f"{name}/", matches))
                if matches.ignored and name not in self._always:
                    continue
                entry = self._entry(item, name, is_folder=is_folder)
                if entry is None:
                    continue
                count += 1
                if count > MOST_ENTRIES:
                    hint = f"name what the build does not need in {IGNORE_FILE}"
                    raise InputError.of(CODE, f"{self._folder} has more than {MOST_ENTRIES} files", hint=hint)
                yield entry

    def _is_entered(self, name: str) -> bool:
        """Return whether an excluded folder may have files that are included."""
        return name in self._above or self._rules.may_include_below(name)

    def _entry(self, item: os.DirEntry[str], name: str, *, is_folder: bool) -> Entry | None:
        """Return an entry; report one that cannot be packed."""
        path = Path(item.path)
        problem = _name_problem(item.name)
        target = ""
        info = item.stat(follow_symlinks=False)
        if not problem and item.is_symlink():
            target = os.readlink(path)
            problem = self._link_problem(path, name, target)
        elif not problem and not is_folder and not stat.S_ISREG(info.st_mode):
            problem = "is neither a file, a folder nor a symbolic link"
        if problem:
            self._report(path, problem)
            return None
        if is_folder:
            return Entry(path, name, is_folder=True)
        if target:
            return Entry(path, name, target=target)
        return Entry(path, name, info.st_size, bool(info.st_mode & stat.S_IXUSR))

    def _link_problem(self, path: Path, name: str, target: str) -> str:
        """Return why a link cannot be packed; empty for one that stays in the folder."""
        lexical = os.path.normpath(os.path.join(os.path.dirname(name), target))
        real = os.path.realpath(path)
        inside = real == self._real or real.startswith(f"{self._real}{os.sep}")
        if os.path.isabs(target) or lexical.split(os.sep)[0] == ".." or not inside:
            return f"is a symbolic link that leaves the folder, to `{printable(target)}`"
        return "is a symbolic link with characters that are not accepted" if printable(target) != target else ""

    def _report(self, path: Path, problem: str) -> None:
        if len(self.problems) >= _MOST_PROBLEMS:
            self.problems.raise_errors()
        shown = printable(str(path))
        hint = f"remove it, or name it in {IGNORE_FILE}"
        self.problems.add(Diagnostic(CODE, f"{shown} {problem}", Mark(shown), hint))


def _name_problem(name: str) -> str:
    """Return why a name cannot be packed: the downloader refuses it, or other machines do not have it."""
    if printable(name) != name or "\\" in name:
        return "has a name with a character that is not accepted"
    return "has a name longer than 255 bytes" if len(name.encode()) > _LONGEST_PART else ""


_SECRET_CODE = "KG0912"
_LARGEST_TEXT = 4 << 20
"""Bytes of a file that are searched: larger ones are data."""
_BINARY_START = 8192
_NAMES = (
    ".env",
    ".env.*",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    "kubeconfig",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.p12",
    "*.pfx",
    "*.kdbx",
)
_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist")
_HINT = f"name it in {IGNORE_FILE}"


def find_secret_files(entries: Iterable[Entry]) -> Iterator[Diagnostic]:
    """Yield a warning (KG0912) for each file whose name or text is that of a credential."""
    for entry in entries:
        if not entry.is_file:
            continue
        if _has_secret_name(entry.name):
            yield _warning(entry, 0, "the name is that of a file with credentials")
            continue
        number, kind = _first_secret(entry)
        if kind:
            yield _warning(entry, number, f"this looks like {kind}")


def _warning(entry: Entry, line: int, problem: str) -> Diagnostic:
    message = f"{entry.name}: {problem}, and it becomes part of the artifact"
    return Diagnostic(_SECRET_CODE, message, Mark(str(entry.path), line), _HINT, Severity.WARNING)


def _has_secret_name(name: str) -> bool:
    own = name.rpartition("/")[2]
    if any(fnmatchcase(own, glob) for glob in _EXAMPLES):
        return False
    return any(fnmatchcase(own, glob) if "/" not in glob else f"/{name}".endswith(f"/{glob}") for glob in _NAMES)


def _first_secret(entry: Entry) -> tuple[int, str]:
    """Return the line of the first credential and its kind; an empty kind without one."""
    if not 0 < entry.size <= _LARGEST_TEXT:
        return 0, ""
    content = entry.path.read_bytes()
    if b"\0" in content[:_BINARY_START]:
        return 0, ""
    text = content.decode("utf-8", "replace")
    if not may_contain_secret(text):
        return 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        kind = looks_like_secret(line)
        if kind is not None:
            return number, kind
    return 0, looks_like_secret(text) or ""
