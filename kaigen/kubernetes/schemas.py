"""The Kubernetes schemas that ship with kaigen, loaded one file at a time.

`data/index.json` lists the kinds: kind to apiVersion to `{ref, cluster, deprecated, rules, since, until}`; without
`ref` no target serves it. `data/SHARD.json` holds definitions: the core kinds by API package (`core.v1`),
custom resources by group (`kueue.x-k8s.io`). Those of a group with rules in CEL or defaults have a second
file, `data/GROUP.rules.json`: see `custom_rules`. A definition is a node, or, where targets differ, a list of
`[first target, last target, node]`.

A node is a string, an atom or the name of another definition (`SHARD/NAME`), or a mapping:

======================  =====================================================================================
`p`, `r`, `open`, `u`   object: fields, required fields, unknown fields allowed, `[least, fields]` of which at
                        most one may be set
`rules`                 object: `[when, then]`: where fields meet the first condition, others must meet the second.
                        A condition has for each field `set` (and not empty), `given` (also empty), `unset`, or
                        the allowed values, with "" for a field that is not there
`m`, `keys`             map: node of its values, atom of its keys
`l`, `k`, `set`         list: node of its items, keys that distinguish them, no two equal
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

import json
import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import CustomRules, Index, Node, RuleFile, RulePlace, Shard


SUPPORTED_VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
"""Oldest first; `tools/make_schemas.py` makes schemas of these."""

DEFAULT_VERSION = "1.36"


_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
DATA = os.path.join(os.path.dirname(__file__), "data")


@cache
def index() -> Index:
    """Return the index of all kinds."""
    found: Index = _read("index")
    return found


def is_cluster_scoped(api_version: str, kind: str) -> bool | None:
    """Whether objects of a kind have no namespace; None for a kind without a schema."""
    entry = index()["kinds"].get(kind, {}).get(api_version)
    return None if entry is None else "cluster" in entry


@cache
def is_cluster_type(kind: str, group: str) -> bool:
    """Whether objects of a kind have no namespace, in any version of its group; False without a schema."""
    return any(
        "cluster" in entry
        for version, entry in index()["kinds"].get(kind, {}).items()
        if version.rpartition("/")[0] == group
    )


@cache
def kinds_of_group(group: str) -> tuple[str, ...]:
    """Return the kinds of an API group that have a schema, in any version."""
    return tuple(
        kind
        for kind, versions in index()["kinds"].items()
        if any(version.rpartition("/")[0] == group for version in versions)
    )


@cache
def may_be_custom(api_version: str, kind: str) -> bool:
    """Whether a CustomResourceDefinition may define a kind.

    Its group has a dot in its name, and the API server does not serve the group itself.
    """
    group, _, version = api_version.rpartition("/")
    if "." not in group or not (_VERSION.fullmatch(version) and _KIND.fullmatch(kind)):
        return False
    return all(
        entry.get("ref", group).partition("/")[0] == group
        for versions in index()["kinds"].values()
        for name, entry in versions.items()
        if name.rpartition("/")[0] == group
    )


def definition(ref: str, target: str) -> Node | None:
    """Return the node of a definition for a target version.

    Args:
        ref: `SHARD/NAME`.
        target: one of the index's targets.

    Returns:
        None when the target does not have it.
    """
    name, _, local = ref.partition("/")
    found = _shard(name)["defs"][local]
    if not isinstance(found, list):
        return found
    for first, last, node in found:
        if first <= target <= last:
            return node
    return None


def custom_rules(api_version: object, kind: object) -> tuple[RulePlace, CustomRules] | None:
    """Return the rules in CEL and the defaults of a custom kind; None where they have no effect.

    A place has the numbers of the `rules` of its value, and of those that compare it `then` with the value before; its
    `default`, and whether it may be `null`; and the places in it: the fields of an object (`p`), the values of a map
    (`m`) or the items of a list (`l`, which `k` distinguishes; `whole` if who applies the list owns all that is in it).
    """
    entry = index()["kinds"].get(str(kind), {}).get(str(api_version))
    if entry is None or "rules" not in entry:
        return None
    group, _, version = str(api_version).rpartition("/")
    found = _rules(group)
    return found["kinds"][f"{kind}.{version}"], found["rules"]


@cache
def _rules(group: str) -> RuleFile:
    found: RuleFile = _read(f"{group}.rules")
    return found


@cache
def _shard(name: str) -> Shard:
    found: Shard = _read(name)
    return found


def _read(name: str) -> Any:
    with open(os.path.join(DATA, f"{name}.json"), "rb") as file:
        return json.loads(file.read())
