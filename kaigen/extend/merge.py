"""Merge patches on objects with expressions: RFC 7396, with the lists and `$patch` of strategic merge patches.

Mappings are merged and null removes a field. A list is replaced, except those whose entries Kubernetes identifies by a
key, such as containers: their entries are merged one by one. `$patch: delete` removes an entry or a field, and
`$patch: replace` replaces it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from kaigen.compile.expressions import Expr, Scope, resolve
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.errors import InputError, KaigenError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.pointer import is_omitted, open_expression

_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "secrets": ("name",),
}
"""List and the fields of its entries, of which the first that an entry has identifies it.

Source: `x-kubernetes-patch-merge-key` in the OpenAPI document of Kubernetes. kubectl does not apply them to custom
resources; kaigen does."""

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
"""Lists of containers."""


DIRECTIVE = "$patch"
DIRECTIVES = ("delete", "merge", "replace")


class MergeFailed(KaigenError):
    """An entry of a list cannot be merged.

    Attributes:
        path: path of the entry in the patch.
    """

    exit_code = InputError.exit_code

    def __init__(self, message: str, path: FieldPath, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


class Merge:
    """A merge of one patch into one object.

    Attributes:
        written: pairs of a path in the object and the path in the patch that its value comes from.
        absent: pairs of paths of what the patch removes and the object does not have.
    """

    def __init__(self, scope: Scope) -> None:
        self.written: list[tuple[FieldPath, FieldPath]] = []
        self.absent: list[tuple[FieldPath, FieldPath]] = []
        self._scope = scope

    def apply(self, node: Any, patch: Any, path: FieldPath = (), origin: FieldPath = ()) -> Any:
        """Return a tree with a patch applied.

        Args:
            node: the tree; may be modified.
            patch: the patch.
            path: path of the tree in the object.
            origin: path of the patch in the whole patch.

        Raises:
            MergeFailed: an entry of a list does not name its key, or changes a container that does not exist.
        """
        if isinstance(node, Expr):
            node = open_expression(node)
        if isinstance(patch, list) and isinstance(node, list) and self._is_merged(patch, path):
            return self._entries(node, patch, path, origin)
        if not isinstance(patch, Mapping) or patch.get(DIRECTIVE) == "replace":
            self.written.append((path, origin))
            return without_directives(patch)
        if not isinstance(node, dict):
            node = {}
        for key, value in patch.items():
            self._field(node, key, value, (*path, key), (*origin, key))
        if not patch:
            self.written.append((path, origin))
        return node

    def _field(self, node: dict[str, Any], key: str, value: Any, path: FieldPath, origin: FieldPath) -> None:
        if key == DIRECTIVE:
            return
        if value is None or (isinstance(value, Mapping) and value.get(DIRECTIVE) == "delete"):
            if key not in node or is_omitted(node[key], self._scope):
                self.absent.append((path, origin))
            node.pop(key, None)
            self.written.append((path, origin))
        else:
            node[key] = self.apply(node.get(key), value, path, origin)

    def _is_merged(self, patch: Sequence[Any], path: FieldPath) -> bool:
        return bool(path) and path[-1] in _MERGE_KEYS and all(isinstance(entry, Mapping) for entry in patch)

    def _entries(
        self, node: list[Any], patch: Sequence[Mapping[str, Any]], path: FieldPath, origin: FieldPath
    ) -> list[Any]:
        if any(entry == {DIRECTIVE: "replace"} for entry in patch):
            self.written.append((path, origin))
            return [without_directives(entry) for entry in patch if entry != {DIRECTIVE: "replace"}]
        places = [
            (entry, (*origin, number), self._position(node, entry, path, (*origin, number)))
            for number, entry in enumerate(patch)
        ]
        deleted = [place for place in places if place[0].get(DIRECTIVE) == "delete"]
        gone = {position for _, _, position in deleted if position is not None}
        self.absent += [((*path, len(node)), where) for _, where, position in deleted if position is None]
        moved = {old: new for new, old in enumerate(old for old in range(len(node)) if old not in gone)}
        kept = [item for position, item in enumerate(node) if position not in gone]
        for entry, where, position in places:
            if entry.get(DIRECTIVE) == "delete":
                continue
            if position is None:
                kept.append(None)
            target = len(kept) - 1 if position is None else moved[position]
            kept[target] = self.apply(kept[target], entry, (*path, target), where)
        node[:] = kept  # A list that also has items of a setting stays such a list.
        return node

    def _position(
        self, node: Sequence[Any], entry: Mapping[str, Any], path: FieldPath, origin: FieldPath
    ) -> int | None:
        """Return the index of the entry that a patch changes; None for a new one."""
        field = str(path[-1])
        key = next((key for key in _MERGE_KEYS[field] if key in entry), None)
        if key is None:
            wanted = _MERGE_KEYS[field][0]
            known = ", ".join(f"`{wanted}: {value}`" for value in self._values(node, wanted))
            hint = f"known: {known}" if known else ""
            raise MergeFailed(f"an entry of `{field}` must have `{wanted}`", origin, hint)
        values = self._values(node, key)
        if entry[key] in values:
            return values.index(entry[key])
        if field in _CONTAINERS and "image" not in entry and entry.get(DIRECTIVE) != "delete":
            names = [str(value) for value in values]
            listed = "known: " + ", ".join(f"`{name}`" for name in names)
            hint = did_you_mean(str(entry[key]), names) or listed
            raise MergeFailed(f"`{field}` has no `{entry[key]}`, and a new container needs `image`", origin, hint)
        return None

    def _values(self, node: Sequence[Any], key: str) -> list[Any]:
        """Return the value of a key in each entry."""
        entries = [resolve(item, self._scope) for item in node]
        return [entry.get(key) if isinstance(entry, Mapping) else None for entry in entries]


def without_directives(value: Any) -> Any:
    """Return a copy of a value of a patch without `$patch`."""
    if isinstance(value, Mapping):
        return {key: without_directives(item) for key, item in value.items() if key != DIRECTIVE}
    if isinstance(value, list | tuple):
        return [without_directives(item) for item in value]
    return copy.deepcopy(value)
