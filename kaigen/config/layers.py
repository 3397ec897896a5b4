"""The layers of kaigen.yaml: the file, and over it one of its environments.

Each key that an environment may set has a row in `LAYERS`, which combines its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Any, TypeAlias

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Mark
from kaigen.yaml.document import Document

Values: TypeAlias = Sequence[Any]
"""The values of a key in the layers that set it, that of the file first; at least one."""

SYNCERS = ("argocd", "flux")
"""The fields of `gitops` that select what syncs."""


def last(values: Values) -> Any:
    """Return the value of the last layer."""
    return values[-1]


def concatenate(values: Values) -> list[Any]:
    """Return the entries of all layers."""
    return [entry for value in values for entry in value]


def separate(values: Values) -> list[Any]:
    """Return the values as they are: each app combines them."""
    return [value for value in values if value]


def update(depth: float) -> Callable[[Values], Any]:
    """Return a rule that combines mappings, and in mappings below them down to a depth, key by key.

    Args:
        depth: of the last mappings that are combined: 1 replaces every value of a key, inf no mapping.
    """

    return lambda values: reduce(lambda below, above: _updated(below, above, depth), values)


def _updated(below: Any, above: Any, depth: float) -> Any:
    if not (depth and isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    both = {name: _updated(below[name], value, depth - 1) for name, value in above.items() if name in below}
    return {**below, **above, **both}


def syncers(values: Values) -> Any:
    """Return `gitops` combined at every depth; a layer that names a syncer uses only those that it names."""
    above = values[-1]
    named = [name for name in SYNCERS if name in above]
    dropped = {name for name in SYNCERS if named and name not in named}
    return update(inf)([{name: value[name] for name in value if name not in dropped} for value in values])


LAYERS: Mapping[str, Callable[[Values], Any]] = {
    "kubernetes": last,
    "profile": last,
    "region": last,
    "cluster": update(1),
    "namespace": last,
    "format": last,
    "kustomizations": last,
    "registry": last,
    "images": update(1),
    "storageClasses": update(1),
    "builds": update(1),
    "network": update(1),
    "values": separate,
    "secrets": update(3),
    "overrides": concatenate,
    "patches": concatenate,
    "labels": update(1),
    "annotations": update(1),
    "external": concatenate,
    "dialects": update(2),
    "tenants": update(2),
    "gitops": syncers,
}
"""How the layers of each key combine. The file defines `clusters`, of which an environment only lists some."""


class Layers(Struct, frozen=True):
    """The layers of kaigen.yaml.

    Attributes:
        document: the file, which is valid; None without it.
        environment: its name; empty for the file alone.
    """

    document: Document | None
    environment: str = ""

    @property
    def layers(self) -> list[tuple[FieldPath, Mapping[str, Any]]]:
        """The path and the content of each layer, the file first."""
        if self.document is None:
            return []
        data: Any = self.document.data
        own = ("environments", self.environment)
        return [((), data), *([(own, data["environments"][self.environment])] if self.environment else [])]

    def combined(self) -> dict[str, Any]:
        """Return the content of the file, with the combined values of the keys in the table."""
        found = {key: [layer[key] for _, layer in self.layers if key in layer] for key in LAYERS}
        file = self.layers[0][1] if self.layers else {}
        return {**file, **{key: LAYERS[key](values) for key, values in found.items() if values}}

    def entries(self, key: str) -> list[FieldPath]:
        """Return the path of each entry of a list that is concatenated."""
        return [(*place, key, index) for place, layer in self.layers for index, _ in enumerate(layer.get(key, ()))]

    def path(self, *path: str) -> FieldPath:
        """Return the path of a field in the last layer that sets it, or in the file."""
        return next(((*place, *path) for place, layer in reversed(self.layers) if _has(layer, path)), path)

    def mark(self, *path: str, key: bool = False) -> Mark:
        """Return the place of a field in the last layer that sets it, or in the file."""
        return self.mark_of(self.path(*path), key=key)

    def mark_of(self, path: FieldPath, *, key: bool = False) -> Mark:
        """Return the place of a path in kaigen.yaml."""
        assert self.document is not None
        return self.document.mark(path, key=key)


def _has(data: object, path: Sequence[str]) -> bool:
    for step in path:
        if not isinstance(data, Mapping) or step not in data:
            return False
        data = data[step]
    return True
