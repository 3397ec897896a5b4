"""Where specs, overrides, pins and kaigen.yaml name an app, and how a rename changes these places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from kaigen.config.globs import is_granted
from kaigen.core.json_types import FieldPath
from kaigen.kinds.entry import OWN_SYSTEM, KindEntry
from kaigen.kinds.references import EACH, reference_fields
from kaigen.yaml.document import Document
from kaigen.yaml.names import NameChange

_CLUSTER_QUEUE = "ClusterQueue/"
"""Of an entry in `classes` of a tenant."""

OF_ALIAS = frozenset({"route", "service"})
"""Fields of a Topology that stay with the old name."""

Step = Literal["move", "add", "switch"]


class NewName(Struct, frozen=True):
    """Another name of an app.

    Attributes:
        kind: kind of the app.
        namespace: its namespace.
        old: its name.
        new: its other name.
        step: `move`: the app has the other name only; `add`: there are two apps; `switch`: the second of the two is
            used in place of the first, which becomes its alias.
        shared: whether apps of other namespaces have the old name, too.
    """

    kind: str
    namespace: str
    old: str
    new: str
    step: Step
    shared: bool = False

    def of(self, name: object) -> str | None:
        """Return the new form of a name, `NAME` or `NAMESPACE/NAME`; None for that of another app."""
        forms = {self.old: self.new, f"{self.namespace}/{self.old}": f"{self.namespace}/{self.new}"}
        return forms.get(name) if isinstance(name, str) else None


def references(document: Document, kind: KindEntry, namespace: str, name: NewName) -> Iterator[NameChange]:
    """Yield the changes of the fields of a spec that name the app.

    Args:
        document: the spec.
        kind: its kind, one of kaigen's own.
        namespace: its namespace.
        name: the names.
    """
    if name.step != "add":
        for path, new in _references(document.data, kind, namespace, name):
            yield NameChange(document, path, "set", new)


def _references(data: Any, kind: KindEntry, namespace: str, name: NewName) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields of a spec that name the app, each with what it is then."""
    fields = reference_fields(kind.model())
    for path, value, near in _texts(data, (), {}):
        if value == name.old and _steps(path) in fields:
            place = near.get("namespace") or near.get("modelNamespace")
            if (place if isinstance(place, str) else namespace) == name.namespace:
                yield path, name.new
        elif name.kind == "Queue" and path[-2:-1] == ("placement",):
            if path[-1] == "queue" and value == name.old:
                yield path, name.new
            elif path[-1] == "priority" and value.startswith(f"{name.old}-"):
                yield path, name.new + value.removeprefix(name.old)


def _steps(path: FieldPath) -> tuple[str, ...]:
    return tuple(EACH if isinstance(step, int) else step for step in path)


def _texts(data: Any, at: FieldPath, near: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str, Mapping[str, Any]]]:
    """Yield the texts of plain data, each with its path and the mapping that it is in."""
    if isinstance(data, str):
        yield at, data, near
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, (*at, str(key)), data)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, (*at, index), near)


def settings(document: Document, kinds: tuple[KindEntry, ...], name: NewName, found: list[str]) -> Iterator[NameChange]:
    """Yield the changes of kaigen.yaml, or of a file of overrides.

    Args:
        document: the file.
        kinds: kaigen's own kinds.
        name: the names.
        found: receives what is left to do by hand.
    """
    data: Any = document.data
    layers: list[FieldPath] = [()]
    environments = data.get("environments")
    layers += [("environments", each) for each in (environments if isinstance(environments, dict) else ())]
    for at in layers:
        layer = _below(data, at)
        if isinstance(layer, dict):
            yield from _layer(document, layer, at, kinds, name, found)


def _layer(
    document: Document,
    layer: Mapping[str, Any],
    at: FieldPath,
    kinds: tuple[KindEntry, ...],
    name: NewName,
    found: list[str],
) -> Iterator[NameChange]:
    for index, override in enumerate(_list(layer.get("overrides"))):
        place: FieldPath = (*at, "overrides", index)
        yield from _override(document, override, place, kinds, name, found)
    # The Alias is wherever the Topology was.
    for which in ("include", "exclude") if name.step != "switch" else ():
        listed = _list(_below(layer, ("apps", which)))
        yield from _listed(document, listed, (*at, "apps", which), name, found)
    yield from _keys(document, layer.get("values"), (*at, "values"), name)
    for place, value, _ in _texts(layer.get("tenants"), (*at, "tenants"), {}):
        if name.kind == "Queue" and value == f"{_CLUSTER_QUEUE}{name.old}":
            yield NameChange(document, place, "set", f"{_CLUSTER_QUEUE}{name.new}")
    for index, patch in enumerate(_list(layer.get("patches"))):
        path: FieldPath = (*at, "patches", index, "target", "app")
        app = _below(patch, ("target", "app"))
        if name.of(app) is not None and name.step != "move":
            found.append(f"{document.mark(path)}: the patch is of `{app}` only; add one of `{name.of(app)}`")
        else:
            yield from _one(document, app, path, name, found)


def _override(
    document: Document, override: Any, at: FieldPath, kinds: tuple[KindEntry, ...], name: NewName, found: list[str]
) -> Iterator[NameChange]:
    spec = _below(override, ("spec",))
    own = {*spec} if isinstance(spec, dict) else set()
    path: FieldPath = (*at, "match", "app")
    app = _below(override, ("match", "app"))
    named = [each for each in (app if isinstance(app, list) else [app]) if name.of(each) is not None]
    if named and name.step != "move" and own & OF_ALIAS:
        if own - OF_ALIAS:
            fields = " and ".join(f"`{each}`" for each in sorted(own & OF_ALIAS))
            found.append(f"{document.mark(path)}: split this override: {fields} stays with `{name.old}`")
    elif isinstance(app, list):
        yield from _listed(document, app, path, name, found)
    else:
        yield from _one(document, app, path, name, found)
    if name.step != "add" and isinstance(spec, dict):
        places = {each for kind in kinds for each in _references({"spec": spec}, kind, name.namespace, name)}
        for place, new in sorted(places, key=str):
            yield NameChange(document, (*at, *place), "set", new)


def _one(document: Document, app: Any, path: FieldPath, name: NewName, found: list[str]) -> Iterator[NameChange]:
    new = name.of(app)
    if new is not None:
        yield NameChange(document, path, "add" if name.step == "add" or _is_shared(app, name) else "set", new)
    elif isinstance(app, str):
        _note_glob(document, app, path, name, found)


def _listed(
    document: Document, apps: list[Any], at: FieldPath, name: NewName, found: list[str]
) -> Iterator[NameChange]:
    for index, app in enumerate(apps):
        path, new = (*at, index), name.of(app)
        if new is None:
            if isinstance(app, str):
                _note_glob(document, app, path, name, found)
        elif new in apps:
            if name.step == "switch" and not _is_shared(app, name):
                yield NameChange(document, path, "drop")
        else:
            yield NameChange(document, path, "add" if name.step == "add" or _is_shared(app, name) else "set", new)


def _keys(document: Document, values: Any, at: FieldPath, name: NewName) -> Iterator[NameChange]:
    for key in values if isinstance(values, dict) else ():
        new = name.of(key)
        if new is None:
            continue
        if new in values:
            if name.step == "switch" and not _is_shared(key, name):
                yield NameChange(document, (*at, key), "drop")
        elif name.step == "add" or _is_shared(key, name):
            yield NameChange(document, (*at, key), "copy", new)
        else:
            yield NameChange(document, (*at, key), "rename", new)


def pins(document: Document, pinned: str, name: NewName) -> Iterator[NameChange]:
    """Yield the changes of a pins file. Commits stay, because the commits have the old name.

    Args:
        document: the file.
        pinned: the name of the app in it.
        name: the names.
    """
    data: Any = document.data
    apps = data.get("apps")
    own = {pinned: apps[pinned]} if isinstance(apps, dict) and pinned in apps else {}
    new = name.of(pinned)
    if own and new is not None and new in apps:
        own[new] = apps[new]
    yield from _keys(document, own, ("apps",), name)


def _is_shared(app: str, name: NewName) -> bool:
    """Return whether a name is also that of an app of another namespace."""
    return name.shared and "/" not in app


def _note_glob(document: Document, app: str, path: FieldPath, name: NewName, found: list[str]) -> None:
    """Note a pattern that matches only one of the names."""
    forms = ((name.old, name.new), (f"{name.namespace}/{name.old}", f"{name.namespace}/{name.new}"))
    old, new = (any(is_granted(each[side], (app,)) for each in forms) for side in (0, 1))
    if old != new and ("*" in app or "?" in app):
        found.append(f"{document.mark(path)}: `{app}` matches only one of `{name.old}` and `{name.new}`")


def is_own(kind: KindEntry | None) -> bool:
    """Return whether a kind is one of kaigen's own."""
    return kind is not None and kind.system == OWN_SYSTEM


def mentions(document: Document, name: NewName) -> Iterator[str]:
    """Yield the places of a spec of another system that may name the app."""
    for path, value, _ in _texts(document.data, (), {}):
        if value == name.old and path[:1] != ("metadata",):
            yield f"{document.mark(path)}: `{value}` may name this app; kaigen does not change specs of other systems"


def _below(data: Any, path: FieldPath) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
