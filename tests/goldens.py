"""Golden files: the expected output of tests, compared byte for byte. `pytest --update` rewrites them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_HINT = "if the new output is right, run `pytest --update` and review `git diff`"


@dataclass(frozen=True, slots=True)
class Goldens:
    """Compares output with golden files, or rewrites them.

    Attributes:
        folder: the folder of the test's file; paths are relative to it.
        update: rewrite instead of compare.
    """

    folder: Path
    update: bool = False

    def check(self, path: str | Path, actual: str | bytes) -> None:
        """Compare `actual` with the golden file at `path`.

        Raises:
            AssertionError: they differ, or the file does not exist. The message is a unified diff.
        """
        __tracebackhide__ = True
        golden = self.folder / path
        content = _bytes(actual)
        if self.update:
            _write(golden, content)
            return
        expected = golden.read_bytes() if golden.is_file() else None
        if content != expected:
            raise AssertionError(_report([_difference(str(path), expected, content)]))

    def check_tree(self, path: str | Path, actual: Mapping[str, str | bytes]) -> None:
        """Compare `actual`, content by relative path, with every file of the golden folder at `path`.

        Raises:
            AssertionError: they differ. The message has a unified diff of each file that differs.
        """
        __tracebackhide__ = True
        golden = self.folder / path
        contents = {name: _bytes(content) for name, content in actual.items()}
        expected = dict(_read_tree(golden))
        differences = []
        for name in sorted(expected.keys() | contents.keys()):
            before, after = expected.get(name), contents.get(name)
            if before == after:
                continue
            if not self.update:
                differences.append(_difference(f"{path}/{name}", before, after))
            elif after is None:
                (golden / name).unlink()
            else:
                _write(golden / name, after)
        if differences:
            raise AssertionError(_report(differences))


def joined(files: Mapping[str, bytes]) -> str:
    """Return many UTF-8 files as one text, so that one golden file covers a whole folder."""
    parts = []
    for path, content in sorted(files.items()):
        text = content.decode()
        parts.append(f"=== {path}\n{text}" + ("" if text.endswith("\n") else "\n=== no newline at the end\n"))
    return "".join(parts)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _read_tree(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_bytes()


def _write(file: Path, content: bytes) -> None:
    """Write a file whose content differs; others keep their modification time."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _difference(name: str, expected: bytes | None, actual: bytes | None) -> str:
    if actual is None:
        return f"{name}: missing from the output"
    if expected is None:
        return f"{name}: no such golden file; the output is\n{_text(actual)}"
    lines = difflib.unified_diff(
        _text(expected).splitlines(keepends=True),
        _text(actual).splitlines(keepends=True),
        f"{name} (golden)",
        f"{name} (output)",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n(no newline at the end)\n" for line in lines)


def _text(content: bytes) -> str:
    return content.decode(errors="backslashreplace")


def _report(differences: list[str]) -> str:
    return "\n".join(["the output differs from the golden files", *differences, _HINT])
