"""Commits and digests in place of branches and tags, written into specs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.diagnostics.problem import dotted_path
from kaigen.dialects.packages import find_any_kind
from kaigen.environments.match import with_placeholders
from kaigen.hub.client import Hub
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.build import COMMIT
from kaigen.kinds.promotable import Found, promotable_values
from kaigen.kinds.repositories import sources
from kaigen.kinds.spelling import present_document
from kaigen.kinds.validate import validate_document
from kaigen.kubernetes.images import ImageName, is_image, parse_image
from kaigen.lock.registries import Registries
from kaigen.lock.servers import git_commit
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.sources import read_named
from kaigen.scaffold.changes import FileChange, mark_of
from kaigen.yaml.document import Document, parse
from kaigen.yaml.edit import Edit, edit_text
from kaigen.yaml.sources import Source

_NOTE = re.compile(r"[ \t]+#[ \t]*(?P<name>[A-Za-z0-9][A-Za-z0-9._/-]*)(?=[ \t]*(?:;|\r?$))")
"""The comment after a commit with the name that it was resolved from, alone or before a `;`."""


class Name(Struct, frozen=True):
    """A revision or an image of a spec.

    Attributes:
        document: the spec.
        path: the field; of a missing revision, the field that it would be.
        value: the value; empty for a missing revision.
        moving: what can change: a branch or tag, or the image without its digest; empty for a commit without a name.
        pinned: the commit or digest that is there; empty without one.
        image: the image; None for a revision.
        repo: repository on the Hub, `OWNER/NAME` or `datasets/OWNER/NAME`; empty for an image.
        endpoint: URL of the Hub; empty for the default.
        git: URL of a Git repository; empty for others.
    """

    document: Document
    path: tuple[str | int, ...]
    value: str
    moving: str
    pinned: str
    image: ImageName | None = None
    repo: str = ""
    endpoint: str = ""
    git: str = ""

    @property
    def app(self) -> str:
        """The name of the spec."""
        return self.document.name or ""

    @property
    def field(self) -> str:
        """Dotted name of the field."""
        return dotted_path(self.path)

    @property
    def mark(self) -> Mark:
        """Where it is."""
        return self.document.mark(self.path)


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


def moving_names(config: Config, apps: Sequence[str] = (), *, update: bool = False) -> dict[Source, list[Name]]:
    """Return the names in the specs that can change, by file.

    Args:
        config: the repository's settings.
        apps: only those of these specs, `NAME` or `NAMESPACE/NAME`; all when empty.
        update: return pinned names with a branch or tag, too.

    Raises:
        InputError: a spec is invalid, or there is no such spec.
    """
    texts, problems = read_named((), config)
    found = {text: list(_names_in(text, problems)) for text in texts}
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


def _names_in(source: Source, problems: Diagnostics) -> Iterator[Name]:
    """Yield the revisions and images of the specs in a text.

    Args:
        source: the text.
        problems: receives what is wrong with it.
    """
    for document in parse(source, problems):
        entry = find_any_kind(document.apiVersion, document.kind)
        if entry is None:
            continue
        block, diagnostics = validate_document(with_placeholders(present_document(document, entry), entry), entry)
        problems.extend(diagnostics)
        if block is not None:
            yield from _names(document, block)


def _names(document: Document, block: Block) -> Iterator[Name]:
    namespaces = {path: each.namespace for path, each in sources(block) if isinstance(each, HubRepository)}
    for found in promotable_values(block):
        if found.marker.needs == "digest":
            if is_image(found.value) and document.span(found.path) is not None:
                image = parse_image(found.value)
                moving = found.value.partition("@")[0]
                yield Name(document, found.path, found.value, moving, image.digest, image)
        elif found.marker.needs == "commit":
            name = _revision(document, found, namespaces.get(found.path[:-1], ""))
            if name is not None:
                yield name


def _revision(document: Document, found: Found, namespace: str) -> Name | None:
    siblings = _at(document.data, found.path[:-1])
    repo, endpoint, git = (_text(siblings, name) for name in ("repo", "endpoint", "url"))
    if not repo and not git:
        return None
    repo = namespace + repo
    span = document.span(found.path)
    value = found.value if span is not None else ""
    pinned = value if COMMIT.fullmatch(value) else ""
    moving = found.value
    if pinned and span is not None:
        note = _NOTE.match(document.source.text, span[1])
        moving = note["name"] if note and not COMMIT.fullmatch(note["name"]) else ""
    return Name(document, found.path, value, moving, pinned, None, repo, endpoint, git)


def _text(siblings: Mapping[str, Any], name: str) -> str:
    value = siblings.get(name)
    return value if isinstance(value, str) else ""


def _at(data: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    for step in path:
        data = data[step]
    return data if isinstance(data, Mapping) else {}


def plan_pins(names: Mapping[Source, Iterable[Name]], hub: Hub, registries: Registries) -> Pins:
    """Return the commits and digests of names, and the files with them.

    Args:
        names: by file, as `moving_names` returns them.
        hub: is asked about revisions.
        registries: is asked about images.

    Raises:
        InputError: a name cannot be resolved, or a file cannot be changed; with all problems.
    """
    problems = Diagnostics()
    answers = _Answers(hub, registries)
    pins: list[Pin] = []
    changes: list[FileChange] = []
    for source, listed in names.items():
        own = [pin for name in listed if (pin := _pin(name, answers, problems)) is not None]
        if not own:
            continue
        new = edit_text(source, [_edit(pin) for pin in own])
        if new is None:
            problems.add(_unwritable(own[0]))
            continue
        pins += own
        path = Path(source.path)
        mark = mark_of(path)
        changes.append(FileChange(path, mark + source.text, mark + new))
    problems.raise_errors()
    return Pins(tuple(pins), tuple(changes))


class _Answers:
    """Answers of the Hub, Git servers and registries, each asked once."""

    def __init__(self, hub: Hub, registries: Registries) -> None:
        self._hub = hub
        self._registries = registries
        self._answers: dict[tuple[str, str, str], str | NotFound | SystemFailure] = {}

    def of(self, name: Name) -> str:
        """Return the commit or digest that a name stands for.

        Raises:
            NotFound: the server does not know the name, or does not show it.
            SystemFailure: the server cannot be reached, does not know the name, or gives no valid answer.
        """
        image = name.image
        key = (
            (image.registry, image.repository, image.tag)
            if image
            else (name.git or name.endpoint, name.repo, name.moving)
        )
        if key not in self._answers:
            try:
                self._answers[key] = self._ask(name)
            except (NotFound, SystemFailure) as error:
                self._answers[key] = error
        answer = self._answers[key]
        if isinstance(answer, str):
            return answer
        raise answer

    def _ask(self, name: Name) -> str:
        if name.image is not None:
            return self._registries.digest(name.image)
        if name.git:
            return git_commit(name.git, name.moving)
        return self._hub.commit(name.repo, name.moving, name.endpoint)


def _pin(name: Name, answers: _Answers, problems: Diagnostics) -> Pin | None:
    """Return the new value of a name; None if it has it already, or the name cannot be resolved."""
    try:
        answer = answers.of(name)
    except (NotFound, SystemFailure) as error:
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
