"""Checks of the files that the lock has of a Model's or a Dataset's source, and that its globs select."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from kaigen.compile.model.conversion import AT
from kaigen.compile.model.mounted import conversion
from kaigen.compile.problems import Problems
from kaigen.config.lock_file import Lock
from kaigen.config.locked_files import known_files, locked_files, selected_files
from kaigen.core.json_types import FieldPath
from kaigen.core.text import some_of
from kaigen.diagnostics.suggest import nearest
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.model import DownloadSpec

_CODE = "KG0323"
_SHOWN = 3
"""Most names of files in a hint."""


class _Needed(Struct, frozen=True):
    """Files of which the converter needs one.

    Attributes:
        name: in messages.
        glob: selects them; empty for the path of the file.
        matches: returns whether a path is that of such a file.
    """

    name: str
    glob: str
    matches: Callable[[str], bool]


def _is_weights(path: str) -> bool:
    return "/" not in path and path.endswith(".safetensors") and not path.startswith("consolidated")


_CONVERTER = (
    _Needed("config.json", "", lambda path: path == "config.json"),
    _Needed("tokenizer.json` or `tokenizer.model", "", lambda path: path in ("tokenizer.json", "tokenizer.model")),
    _Needed("*.safetensors", "*.safetensors", _is_weights),
)
"""What the converter reads, at the top of the source (source: the README of kaigen-convert)."""


def selects_nothing(source: FileSource, lock: Lock | None) -> bool:
    """Return whether the lock has the files of a source, and its globs select none of them."""
    return lock is not None and locked_files(source, lock) == {}


def check_locked_files(spec: DownloadSpec, lock: Lock | None, problems: Problems) -> None:
    """Report globs that select no file of the lock, and files that the converter needs and does not get.

    Args:
        spec: the spec.
        lock: the lock; None without one.
        problems: collects the errors.
    """
    known = known_files(spec.source, lock) if lock is not None else None
    chosen = locked_files(spec.source, lock) if lock is not None else None
    if known is None or chosen is None:
        return
    if not chosen:
        _report_nothing(spec.source, known, problems)
    elif conversion(spec) is not None:
        _check_converter(spec.source, known, chosen, problems)


def _report_nothing(source: FileSource, known: Collection[str], problems: Problems) -> None:
    include, block = _globs(source)
    if not known:
        problems.error(_CODE, "kaigen.lock has no files of this source", block, "run `kaigen lock --upgrade`")
        return
    if include:
        message = f"`include` selects none of the files in kaigen.lock ({len(known)})"
        if selected_files(dict.fromkeys(known), include, ()):
            message = f"`exclude` skips every file that `include` selects in kaigen.lock ({len(known)} files)"
    else:
        message = f"`exclude` skips all files in kaigen.lock ({len(known)})"
    names = _nearest(include, known)
    listed = some_of([f"`{path}`" for path in names], _SHOWN)
    at = (*block, "include" if include else "exclude")
    problems.error(_CODE, message, at, f"change the globs; the files are {listed}")


def _nearest(globs: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the files, those first whose names or endings are similar to one of the globs."""
    forms = {path: path for path in sorted(known)}
    for path in sorted(known):
        forms.setdefault(f"*{PurePosixPath(path).suffix}", path)
    near = [forms[form] for glob in globs for form in nearest(glob, forms)]
    return list(dict.fromkeys([*near, *sorted(known)]))


def _check_converter(source: FileSource, known: Collection[str], chosen: Collection[str], problems: Problems) -> None:
    include, block = _globs(source)
    for needed in _CONVERTER:
        if any(map(needed.matches, chosen)):
            continue
        found = sorted(filter(needed.matches, known))
        message = f"the converter reads `{needed.name}`"
        if not found:
            problems.error(_CODE, f"{message}, and the source has no such file", AT, "use another source")
        elif selected_files(dict.fromkeys(found), include, ()):
            hint = f"change the glob that matches `{found[0]}`"
            problems.error(_CODE, f"{message}, and `exclude` skips it", (*block, "exclude"), hint)
        else:
            hint = f"add `{needed.glob or found[0]}`"
            problems.error(_CODE, f"{message}, and `include` does not select it", (*block, "include"), hint)


def _globs(source: FileSource) -> tuple[Sequence[str], FieldPath]:
    """Return `include` of a source that the lock can have, and the path of its block in the spec."""
    blocks = {"huggingFace": source.hugging_face, "s3": source.s3, "oci": source.oci}
    name, block = next((name, block) for name, block in blocks.items() if block is not None)
    return block.include, ("spec", "source", name)
