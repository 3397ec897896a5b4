"""Read the patches that kaigen.yaml names, and check that they are well-formed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kaigen.config.settings import FILE_NAME, Config
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.merge import DIRECTIVE, DIRECTIVES
from kaigen.extend.patches import Patch, Patches, PatchMarks
from kaigen.extend.pointer import parse_pointer
from kaigen.extend.wire import encode, plain
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import read_sources

_UNKNOWN_DIRECTIVES = ("$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList")
"""Directives of strategic merge patches that kubectl writes itself; people do not."""

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "add": ("path", "value"),
    "copy": ("from", "path"),
    "move": ("from", "path"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "test": ("path", "value"),
}
"""The fields of each operation, next to `op`."""


def read_patches(config: Config) -> Patches:
    """Return the patches of a configuration and the errors of those that are malformed."""
    diagnostics = Diagnostics()
    patches = []

    @cache
    def config_document() -> Document | None:
        return _document(config.root / FILE_NAME, config.root, Diagnostics())

    for index, entry in enumerate(config.patches):
        start = entry.at
        target_marks = PatchMarks(config_document, (*start, "target"), FILE_NAME)
        marks = PatchMarks(config_document, (*start, "patch"), FILE_NAME)
        content: Any = entry.patch
        if isinstance(content, str):
            document = _patch_file(config, content, marks, diagnostics)
            if document is None:
                continue
            content = document.data
            marks = _file_marks(document)
        errors = list(_errors(content, marks))
        diagnostics.extend(errors)
        if not errors:
            patches.append(Patch(index, entry, content, marks, target_marks, encode(plain(content))))
    return Patches(tuple(patches), tuple(diagnostics.sorted()))


def _file_marks(document: Document) -> PatchMarks:
    return PatchMarks(lambda: document, (), document.source.path)


def _patch_file(config: Config, name: str, marks: PatchMarks, diagnostics: Diagnostics) -> Document | None:
    """Return the document of a patch's own file, or None after reporting why it cannot be read."""
    own = Diagnostics()
    document = _document(config.root / name, config.root, own)
    if document is None:
        first = next(iter(own), None)
        if first and first.mark and first.mark.line:
            diagnostics.extend(own)
        else:
            reason = first.message if first else "contains no document"
            hint = first.hint if first else ""
            diagnostics.add(Diagnostic("KG1020", f"the patch `{name}`: {reason}", marks(), hint))
    return document


def _document(path: Path, root: Path, diagnostics: Diagnostics) -> Document | None:
    sources, problems = read_sources([str(path)], root=root)
    diagnostics.extend(problems)
    documents = [document for source in sources for document in parse(source, diagnostics)]
    if len(documents) > 1:
        diagnostics.add(
            Diagnostic(
                "KG1020", "a patch file must contain one document", documents[1].mark(()), "use one file for each patch"
            )
        )
    return documents[0] if documents and not diagnostics.has_errors else None


def _errors(content: object, marks: PatchMarks) -> Iterable[Diagnostic]:
    if isinstance(content, dict):
        if not content:
            yield Diagnostic("KG1020", "the patch is empty", marks())
        elif DIRECTIVE in content:
            hint = "change the spec, or delete it: an app decides which objects it has"
            mark = marks((DIRECTIVE,), key=True)
            yield Diagnostic("KG1020", "a patch cannot delete or replace a whole object", mark, hint)
        else:
            yield from _directive_errors(content, (), marks)
        return
    if not isinstance(content, list):
        hint = "write a list of operations (RFC 6902), or a mapping to merge"
        yield Diagnostic("KG1020", "not a patch", marks(), hint)
        return
    for index, operation in enumerate(content):
        yield from _operation_errors(operation, index, marks)


def _directive_errors(node: object, path: FieldPath, marks: PatchMarks) -> Iterable[Diagnostic]:
    """Yield the errors of the directives in a merge patch."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _directive_errors(item, (*path, index), marks)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        here = (*path, key)
        if key == DIRECTIVE and value not in DIRECTIVES:
            hint = did_you_mean(str(value), DIRECTIVES) or "known: " + ", ".join(f"`{name}`" for name in DIRECTIVES)
            yield Diagnostic("KG1020", f"unknown `{DIRECTIVE}`: `{value}`", marks(here), hint)
        elif key.partition("/")[0] in _UNKNOWN_DIRECTIVES:
            hint = "use `$patch`, or a list of operations (RFC 6902)"
            yield Diagnostic("KG1020", f"`{key}` is not supported", marks(here, key=True), hint)
        else:
            yield from _directive_errors(value, here, marks)


def _operation_errors(operation: object, index: int, marks: PatchMarks) -> Iterable[Diagnostic]:
    if not isinstance(operation, dict):
        yield Diagnostic("KG1020", "an operation must be a mapping", marks((index,)), "for example `op: remove`")
        return
    name = operation.get("op")
    if not isinstance(name, str) or name not in _MEMBERS:
        message = "`op` is missing" if name is None else f"unknown operation `{name}`"
        known = ", ".join(f"`{each}`" for each in _MEMBERS)
        hint = did_you_mean(str(name), _MEMBERS) or f"operations: {known}"
        yield Diagnostic("KG1020", message, marks((index, "op")), hint)
        return
    members = ("op", *_MEMBERS[name])
    for member in members:
        if member not in operation:
            yield Diagnostic("KG1020", f"`{name}` requires `{member}`", marks((index, "op")))
    for member in operation:
        if member not in members:
            listed = ", ".join(f"`{each}`" for each in members)
            hint = did_you_mean(member, members) or f"fields of `{name}`: {listed}"
            mark = marks((index, member), key=True)
            yield Diagnostic("KG1020", f"unknown field `{member}` of `{name}`", mark, hint)
    for member in ("path", "from"):
        pointer = operation.get(member)
        reason = _pointer_error(pointer) if member in members and pointer is not None else ""
        if reason:
            hint = "for example `/spec/template/spec/containers/0/image`"
            yield Diagnostic("KG1020", f"not a JSON pointer: {reason}", marks((index, member)), hint)


def _pointer_error(pointer: object) -> str:
    if not isinstance(pointer, str):
        return "it must be a string"
    try:
        parse_pointer(pointer)
    except ValueError as error:
        return str(error)
    return ""
