r"""Scenario files: calls of kaigen with their output and effects, on one screen.

    A sentence about the behaviour.
    use rendered

    --- specs/a.yaml
    kind: Modle
    $ kaigen validate
    === stderr
    specs/a.yaml:1:7: error[KG0212]: …
    === exit 2

A scenario starts in an empty folder, or in the folder that a scenario of `base/` leaves behind (`use NAME`).
`--- PATH` writes a file. `$ …` calls a program; the sections below it are the expected result:

- `=== stdout`, `=== stderr`: the output; empty by default;
- `=== exit N`: the exit code; 0 by default;
- `=== changed`: the files the call adds (`+`), changes (`~`) and removes (`-`); none by default;
- `=== file PATH`: the content of a file after the call.

`kaigen` is called in this process, `python -m kaigen` in a process of its own. Other programs (git, rm, ln, …) must
only succeed. `NAME=VALUE` before the program sets a variable, `< PATH` at the end sets standard input, and `$ cd PATH`
changes the working directory of the calls after it. `{folder}` is replaced by the scenario's folder.

A heading that ends in `(escaped)` has text with the escapes `\\ \r \t \xHH`; a backslash at the end of a line joins it
with the next, and the final newline counts. In other text a backslash at the start of a line means that the line is no
heading, and a last line of `\ no newline` means that the text does not end in a newline.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

_HEADING = re.compile(r"(?:\$ |--- |=== )(?=\S)")
_ESCAPED = " (escaped)"
_NO_NEWLINE = "\\ no newline\n"
_ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
_LETTERS = {b"\\": b"\\", b"r": b"\r", b"t": b"\t", b"\n": b""}
_PLAIN = frozenset("\n") | {chr(code) for code in range(32, 127)}

_GIT = {
    **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.com" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2026-01-02T03:04:05Z" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "init.defaultBranch",
    "GIT_CONFIG_VALUE_0": "main",
}


class ScenarioError(Exception):
    """A scenario file that cannot be read, or a setup call in it that fails."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the lines below it.

    Attributes:
        heading: without its mark; empty for the text before the first heading.
        mark: `$`, `---`, `===`; empty for the text before the first heading.
        lines: the text below, including newlines.
    """

    mark: str
    heading: str
    lines: tuple[str, ...]

    @property
    def escaped(self) -> bool:
        """Whether the text has escapes."""
        return self.heading.endswith(_ESCAPED)

    @property
    def name(self) -> str:
        """The heading without `(escaped)`."""
        return self.heading.removesuffix(_ESCAPED)

    def content(self) -> bytes:
        """Return the text without escapes."""
        text = "".join(self.lines).rstrip("\n")
        text += "\n" if text else ""
        if self.escaped:
            return _ESCAPE.sub(_unescape, text.removesuffix("\n").encode() + b"\n")
        if text.endswith(_NO_NEWLINE):
            text = text.removesuffix(_NO_NEWLINE).removesuffix("\n")
        return re.sub(r"^\\", "", text, flags=re.MULTILINE).encode()


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes.fromhex(match[1].decode())
    if match[2] not in _LETTERS:
        raise ScenarioError(f"unknown escape {match[0]!r}")
    return _LETTERS[match[2]]


def _section(mark: str, name: str, content: bytes) -> str:
    """Return the text of a section with this content."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    if content and not (text and all(char in _PLAIN or char.isprintable() for char in text)):
        escaped = "".join(_escape(byte) for byte in content)
        return f"{mark} {name}{_ESCAPED}\n" + (escaped if content.endswith(b"\n") else f"{escaped}\\\n\n")
    lines = [f"\\{line}" if line.startswith("\\") or _HEADING.match(line) else line for line in _lines(text)]
    if lines and not lines[-1].endswith("\n"):
        lines += ["\n", _NO_NEWLINE]
    elif lines and lines[-1] == "\n":
        lines[-1] = "\\\n"  # An empty line at the end belongs to the text.
    return f"{mark} {name}\n" + "".join(lines)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _escape(byte: int) -> str:
    char = chr(byte)
    if char in _PLAIN and char != "\\":
        return char
    return {"\\": r"\\", "\r": r"\r", "\t": r"\t"}.get(char, f"\\x{byte:02x}")


def parse(text: str) -> list[Section]:
    """Return the sections of a scenario file."""
    sections = [("", "", [])] if text else []  # type: list[tuple[str, str, list[str]]]
    for line in _lines(text):
        if _HEADING.match(line):
            mark, _, heading = line.rstrip("\n").partition(" ")
            sections.append((mark, heading, []))
        else:
            sections[-1][2].append(line)
    return [Section(mark, heading, tuple(lines)) for mark, heading, lines in sections]


@dataclass(slots=True)
class _Outcome:
    """The result of a call."""

    code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    changed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Player:
    """Run one scenario.

    Attributes:
        folder: the working directory; empty, or as the scenario in `use` left it.
        cache: kaigen's cache folder.
        here: the folder of the next call, relative to `folder`.
    """

    folder: Path
    cache: Path
    here: Path = Path()

    def play(self, text: str) -> str:
        """Run the scenario and return its text with the actual results.

        Raises:
            ScenarioError: a setup call fails, or a traceback is printed.
        """
        sections = parse(text)
        parts = ["".join(sections[0].lines)]
        outcome = _Outcome()
        files: list[str] = []
        called = False
        for section in [*sections[1:], Section("$", "", ())]:
            if section.mark == "===":
                if section.name.startswith("file "):
                    files.append(section.name.removeprefix("file "))
                continue
            if called:
                parts.append(self._result_sections(outcome, files))
                files, called = [], False
            if section.mark == "---":
                path = self.folder / section.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(section.content())
                parts.append(f"--- {section.heading}\n" + "".join(section.lines))
            elif section.heading:
                blank = "\n" if parts[-1] and not parts[-1].endswith("\n\n") and parts[-1].startswith("===") else ""
                parts.append(f"{blank}$ {section.heading}\n")
                outcome, called = self._call(section.heading), True
        return "".join(parts).rstrip("\n") + "\n"

    def _result_sections(self, outcome: _Outcome, files: Sequence[str]) -> str:
        sections = []
        for name, content in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
            content = content.replace(str(self.folder).encode(), b"{folder}")
            if b"Traceback" in content:
                raise ScenarioError(f"a traceback on {name}:\n{content.decode(errors='replace')}")
            if content:
                sections.append(_section("===", name, content))
        if outcome.code:
            sections.append(f"=== exit {outcome.code}\n")
        if outcome.changed:
            sections.append("=== changed\n" + "".join(f"{line}\n" for line in outcome.changed))
        for path in files:
            file = self.folder / path
            content = file.read_bytes() if file.is_file() else b"(there is no such file)"
            sections.append(_section("===", f"file {path}", content))
        return "".join(sections) + "\n"

    def _call(self, line: str) -> _Outcome:
        words = shlex.split(line.replace("{folder}", str(self.folder)))
        stdin = b""
        if len(words) > 2 and words[-2] == "<":
            stdin = (self.folder / words[-1]).read_bytes()
            words = words[:-2]
        variables = dict(os.environ)
        for name in [name for name in variables if name.startswith(("GIT_", "KAIGEN_"))]:
            del variables[name]
        variables |= {"KAIGEN_CACHE_DIR": str(self.cache), "COLUMNS": "100", "TERM": "xterm", **_GIT}
        variables.pop("NO_COLOR", None)
        while re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        program, *arguments = words
        if program == "cd":
            self.here = Path(arguments[0])
            return _Outcome()
        before = _snapshot(self.folder)
        if program == "kaigen":
            outcome = _Outcome(*call_in_process(arguments, self.folder / self.here, variables, stdin))
        else:
            outcome = _in_its_own(words, self.folder / self.here, variables, stdin)
            if program != "python":
                if outcome.code:
                    raise ScenarioError(f"{line}: {outcome.stderr.decode(errors='replace')}")
                return _Outcome()
        after = _snapshot(self.folder)
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                sign = "+" if path not in before else "-" if path not in after else "~"
                outcome.changed.append(f"{sign} {path}")
        return outcome


def call_in_process(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str], stdin: bytes = b""
) -> tuple[int, bytes, bytes]:
    """Call kaigen in this process.

    Args:
        arguments: of the command `kaigen`.
        folder: its working directory.
        variables: all its environment variables.
        stdin: its standard input.

    Returns:
        The exit code, the standard output and the standard error.
    """
    from kaigen.cli.main import run

    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", write_through=True) for data in (stdin, b"", b"")]
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, variables, clear=True),
        mock.patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
    ):
        code = run(arguments)
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return code, out, err


def _in_its_own(words: Sequence[str], folder: Path, variables: Mapping[str, str], stdin: bytes) -> _Outcome:
    command = [sys.executable, *words[1:]] if words[0] == "python" else list(words)
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        command, cwd=folder, env={**variables, "PYTHONPATH": root}, input=stdin, capture_output=True, timeout=60
    )
    return _Outcome(done.returncode, done.stdout, done.stderr)


def _snapshot(folder: Path) -> dict[str, bytes | str]:
    """Return every file, link and empty folder with its content, without `.git`."""
    return dict(_entries(folder, folder))


def _entries(folder: Path, root: Path) -> Iterator[tuple[str, bytes | str]]:
    for path in folder.iterdir():
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            yield name, os.readlink(path)
        elif path.is_dir():
            if path.name != ".git":
                inside = list(_entries(path, root))
                yield from inside or [(f"{name}/", "")]
        else:
            yield name, path.read_bytes()


def base_of(text: str) -> str:
    """Return the name of the `base/` scenario that a scenario starts from; empty for none."""
    match = re.search(r"^use (\S+)$", "".join(parse(text)[0].lines), re.MULTILINE)
    return match[1] if match else ""
