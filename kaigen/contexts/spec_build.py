"""The `build` of a spec, read from its file and changed there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kaigen.core.json_types import Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import InputError
from kaigen.scaffold.changes import FileChange, mark_of, read_text
from kaigen.yaml.document import Document, parse
from kaigen.yaml.edit import Edit, edit_text
from kaigen.yaml.sources import Source

CODE = "KG0913"
_BUILD = ("spec", "build")
_FIELD = "artifact"
_BOM = "\ufeff"


class SpecBuild(Struct, frozen=True):
    """The `build` of a spec.

    Attributes:
        path: file of the spec.
        document: the spec.
    """

    path: Path
    document: Document

    @property
    def repository(self) -> str:
        """Repository of the image; empty for none."""
        return self._text("repository")

    @property
    def dockerfile(self) -> str:
        """Path of the Dockerfile; empty for the default."""
        return self._text("dockerfile")

    def _text(self, field: str) -> str:
        value = _build_of(self.document).get(field)
        return value if isinstance(value, str) else ""

    def with_artifact(self, reference: str) -> FileChange:
        """Return the file with a reference as the context of the build.

        Raises:
            InputError: KG0913, the build has another context, or the file cannot be changed.
        """
        document, fields = self.document, _build_of(self.document)
        hint = f"set it by hand to `build: {{{_FIELD}: {reference}}}`"
        if "git" in fields:
            raise InputError.of(
                CODE,
                "the build has the context `git`, and only one is used",
                mark=document.mark((*_BUILD, "git"), key=True),
                hint="remove `git`",
                path="spec.build.git",
            )
        after = next((name for name in fields if document.span((*_BUILD, name)) is not None), "")
        new = None
        if after:
            edit = Edit(document, (*_BUILD, _FIELD), reference, _FIELD if _FIELD in fields else after)
            new = edit_text(document.source, [edit])
        if new is None:
            mark = document.mark(_BUILD, key=True)
            raise InputError.of(CODE, f"`{_FIELD}` cannot be written into the spec", mark=mark, hint=hint)
        order = mark_of(self.path)
        return FileChange(self.path, order + document.source.text, order + new)


def read_build(path: Path) -> SpecBuild:
    """Return the build of the spec in a file.

    Raises:
        InputError: the file is not YAML, or KG0913, it has no spec with `build`, or several.
        SystemFailure: the file cannot be read.
    """
    text = read_text(path)
    if text is None:
        raise InputError.of(CODE, f"there is no file {path}")
    problems = Diagnostics()
    documents = parse(Source(str(path), text.removeprefix(_BOM)), problems)
    problems.raise_errors()
    found = [document for document in documents if _build_of(document)]
    if len(found) != 1:
        count = "several specs" if found else "no spec"
        hint = "set `build: {artifact: …}` by hand" if found else "add `build` with the `repository` of the image"
        raise InputError.of(CODE, f"{path} has {count} with `build`", hint=hint)
    return SpecBuild(path, found[0])


def _build_of(document: Document) -> Mapping[str, Json]:
    data: Json = document.data
    for step in _BUILD:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}
