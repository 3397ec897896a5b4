"""Another name for an app: the changes of the files of a repository, for `kaigen rename`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.catalog.engines import engine_names
from kaigen.compile.engines.registry import engine_named
from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.config.settings import FILE_NAME, Config, pins_path
from kaigen.config.tenant_settings import default_namespace
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.environments.match import pin_name
from kaigen.kinds.alias import Alias
from kaigen.kinds.base import APP_NAME_MAX, DNS_LABEL, matches
from kaigen.kinds.block import document_name
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.exposure import AliasService
from kaigen.pipeline.sources import read_named
from kaigen.scaffold.changes import FileChange, mark_of, read_text
from kaigen.scaffold.name_places import NewName, Step, is_own, mentions, pins, references, settings
from kaigen.yaml.document import Document, parse
from kaigen.yaml.dump import dump
from kaigen.yaml.names import NameChange, change_names, insert_after
from kaigen.yaml.sources import Source

UNKNOWN, TAKEN, BY_HAND = "KG0766", "KG0767", "KG0768"

_SEPARATOR = re.compile(r"^---(?:[ \t].*)?\n?", re.MULTILINE)


class Renamed(Struct, frozen=True):
    """What a rename changes.

    Attributes:
        changes: the files.
        notes: what is left to do by hand.
        step: `move`, `add` or `switch`, as of `kaigen.scaffold.name_places.NewName`.
    """

    changes: tuple[FileChange, ...]
    notes: tuple[str, ...]
    step: str


class _Found(Struct, frozen=True):
    """A spec in its file."""

    source: Source
    document: Document
    kind: KindEntry
    namespace: str

    @property
    def name(self) -> str:
        return self.document.name or ""


def plan_rename(configs: Sequence[Config], kind: str, old: str, new: str, *, switch: bool = False) -> Renamed:
    """Return the changes that give an app another name; nothing is written yet.

    Of a Topology, the first step adds one with the new name, and the second one (`switch`) makes an Alias of the old
    one. An app of another kind has only the new name afterwards.

    Args:
        configs: the settings of each environment.
        kind: the kind, in any case.
        old: the name, or `NAMESPACE/NAME`.
        new: the other name.
        switch: the second step of a Topology.

    Raises:
        InputError: there is no such app, the new name is not free, or a file cannot be changed without changing
            something else.
    """
    config = configs[0]
    sources, problems = read_named((), config)
    problems.raise_errors()
    apps = [each for source in sources for each in _specs(source, config)]
    app = _find(apps, kind, old)
    name = _new_name(app, apps, new, switch=switch)
    notes: list[str] = []
    changes: list[FileChange] = []
    for source in sources:
        text = _changed(source, [*_of_source(source, apps, app, name, notes)])
        if name.step == "switch" and source is app.source:
            text = _with_alias(Source(source.path, text), app, name)
        changes += _file(source, text)
    if name.step == "add":
        changes.append(_copy(app, name, notes))
    for source, found in _settings(configs, app, name, notes):
        changes += _file(source, _changed(source, found))
    return Renamed(tuple(changes), tuple(dict.fromkeys(notes)), name.step)


def _specs(source: Source, config: Config) -> Iterator[_Found]:
    path = os.path.relpath(source.path, config.root)
    namespace = default_namespace(path, config.tenants, config.namespace)
    for document in parse(source, Diagnostics()):
        kind = find_kind(document.apiVersion, document.kind)
        if kind is not None and document.name:
            data: Any = document.data
            written = data["metadata"].get("namespace")
            yield _Found(source, document, kind, written if isinstance(written, str) else namespace)


def _find(apps: Sequence[_Found], kind: str, name: str) -> _Found:
    kinds = {each.kind.kind: each for each in apps if is_own(each.kind)}
    word = next((each.kind for each in own_kinds() if is_own(each) and each.kind.lower() == kind.lower()), "")
    if not word:
        names = sorted(each.kind for each in own_kinds() if is_own(each))
        hint = did_you_mean(kind, names) or f"kinds: {', '.join(names)}"
        raise InputError.of(UNKNOWN, f"kaigen has no kind `{kind}` whose apps it renames", hint=hint)
    same = [each for each in apps if each.kind.kind == word and is_own(each.kind)]
    fitting = [each for each in same if name in (each.name, f"{each.namespace}/{each.name}")]
    if not fitting:
        other = next((each for each in apps if each.name == name), None)
        hint = f"`{name}` is of the kind {other.kind.kind}" if other is not None else ""
        hint = hint or did_you_mean(name, [each.name for each in same])
        hint = hint or (f"there are: {', '.join(sorted({each.name for each in same}))}" if word in kinds else "")
        raise InputError.of(UNKNOWN, f"there is no {word} `{name}`", hint=hint)
    if len(fitting) > 1:
        every = ", ".join(f"`{each.namespace}/{each.name}`" for each in fitting)
        raise InputError.of(UNKNOWN, f"several specs are the {word} `{name}`", hint=f"name one of {every}")
    return fitting[0]


def _new_name(app: _Found, apps: Sequence[_Found], new: str, *, switch: bool) -> NewName:
    old, kind = app.name, app.kind.kind
    if not matches(DNS_LABEL, new) or len(new) > APP_NAME_MAX:
        hint = f"use at most {APP_NAME_MAX} lower-case letters, digits and dashes, without a namespace"
        raise InputError.of(TAKEN, f"`{new}` cannot be the name of an app", hint=hint)
    taken = next((each for each in apps if (each.namespace, each.name) == (app.namespace, new)), None)
    if switch and kind != "Topology":
        hint = "leave `--switch` out: references change at once"
        raise InputError.of(TAKEN, f"a {kind} has no Alias, so its rename has no second step", hint=hint)
    if switch and (taken is None or taken.kind.kind != "Topology"):
        hint = f"run `kaigen rename topology {old} {new}` first, and merge it"
        raise InputError.of(UNKNOWN, f"there is no Topology `{new}` yet", hint=hint)
    if taken is not None and not switch:
        both = kind == taken.kind.kind == "Topology" and new != old
        hint = f"choose another name; if this is the new `{old}`, add `--switch`" if both else "choose another name"
        mark = taken.document.mark(("metadata", "name"))
        raise InputError.of(TAKEN, f"`{new}` is the name of a {taken.kind.kind} already", mark=mark, hint=hint)
    shared = any(each.name == old and each.namespace != app.namespace for each in apps)
    step: Step = "switch" if switch else "add" if kind == "Topology" else "move"
    return NewName(kind, app.namespace, old, new, step, shared)


def _of_source(
    source: Source, apps: Iterable[_Found], app: _Found, name: NewName, notes: list[str]
) -> Iterator[NameChange]:
    """Yield the changes of a file of specs or of overrides."""
    for each in apps:
        if each.source is not source:
            continue
        if not is_own(each.kind):
            notes += [*mentions(each.document, name)] if name.step != "add" else []
            continue
        if each is app:
            if name.step == "move":
                yield NameChange(each.document, ("metadata", "name"), "set", name.new)
            continue
        yield from references(each.document, each.kind, each.namespace, name)
    for document in parse(source, Diagnostics()):
        if (document.apiVersion, document.kind) == (OVERRIDES_ENTRY.api_version, OVERRIDES_ENTRY.kind):
            yield from settings(document, _kinds(), name, notes)


def _kinds() -> tuple[KindEntry, ...]:
    return tuple(each for each in own_kinds() if is_own(each))


def _settings(
    configs: Sequence[Config], app: _Found, name: NewName, notes: list[str]
) -> Iterator[tuple[Source, list[NameChange]]]:
    """Yield kaigen.yaml and the pins files with their changes."""
    root = configs[0].root
    pinned = pin_name(app.document, app.kind)
    paths = [root / FILE_NAME, *(pins_path(root, each.environment) for each in configs if each.environment)]
    for path in paths:
        text = read_text(path)
        for document in parse(source := Source(str(path), (text or "").lstrip("\ufeff")), Diagnostics()):
            if path.name == FILE_NAME:
                yield source, [*settings(document, _kinds(), name, notes)]
            else:
                yield source, [*pins(document, pinned, name)]


def _changed(source: Source, changes: Sequence[NameChange]) -> str:
    if not changes:
        return source.text
    text = change_names(source, changes)
    if text is None:
        hint = "replace anchors and aliases of YAML by what they stand for, or change the file by hand"
        mark = changes[0].document.mark(changes[0].path)
        raise InputError.of(
            BY_HAND, "the name cannot be changed here without changing something else", mark=mark, hint=hint
        )
    return text


def _file(source: Source, text: str) -> list[FileChange]:
    path = Path(source.path)
    return [FileChange(path, mark_of(path) + source.text, mark_of(path) + text)] if text != source.text else []


def _part(text: str, document: Document) -> tuple[int, int]:
    """Return where the text of a document starts and ends, with its comments and without what separates it."""
    place, start = document.node.start_mark.index, 0
    for found in _SEPARATOR.finditer(text):
        if found.start() > place:
            return start, found.start()
        start = found.end()
    return start, len(text)


def _copy(app: _Found, name: NewName, notes: list[str]) -> FileChange:
    """Return the file with the Topology of the new name, without the route of the old one."""
    path = Path(app.source.path).with_name(f"{name.new}.yaml")
    if app.source.file.endswith(".json") or os.path.lexists(path):
        message = f"{path.as_posix()} exists" if os.path.lexists(path) else "the spec is written in JSON"
        hint = f"copy the spec of `{name.old}` by hand, without `route`, and use `--switch` when it is ready"
        raise InputError.of(BY_HAND, message, mark=app.document.mark(), hint=hint)
    start, end = _part(app.source.text, app.document)
    part = Source(str(path), app.source.text[start:end])
    (document,) = parse(part, Diagnostics())
    data: Any = document.data
    changes = [NameChange(document, ("metadata", "name"), "set", name.new)]
    if "route" in (data.get("spec") or {}):
        changes.append(NameChange(document, ("spec", "route"), "drop"))
    text = _changed(part, changes)
    return FileChange(path, None, _with_served_names(Source(str(path), text), name, notes))


def _with_served_names(source: Source, name: NewName, notes: list[str]) -> str:
    """Return a Topology that answers to both names, if it is one whose engine can."""
    (document,) = parse(source, Diagnostics())
    spec = _spec(document)
    if "servedNames" in spec:
        return source.text
    text, names = source.text, f"servedNames: [{name.new}, {name.old}]"
    pair = document.pair(("spec", next(iter(spec), "")))
    if _answers_to_several(spec) and pair is not None:
        text = insert_after(text, pair, names, flow=document.is_flow(("spec",)))
        wanted = {**spec, "servedNames": [name.new, name.old]}
        if [_spec(each) for each in parse(Source(source.path, text), Diagnostics())] == [wanted]:
            return text
    notes.append(f"clients that send `{name.old}` as the model must send `{name.new}` after the second step")
    return source.text


def _answers_to_several(spec: Mapping[str, Any]) -> bool:
    """Return whether the engine of a Topology answers to several names; False for a spec that is not valid."""
    try:
        return "template" not in spec and engine_named(spec.get("engine", engine_names()[0])).several_names
    except (KeyError, TypeError):
        return False


def _spec(document: Document) -> Any:
    data: Any = document.data
    return data["spec"]


def _with_alias(source: Source, app: _Found, name: NewName) -> str:
    """Return the text of a file with an Alias in the place of the Topology of the old name."""
    documents = {each.index: each for each in parse(source, Diagnostics())}
    document = documents[app.document.index]
    data: Any = document.data
    spec = data.get("spec") or {}
    known = {document_name(AliasService, field) for field in AliasService.__struct_fields__}
    service = {key: value for key, value in (spec.get("service") or {}).items() if key in known}
    blocks = {"service": service, "route": spec.get("route")}
    alias = {
        "apiVersion": data["apiVersion"],
        "kind": Alias.__name__,
        "metadata": data["metadata"],
        "spec": {"topology": name.new, **{key: value for key, value in blocks.items() if value}},
    }
    _, end = _part(source.text, document)
    begin = document.node.start_mark.index
    text = source.text[:begin] + dump(alias) + source.text[end:]
    after = {each.index: each.data for each in parse(Source(source.path, text), Diagnostics())}
    if after != {**{index: each.data for index, each in documents.items()}, document.index: alias}:
        hint = f"replace the spec by an Alias with `topology: {name.new}` by hand"
        raise InputError.of(BY_HAND, "the spec cannot be replaced here", mark=document.mark(), hint=hint)
    return text
