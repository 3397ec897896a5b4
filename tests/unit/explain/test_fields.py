"""`kaigen explain` answers everything that it lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kaigen.config.file import CONFIG_ENTRY
from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.config.pins import PINS_ENTRY
from kaigen.dialects.registry import own_kinds
from kaigen.explain.fields import UnknownFieldError, field_lines
from kaigen.extend.definition import DEFINITION_ENTRY
from kaigen.kinds.entry import KindEntry

ENTRIES = (*own_kinds(), CONFIG_ENTRY, PINS_ENTRY, OVERRIDES_ENTRY, DEFINITION_ENTRY)


def listed_paths(entry: KindEntry) -> Iterator[tuple[list[str], str]]:
    """Yield each path of the recursive listing of a kind, with its type."""
    path: list[str] = []
    for line in field_lines(entry, [], recursive=True):
        found = re.fullmatch(r"((?:  )+)(\S+) <(.*)>( -required-)?", line)
        if found:
            path[len(found[1]) // 2 - 1 :] = [found[2]]
            yield list(path), found[3]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)
def test_every_listed_field_is_explained(entry: KindEntry) -> None:
    paths = list(listed_paths(entry))
    assert len(paths) > 5
    for path, kind in paths:
        assert field_lines(entry, path)[2] == f"FIELD:    {'.'.join(path)} <{kind}>"


def explain(path: str) -> str:
    kind, *names = path.split(".")
    entry = next(entry for entry in ENTRIES if entry.key == kind)
    return "\n".join(field_lines(entry, names))


def test_fields_of_list_entries_need_no_index() -> None:
    assert "A Model in the same namespace" in explain("Topology.spec.adapters.model")


def test_keys_of_maps_may_be_left_out() -> None:
    assert explain("Config.environments.gitops").splitlines()[2].endswith("gitops <object>")
    assert "Merged over `gitops`" in explain("Config.environments.gitops")
    assert "Merged over `gitops`" in explain("Config.environments.prod.gitops")


def test_values_of_a_field_are_in_the_list_of_its_block() -> None:
    assert "Values: manifests, chart, both" in explain("Config")


def test_a_misspelled_field_in_a_list_is_suggested() -> None:
    with pytest.raises(UnknownFieldError, match="adapters has no field modle; did you mean `model`"):
        explain("Topology.spec.adapters.modle")
