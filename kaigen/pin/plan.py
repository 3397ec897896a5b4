"""Plans which names of a repository's specs become commits and digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import SystemFailure
from kaigen.pin.names import Name, names_in
from kaigen.pin.resolve import Resolver
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.sources import read_named
from kaigen.scaffold.changes import FileChange
from kaigen.yaml.edit import Edit, edited
from kaigen.yaml.sources import Source

_BOM = "\ufeff"


class Pin(Struct, frozen=True):
    """A name, and what it stands for now.

    Attributes:
        name: the name.
        value: the new value of the field.
    """

    name: Name
    value: str

    @property
    def old(self) -> str:
        """The value that it replaces."""
        return self.name.value or f"({self.name.moving})"


class Pins(Struct, frozen=True):
    """What changes; nothing is written yet.

    Attributes:
        pins: the new values, by file and place.
        changes: the files with them.
    """

    pins: tuple[Pin, ...]
    changes: tuple[FileChange, ...]


def moving_names(
    config: Config, apps: Sequence[str] = (), *, update: bool = False
) -> dict[Source, list[Name]]:
    """Return the names in the specs that can change, by file.

    Args:
        config: the repository's settings.
        apps: only those of these specs, `NAME` or `NAMESPACE/NAME`; all when empty.
        update: return pinned names with a branch or tag, too.

    Raises:
        InputError: a spec is invalid, or there is no such spec.
    """
    sources, problems = read_named((), config)
    found = {source: list(names_in(source, problems)) for source in sources}
    problems.raise_errors()
    every = {_key(name, config) for names in found.values() for name in names}
    check_names(apps, sorted(every))
    chosen = {
        source: [
            name
            for name in names
            if name.moving
            and (update or not name.pinned)
            and (not apps or {name.app, "/".join(_key(name, config))} & set(apps))
        ]
        for source, names in found.items()
    }
    return {source: names for source, names in chosen.items() if names}


def _key(name: Name, config: Config) -> tuple[str, str]:
    data = name.document.data
    metadata = data.get("metadata") if isinstance(data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return (namespace if isinstance(namespace, str) else config.namespace, name.app)


def plan_pins(names: Mapping[Source, Iterable[Name]], resolver: Resolver) -> Pins:
    """Return the commits and digests of names, and the files with them.

    Raises:
        InputError: a name cannot be resolved, or a file cannot be changed; with all problems.
    """
    problems = Diagnostics()
    pins: list[Pin] = []
    changes: list[FileChange] = []
    for source, listed in names.items():
        own = [pin for name in listed if (pin := _pin(name, resolver, problems)) is not None]
        if not own:
            continue
        new = edited(source, [_edit(pin) for pin in own])
        if new is None:
            problems.add(_unwritable(own[0]))
            continue
        pins += own
        path = Path(source.path)
        mark = _BOM if path.read_bytes().startswith(_BOM.encode()) else ""
        changes.append(FileChange(path, mark + source.text, mark + new))
    problems.raise_errors()
    return Pins(tuple(pins), tuple(changes))


def _pin(name: Name, resolver: Resolver, problems: Diagnostics) -> Pin | None:
    """Return the new value of a name; None if it has it already, or the name cannot be resolved."""
    try:
        answer = resolver.resolve(name)
    except SystemFailure as error:
        problems.add(Diagnostic("KG0719", str(error), name.mark, error.hint, path=name.field))
        return None
    if answer == name.pinned:
        return None
    return Pin(name, f"{name.moving}@{answer}" if name.image else answer)


def _edit(pin: Pin) -> Edit:
    name = pin.name
    if name.image is not None:
        return Edit(name.document, name.path, pin.value)
    old_note = name.moving if name.pinned else ""
    return Edit(name.document, name.path, pin.value, "repo", name.moving, old_note)


def _unwritable(pin: Pin) -> Diagnostic:
    message = "the value cannot be changed without changing something else, such as another use of an anchor"
    hint = f"set it by hand to {pin.value}"
    return Diagnostic("KG0719", message, pin.name.mark, hint, path=pin.name.field)
