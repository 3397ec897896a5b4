"""The input of a compile step in addition to the spec."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, field

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.profiles import Profile
from kaigen.config.settings import Config
from kaigen.kinds.input_documents import Key

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config.lock_file import Lock
    from kaigen.diagnostics.collector import Diagnostics

B = TypeVar("B")


class SpecIndex:
    """The specs that others may refer to.

    Attributes:
        lookups: the specs that were looked up, found or not.
        indirect: the specs that those were looked up for depend on.
        absent: namespace and name of the specs that the environment does not have.
    """

    def __init__(
        self, blocks: Mapping[Key, Any] | None = None, absent: Collection[tuple[str, str]] = frozenset()
    ) -> None:
        self.absent = absent
        self._blocks: Mapping[Key, Any] = {} if blocks is None else blocks
        self.lookups: list[Key] = []
        self.indirect: list[Key] = []

    def recorder(self) -> SpecIndex:
        """Return an index of the same specs with a record of its own."""
        return SpecIndex(self._blocks, self.absent)

    def get(self, kind: str, namespace: str, name: str) -> Any:
        """Return the spec of that kind and name; None when there is none."""
        self.lookups.append((kind, namespace, name))
        return self._blocks.get((kind, namespace, name))

    def find(self, kind: type[B], namespace: str, name: str) -> B | None:
        """Return the spec of one of kaigen's own kinds; None when there is none."""
        found = self.get(kind.__name__, namespace, name)
        return found if isinstance(found, kind) else None

    def found(self) -> tuple[tuple[str, str], ...]:
        """Return the namespace and name of the specs that were looked up and exist."""
        keys = dict.fromkeys(key for key in self.lookups if self._blocks.get(key) is not None)
        return tuple((namespace, name) for _, namespace, name in keys)

    def names(self, kind: str, namespace: str) -> list[str]:
        """Return the names of the specs of a kind in a namespace."""
        return [name for known, place, name in self._blocks if known == kind and place == namespace]

    def namespaces(self, kind: str, name: str) -> list[str]:
        """Return the namespaces that have a spec of that kind and name."""
        return [place for known, place, other in self._blocks if known == kind and other == name]


ObjectsOf = Callable[[Key, "Context"], "Sequence[Mapping[str, Any]] | None"]
"""Returns the objects of another spec's app as they are rendered; None when it has errors."""


class AppPatches(Protocol):
    """Patches of apps, as `kaigen.extend.patches.Patches`."""

    def apply(self, app: App, diagnostics: Diagnostics) -> tuple[App, tuple[str, ...]]:
        """Return an app with its patches applied, and the tokens of the patches that matched an object."""


class Context(Struct, frozen=True):
    """The settings and other specs that a spec is compiled with.

    Attributes:
        profile: the kind of cluster that the settings name.
        config: the settings.
        specs: the specs of the run, for references between them.
        patches: the user's patches, applied to the compiled objects; None for none.
        objects_of: returns the objects of another spec's app; None where only specs are known.
        lock: what the moving names of specs stand for; None for nothing.
        digests: digests of images without one in their names.
    """

    profile: Profile
    config: Config = field(default_factory=Config)
    specs: SpecIndex = field(default_factory=SpecIndex)
    patches: AppPatches | None = None
    objects_of: ObjectsOf | None = None
    lock: Lock | None = None
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        """kaigen's tables with the rows of the repository."""
        return self.config.catalog
