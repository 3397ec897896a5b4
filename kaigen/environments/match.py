"""Overrides and pins of a spec."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kaigen.config.settings import FILE_NAME, Config, Override, pins_path
from kaigen.config.tenant_settings import contains, default_namespace
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.environments.patch import Entries, FileEntry, Layer, PatchedDocument, place_of, reach
from kaigen.environments.variables import Expansion, expansions
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import OWN_SYSTEM
from kaigen.kinds.kind import ForeignKind
from kaigen.kinds.lowering import ENVIRONMENTS
from kaigen.kinds.promotable import SHORT, is_promotable, promotable_fields
from kaigen.kinds.spelling import old_spellings, respell

if TYPE_CHECKING:
    from kaigen.diagnostics.collector import Diagnostics
    from kaigen.kinds.entry import KindEntry
    from kaigen.yaml.document import Document

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")


def patch_document(
    document: Document, entry: KindEntry, config: Config, source: str
) -> tuple[Document | PatchedDocument, list[Diagnostic]]:
    """Return a document with what the environment changes, and diagnostics about that: overrides, pins, variables,
    storage classes, and the namespace of a tenant that has one.

    Args:
        document: as it was written.
        entry: its kind.
        config: the settings of the run.
        source: its file, relative to the repository.
    """
    if not _is_patchable(document):
        return document, []
    namespace = default_namespace(source, config.tenants, config.namespace)
    found: list[Diagnostic] = []
    matched: list[int | str] = []
    layers: list[Layer] = []
    for index, override in enumerate(config.overrides):
        inside = not override.folder or contains(override.folder, source)
        if inside and _fits(override, document, entry, namespace):
            matched.append(index)
            own: dict[str, Any] = dict(override.patch)
            if entry.system == OWN_SYSTEM:
                own = respell(own, old_spellings(own, entry.model()))
            layers.append(Layer(own, place_of(override, config), override.environment))
    name = pin_name(document, entry)
    if name in config.pins:
        matched.append(name)
        place = FileEntry(pins_path(config.root, config.environment), ("apps", name), flat=True)
        here = PatchedDocument(document, tuple(layers), ()).data
        patch = _pins_patch(here, config.pins[name], entry, place, found)
        found += _warn_of_hidden(config.pins[name], layers)
        layers.append(Layer(patch, place, config.environment, pins=True))
    patched = PatchedDocument(document, tuple(layers), tuple(matched))
    changes = [*expansions(patched.data, entry, config)]
    for each in changes:
        for code, message, hint in each.problems:
            mark = patched.mark(each.path)
            found.append(Diagnostic(code, message, mark, hint, path=dotted_path(each.path)))
    patch = _texts_patch(changes)
    if namespace != config.namespace and "namespace" not in patched.data.get("metadata", {}):
        patch["metadata"] = {**patch.get("metadata", {}), "namespace": namespace}
    if patch:
        patched = PatchedDocument(document, tuple(layers), tuple(matched), patch)
    return (patched, found) if layers or patch else (document, found)


def with_placeholders(document: Document, entry: KindEntry) -> Document | PatchedDocument:
    """Return a document with some valid value in place of each variable, for what does not depend on environments."""
    changes = [*expansions(document.data, entry, Config())]
    return PatchedDocument(document, (), (), _texts_patch(changes)) if changes else document


def _texts_patch(changes: Iterable[Expansion]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for each in changes:
        _put(patch, each.path, each.value)
    return patch


def matched_by(document: object) -> tuple[int | str, ...]:
    """Return the indices of overrides and names of pins that were applied to a document."""
    return document.matched if isinstance(document, PatchedDocument) else ()


def pin_name(document: Document, entry: KindEntry | None) -> str:
    """Return the app's name in a pins file, with its namespace only if the spec sets one.

    So one pins file works for a spec that each environment deploys to a different namespace. Where specs of several
    kinds usually have the same name, it ends in the kind.

    Args:
        document: the spec.
        entry: its kind; None for one of a user's.
    """
    metadata: Any = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    name = document.name or ""
    if isinstance(entry, ForeignKind) and entry.shares_names:
        name = f"{name}.{entry.kind.lower()}"
    return f"{namespace}/{name}" if isinstance(namespace, str) else name


def is_absent(document: Document, config: Config, found: Diagnostics) -> bool:
    """Return whether the environment of a run does not have a document.

    Args:
        document: a spec, or a Kubernetes object with the annotation.
        config: the settings of the run.
        found: receives errors about the environments that the document names.
    """
    named = environments_of(document)
    unknown = [(path, name) for path, name in named if name not in config.environments]
    for path, name in unknown:
        listed = f"known: {', '.join(config.environments)}" if config.environments else f"{FILE_NAME} defines none"
        hint = did_you_mean(name, config.environments) or listed
        mark, place = document.mark(path), dotted_path(path)
        found.add(Diagnostic("KG0702", f"no environment `{name}` in {FILE_NAME}", mark, hint, path=place))
    if not config.environment or unknown:
        return False
    return bool(named) and config.environment not in {name for _, name in named}


def environments_of(document: Document) -> list[tuple[FieldPath, str]]:
    """Return the environments that a document names, each with its field."""
    data: Any = document.data
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        return []
    names, annotations = metadata.get("environments"), metadata.get("annotations")
    found: list[tuple[FieldPath, str]] = []
    if isinstance(names, list):
        found += [(("metadata", "environments", index), name) for index, name in enumerate(names)]
    if isinstance(annotations, dict) and isinstance(text := annotations.get(ENVIRONMENTS), str):
        at = ("metadata", "annotations", ENVIRONMENTS)
        found += [(at, name.strip()) for name in text.split(",")]
    return [(path, name) for path, name in found if isinstance(name, str)]


def matching_overrides(document: Document, entry: KindEntry, config: Config) -> list[int | str]:
    """Return the overrides that match a document, by index, and the name of its pins, if it has any."""
    fitting = [index for index, each in enumerate(config.overrides) if _fits(each, document, entry, config.namespace)]
    name = pin_name(document, entry)
    return [*fitting, *([name] if name in config.pins else [])]


def parse_dotted(name: str) -> FieldPath:
    """Return the path of a dotted name such as `spec.image.ref` or `spec.roles[0].image`."""
    return tuple(int(index) if index else key for key, index in _STEP.findall(name))


def _is_patchable(document: Document) -> bool:
    """Whether patches can be applied; validation reports documents of the wrong shape."""
    data = document.data
    return isinstance(data, dict) and all(isinstance(data.get(name, {}), dict) for name in ("metadata", "spec"))


def _fits(override: Override, document: Document, entry: KindEntry, namespace: str) -> bool:
    assert isinstance(document.data, dict)
    metadata: Any = document.data.get("metadata", {})
    own = metadata.get("namespace")
    names = (document.name or "", f"{own if isinstance(own, str) else namespace}/{document.name}")
    if override.apps and not any(fnmatchcase(name, glob) for glob in override.apps for name in names):
        return False
    if override.kinds and not _names(entry) & set(override.kinds):
        return False
    labels = metadata.get("labels")
    labels = labels if isinstance(labels, dict) else {}
    return all(labels.get(key) == value for key, value in override.labels.items())


def _names(entry: KindEntry) -> set[str]:
    """The names of a kind: its key, and its kind alone unless that is the key of another kind."""
    return {entry.key} | ({entry.kind} - {known.key for known in BUILTIN_KINDS})


def _pins_patch(
    data: Any, pins: Mapping[str, str], entry: KindEntry, place: FileEntry, found: list[Diagnostic]
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, value in pins.items():
        path = parse_dotted(name)
        if not is_promotable(entry.model(), name):
            fields = promotable_fields(entry.model())
            hint = did_you_mean(name, fields) or f"promoted fields: {', '.join(sorted(fields))}"
            message = f"`{name}` is not a promoted field of `{entry.key}`"
            found.append(Diagnostic("KG0712", message, place.mark(path, key=True), hint))
            continue
        there, steps = reach(data, path)
        if steps == len(path) and isinstance(there, dict):
            path = (*path, SHORT)  # The spec has become a block since it was promoted.
        elif steps == len(path) - 1 and path[-1] == SHORT and isinstance(there, str):
            path = path[:-1]  # The spec's block has become its short form.
        _put(patch, path, value)
    return patch


def _put(patch: dict[Any, Any], path: FieldPath, value: str) -> None:
    for step, following in pairwise(path):
        patch = patch.setdefault(step, Entries() if isinstance(following, int) else {})
    patch[path[-1]] = value


def _warn_of_hidden(pins: Iterable[str], layers: Iterable[Layer]) -> list[Diagnostic]:
    """Warnings about the environment's own overrides that pins take precedence over."""
    found = []
    for name in pins:
        path = parse_dotted(name)
        for layer in layers:
            if layer.environment and layer.sets(path):
                found.append(
                    Diagnostic(
                        "KG0710",
                        f"`{name}` is pinned for {layer.environment}, so this override has no effect",
                        layer.place.mark(path),
                        f"delete the override; or delete the pin, as the next promotion to {layer.environment} does",
                        Severity.WARNING,
                        name,
                    )
                )
    return found


def explain_removed_fields(
    document: Document | PatchedDocument, diagnostics: Sequence[Diagnostic]
) -> Sequence[Diagnostic]:
    """Return the diagnostics of a patched document; a missing field that an override removed is reported there."""
    if not diagnostics or not isinstance(document, PatchedDocument):
        return diagnostics
    removed = {dotted_path(path): path for path in document.removed()}
    return [_at_removal(item, document, removed) for item in diagnostics]


def _at_removal(item: Diagnostic, document: PatchedDocument, removed: Mapping[str, FieldPath]) -> Diagnostic:
    """The diagnostic, placed at the override that removed the missing field, if one did."""
    below = f"{item.path}."
    for name, path in removed.items():
        missing = item.category in (Category.MISSING_FIELD, Category.MISSING_CHOICE) and name == item.path
        if missing or (item.category is Category.MISSING_CHOICE and name.startswith(below)):
            hint = "null removes the field; give it a value"
            return replace(item, mark=document.mark(path), hint=hint)
    return item
