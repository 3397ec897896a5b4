"""The schemas that ship with kaigen: what there is, loaded a part at a time.

`data/index.json` lists the kinds: kind to apiVersion to `{ref, cluster, deprecated, since, until}`; without
`ref` no target serves it. `data/SHARD.json` holds definitions: the core kinds by API package (`core.v1`),
custom resources by group (`kueue.x-k8s.io`). A definition is a node, or, where targets differ, a list of
`[first target, last target, node]`.

A node is a string, an atom or the name of another definition (`SHARD/NAME`), or a mapping:

======================  =====================================================================================
`p`, `r`, `open`, `u`   object: fields, required fields, unknown fields allowed, `[least, fields]` of which at
                        most one may be given
`m`                     map: node of its values
`l`, `k`, `set`         list: node of its items, keys that tell them apart, no two equal
`kd`                    defaults of such keys, or of the fields that `one` and `any` look at
`t`, `enum`, `re`       scalar: atom, allowed values, regular expression (RE2)
`min`, `max`            least and most of a number, of the items of a list, of the entries of a map
`minlen`, `maxlen`      least and most characters of a string
`null`, `blank`         null, or the empty string, is allowed; null always is for a field that may be missing
`one`, `any`, `none`    exactly one, at least one, none of these nodes fits as well
======================  =====================================================================================

Atoms: `s` string, `b` boolean, `i` and `i32` integer of 64 and 32 bits, `n` number, `is` integer or string,
`q` quantity, `qi` quantity but no float, `any`, and the forms of strings that `kaigen.check.atoms` and
`kaigen.check.forms` name.

`tools/make_schemas.py` makes the files; `data/manifest.json` says from what.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.check.nodes import Index, Node, Shard

DATA = os.path.join(os.path.dirname(__file__), "data")
_index: list[Index] = []
_shards: dict[str, Shard] = {}


def index() -> Index:
    """The index, read at the first call."""
    if not _index:
        _index.append(_read("index"))
    return _index[0]


def definition(ref: str, target: str) -> Node | None:
    """A definition's node for a target version.

    Args:
        ref: `SHARD/NAME`.
        target: one of the index's targets.

    Returns:
        None when the target does not have it.
    """
    name, _, local = ref.partition("/")
    shard = _shards.get(name)
    if shard is None:
        shard = _shards[name] = _read(name)
    found = shard["defs"][local]
    if not isinstance(found, list):
        return found
    for first, last, node in found:
        if first <= target <= last:
            return node
    return None


def _read(name: str) -> Any:
    import json

    with open(os.path.join(DATA, f"{name}.json"), "rb") as file:
        return json.loads(file.read())
