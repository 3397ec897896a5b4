"""Overridden settings of apps with the places where they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kaigen.config.settings import FILE_NAME, Config
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.config import document as config_document


Overrides = Mapping[str, Mapping[str, Any]]
"""Values by app, `NAME` or `NAMESPACE/NAME`."""


class Locate(Protocol):
    """Returns the place of a path, or of the key at its end; None where it is not known."""

    def __call__(self, path: FieldPath, *, key: bool) -> Mark | None:
        """Return the place of a path such as `("qwen", "storage", "size")`."""


class Layer(dict[str, Any]):
    """Overrides that know where they are written.

    Attributes:
        place: returns the place of a path.
    """

    def __init__(self, values: Mapping[str, Any], place: Locate) -> None:
        super().__init__(values)
        self.place = place


def value_layers(config: Config) -> list[Overrides]:
    """Return the overrides in kaigen.yaml; the file is read again when a place is needed."""
    return [Layer(values, _ConfigPlaces(config, values)) for values in config.values]


class _ConfigPlaces:
    """The places of overrides in kaigen.yaml."""

    def __init__(self, config: Config, values: Overrides) -> None:
        self._config = config
        self._values = values

    def __call__(self, path: FieldPath, *, key: bool) -> Mark | None:
        """Return the place of a path in these overrides; None when the file has changed since."""
        document = config_document.read_document(self._config.root / FILE_NAME, "KG0701", Diagnostics())
        for start in ((), ("environments", self._config.environment)):
            node: Any = document.data if document else None
            for step in (*start, "values"):
                node = node.get(step) if isinstance(node, dict) else None
            if document is not None and node == self._values:
                return document.mark((*start, "values", *path), key=key)
        return None
