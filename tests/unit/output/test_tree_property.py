"""Any write to any directory either succeeds completely or is rejected and changes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.diagnostics.errors import InputError
from kaigen.output.contents import TreeState
from kaigen.output.index import INDEX_NAME, collisions, format_index, parse_index
from kaigen.output.tree import plan_tree, write_tree
from tests.unit.output.trees import Snapshot, leftovers, no_exchange, read_tree, snapshot

NAMES = st.sampled_from(["a", "b", "c", "B"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(PATHS, st.sampled_from([b"", b"1", b"2"]), max_size=8)
FOREIGN = st.dictionaries(PATHS, st.sampled_from(["file", "directory", "link"]), max_size=4)


def plant(root: Path, foreign: dict[str, str]) -> None:
    """Put things of others wherever there is room, and edit what is kaigen's where there is none."""
    for path, kind in foreign.items():
        place = root / path
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                place.write_bytes(b"1")
            elif kind == "directory":
                place.mkdir(mode=0o750)
            else:
                place.symlink_to("..")


def others(found: Snapshot, owned: set[str]) -> Snapshot:
    """Of a directory's entries those that are not kaigen's, with the directories that only hold these."""
    mine = {p: e for p, e in found.items() if e[0] in ("file", "link", "special")}
    mine = {p: e for p, e in mine.items() if p != INDEX_NAME and not (p in owned and e[0] == "file")}
    empty = {p: e for p, e in found.items() if e[0] == "directory" and not any(q.startswith(p + "/") for q in found)}
    return {**mine, **empty}


@settings(max_examples=200)
@given(old=TREES, foreign=FOREIGN, new=TREES, swaps=st.booleans(), in_scope=st.none() | st.sampled_from("abc"))
def test_a_write_succeeds_completely_or_changes_nothing(
    old: dict[str, bytes], foreign: dict[str, str], new: dict[str, bytes], swaps: bool, in_scope: str | None
) -> None:
    with tempfile.TemporaryDirectory() as above:
        root = Path(above, "deploy")
        try:
            write_tree(root, old)
        except InputError:
            old = {}
        plant(root, foreign)
        before = snapshot(root)
        scope = None if in_scope is None else lambda path: path.startswith(in_scope)
        kept = {path: b"" for path in old if path not in new and scope is not None and not scope(path)}
        wanted = {*new, *kept}
        state = TreeState()
        with nullcontext() if swaps else no_exchange():
            try:
                plan = plan_tree(root, new, scope=scope)
                change = write_tree(root, new, scope=scope, state=state)
            except InputError as refusal:
                assert snapshot(root) == before
                codes = {d.code for d in refusal.diagnostics}
                assert codes <= {"KG0601", "KG0603"}
                assert "KG0603" in codes or foreign
                return
            assert change == plan
            after = snapshot(root)
            assert {path: after[path][1] for path in new} == new
            assert all(after[path][0] == "file" for path in new)
            assert {p: after[p] for p in kept if p in before} == {p: before[p] for p in kept if p in before}
            survivors = others(before, set(old))
            survivors = {p: e for p, e in survivors.items() if p not in new}  # adopted: same content
            # An empty directory of others may by now hold an output, and is still there.
            assert {p: after[p] for p in survivors} == survivors
            gone = set(old) - wanted
            expected = {*new, *survivors, *(p for p in kept if p in before), *([INDEX_NAME] if wanted else [])}
            folders = {"/".join(p.split("/")[:n]) for p in expected for n in range(1, p.count("/") + 1)}
            emptied_before = {p for p, e in before.items() if e[0] == "directory"} & folders
            assert set(after) == expected | folders | emptied_before
            assert not gone & set(after) - set(survivors) - folders
            owned, problems = parse_index(after[INDEX_NAME][1] if INDEX_NAME in after else format_index(["x"]), "i")
            assert not problems
            assert owned == (wanted or {"x"})
            assert write_tree(root, new, scope=scope, state=state).is_empty
            assert snapshot(root) == after
        assert leftovers(Path(above)) == []


@given(st.lists(TREES, min_size=2, max_size=6))
def test_a_state_reused_by_many_writes_never_hides_a_difference(trees: list[dict[str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as above:
        root, state = Path(above, "deploy"), TreeState()
        for files in trees:
            with suppress(InputError):
                write_tree(root, files, state=state)
                assert read_tree(root) == files
                state = TreeState.load(state.dump())


def texts() -> Iterator[st.SearchStrategy[str]]:
    yield st.text(st.sampled_from("aAßsé\u0301e/."), min_size=1, max_size=5)
    yield PATHS


@given(st.sets(st.one_of(*texts()), max_size=8))
def test_paths_without_collisions_are_distinct_without_case(paths: set[str]) -> None:
    import unicodedata

    paths = {path for path in paths if all(part not in ("", ".", "..") for part in path.split("/"))}
    folded = {unicodedata.normalize("NFC", path.casefold()) for path in paths}
    if not list(collisions(paths)):
        assert len(folded) == len(paths)
        assert not any(other.startswith(path + "/") for path in paths for other in paths)
        assert list(collisions(folded)) == []
    elif len(folded) == len(paths):
        # Then files differ, but a directory collides with another or with a file.
        assert any("/" in path for path in paths)
