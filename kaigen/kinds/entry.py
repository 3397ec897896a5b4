"""A kind of document: its names, its model and its compile function, imported only when used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from kaigen.kinds.block import Block

API_VERSION: Final = "kaigen.dev/v1alpha1"
"""Version of kaigen's own kinds."""

OWN_SYSTEM = "kaigen"
"""System of kaigen's own kinds."""

GROUP_VERSION: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/v[0-9]+((alpha|beta)[0-9]+)?$"
"""Group and version of a kind that is not kaigen's own."""

PATCHABLE: Final = ("spec", "resource", "inference", "tuning")
"""Top-level fields besides `metadata` that an override may patch; a KAITO Workspace has no `spec`."""

NullPath = tuple[str, ...]
"""Path of a field where null is allowed; `*` matches any key or index."""


def import_reference(reference: str) -> Any:
    """Return what `module:name` refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


class KindEntry(Struct, frozen=True):
    """A kind of document.

    Attributes:
        api_version: of its documents.
        kind: of its documents.
        model_reference: `module:class` of the model of a whole document.
        summary: purpose of the kind in a few words.
        system: `kaigen`, the name of a dialect, or the API group of a user's kind.
        older: version, for a kind that its system still reads next to a newer version; empty for the newest.
        nullable: fields in which null is allowed at any depth, besides those of every kind.
        empty: fields that may be written without a value themselves.
        patchable: top-level fields, besides `metadata`, that overrides in kaigen.yaml may patch.
    """

    api_version: str
    kind: str
    model_reference: str
    summary: str
    system: str = OWN_SYSTEM
    older: str = ""
    nullable: tuple[NullPath, ...] = ()
    empty: tuple[NullPath, ...] = ()
    patchable: tuple[str, ...] = ("spec",)

    def model(self) -> type[Block]:
        """Return the model of a whole document."""
        model: type[Block] = import_reference(self.model_reference)
        return model

    def spec_schema(self) -> Mapping[str, Any] | None:
        """Return the JSON Schema of `spec` for a kind whose model leaves it open; None for all others."""
        return None

    @property
    def key(self) -> str:
        """Unique name for schemas and `explain`: `Model`, or `ai-operator.Job` for a dialect's kind.

        Older versions end in their name: `kaito.Workspace.v1alpha1`.
        """
        name = self.kind if self.system == OWN_SYSTEM else f"{self.system}.{self.kind}"
        return f"{name}.{self.older}" if self.older else name


E = TypeVar("E", bound=KindEntry)


def find_entry(api_version: str | None, kind: str | None, entries: Iterable[E]) -> E | None:
    """Return the kind of a document; None when it is none of these."""
    return next((entry for entry in entries if entry.api_version == api_version and entry.kind == kind), None)


def entries_by_name(entries: Iterable[E]) -> dict[str, E]:
    """Return kinds by their keys, and by the kind alone where only one has that name."""
    known = list(entries)
    named = {entry.key: entry for entry in known}
    for entry in known:
        if not entry.older and sum(other.kind == entry.kind and not other.older for other in known) == 1:
            named.setdefault(entry.kind, entry)
    return named


Compiler = Callable[..., Any]
"""`compile(block, context, problems) -> App`, with a dialect's naming as a fourth argument where there is one."""
