"""Spec files and overrides in the present spelling, for `kaigen upgrade`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.config.settings import FILE_NAME, Config
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.kinds.entry import OWN_SYSTEM
from kaigen.kinds.spelling import Move, old_spellings, respell
from kaigen.pipeline.sources import read_named
from kaigen.scaffold.changes import FileChange, mark_of
from kaigen.yaml.document import Document, parse
from kaigen.yaml.moves import move_values
from kaigen.yaml.sources import Source

if TYPE_CHECKING:
    from kaigen.kinds.entry import KindEntry


def respelled_files(configs: Sequence[Config], changed: Iterable[FileChange] = ()) -> list[FileChange]:
    """Return the changes of spec files and of kaigen.yaml that have fields in an old spelling.

    Comments and layout stay. A file that cannot be changed without changing something else is kept, with a note.

    Args:
        configs: the settings of each environment.
        changed: changes of files that these follow.
    """
    config = configs[0]
    sources, _ = read_named((), config)
    others = [each for each in changed if each.path == config.root / FILE_NAME]
    found = [_change(source, Path(source.path), [*_moves_of_specs(source)]) for source in sources]
    for each in others:
        source = Source(str(each.path), each.new)
        moves = [(0, move) for move in _moves_of_overrides(configs)]
        found.append(_change(source, each.path, moves, old=each.old))
    return [change for change in found if change is not None]


def _change(source: Source, path: Path, moves: list[tuple[int, Move]], *, old: str | None = None) -> FileChange | None:
    if not moves:
        return None
    by_document: dict[int, list[Move]] = {}
    for index, move in moves:
        by_document.setdefault(index, []).append(move)
    pairs = {index: [(move.old, move.new) for move in each] for index, each in by_document.items()}
    text = move_values(source, pairs, lambda index, data: respell(data, by_document.get(index, [])))
    before = mark_of(path) + source.text if old is None else old
    if text is None:
        names = ", ".join(sorted({str(move.old[-1]) for _, move in moves}))
        return FileChange(
            path, before, before, f"old spellings ({names}) cannot be rewritten here; change them by hand"
        )
    return FileChange(path, before, mark_of(path) + text if old is None else text)


def _moves_of_specs(source: Source) -> Iterator[tuple[int, Move]]:
    for document in parse(source, Diagnostics()):
        entry = find_kind(document.apiVersion, document.kind)
        if entry is not None and entry.system == OWN_SYSTEM:
            for move in old_spellings(document.data, entry.model()):
                yield document.index, move
        elif (document.apiVersion, document.kind) == (OVERRIDES_ENTRY.api_version, OVERRIDES_ENTRY.kind):
            for move in _moves_of_entries(document):
                yield document.index, move


def _moves_of_entries(document: Document) -> Iterator[Move]:
    data: Any = document.data
    overrides = data.get("overrides")
    for index, override in enumerate(overrides if isinstance(overrides, list) else []):
        if isinstance(override, dict):
            match = override.get("match")
            kinds = match.get("kinds") if isinstance(match, dict) else ()
            yield from _moves_of_patch(override, kinds if isinstance(kinds, list) else (), ("overrides", index))


def _moves_of_overrides(configs: Sequence[Config]) -> Iterator[Move]:
    entries = {each.at: each for config in configs for each in config.overrides if not each.file}
    for at, each in entries.items():
        yield from _moves_of_patch(each.patch, each.kinds, at)


def _moves_of_patch(patch: Any, kinds: Iterable[str], at: FieldPath) -> Iterator[Move]:
    """Yield what a patch of specs has in an old place, for the kinds that it may be of."""
    named = set(kinds)
    fitting: list[KindEntry] = [each for each in own_kinds() if not named or {each.key, each.kind} & named]
    moves = [move for each in fitting if each.system == OWN_SYSTEM for move in old_spellings(patch, each.model())]
    for move in dict.fromkeys(moves):
        yield Move((*at, *move.old), (*at, *move.new))
