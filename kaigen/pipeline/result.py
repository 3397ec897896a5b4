"""Compiled apps with their objects, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.emit.manifests import manifest_files, manifest_stream
from kaigen.pipeline.origins import find_text, spec_path
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.config.settings import Format
    from kaigen.core.json_types import Json
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document

with lazy_imports():
    from kaigen.emit import chart


STREAM = "stream"
"""The form of files that are parts of one YAML stream."""


class Compiled(Struct, frozen=True):
    """One app with its settings and its objects.

    Attributes:
        app: the app.
        values: its settings with overrides.
        objects: in the order of their waves.
        spec: what it was compiled from; None for plain Kubernetes objects.
        needs: namespace and name of the apps that it refers to.
        patched: the patches that changed it.
        documents: the documents of plain Kubernetes objects, one each.
    """

    app: App
    values: Mapping[str, Json]
    objects: list[Rendered]
    spec: Spec | None = None
    needs: tuple[tuple[str, str], ...] = ()
    patched: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()

    def version_in(self, form: Format | str = "chart") -> str:
        """Return the version of its chart; without its digest in a form that has no charts."""
        return self.app.version if form == "manifests" else chart.chart_version(self.app, self.values)

    def files(self, form: Format | str) -> dict[str, bytes]:
        """Return the app's files by path in the output tree. Unchanged objects are in manifests only.

        Those of the form `STREAM` are the objects of one wave each, at `WAVE/NAMESPACE/NAME`.
        """
        if form == STREAM:
            waves = groupby(sorted(self.objects, key=_wave), _wave)
            place = f"{self.app.namespace}/{self.app.name}"
            return {f"{wave}/{place}": manifest_stream(list(items)).encode() for wave, items in waves}
        files: dict[str, bytes] = {}
        fixed = [item for item in self.objects if item.object.verbatim]
        if form != "chart" or fixed:
            files |= manifest_files(self.app, rendered=fixed if form == "chart" else self.objects)
        if form != "manifests" and len(fixed) < max(len(self.objects), 1):
            files |= chart.chart_files(self.app, self.values)
        return files

    def written_at(
        self, index: int, path: Sequence[str | int], text: str, sibling: str = ""
    ) -> tuple[Mark | None, FieldPath]:
        """Return the place where a text in an object was written, and the field of the spec there.

        Args:
            index: of the object.
            path: of the text in it.
            text: the text.
            sibling: another text in the same mapping, to choose between fields with equal text.
        """
        if self.documents:
            return self.documents[index].mark(path), tuple(path)
        if self.spec is None:
            return None, ()
        locate = self.objects[index].object.place
        mark = locate(tuple(path)) if locate else None
        if mark is not None:
            return mark, ()
        document = self.spec.document
        origin = spec_path(self.objects[index], path, document.data)
        start = self.spec.document_path(origin) if origin else ()
        field = find_text(text, document.data, start, sibling) or find_text(text, document.data, (), sibling)
        return document.mark(field or start or ("metadata", "name")), field or start


def _wave(item: Rendered) -> int:
    return item.object.wave


class Compilation(Struct, frozen=True):
    """Every app of a run, and warnings."""

    apps: tuple[Compiled, ...]
    diagnostics: tuple[Diagnostic, ...]

    def files(self, form: Format) -> dict[str, bytes]:
        """Return the output tree: content by relative path, sorted.

        Args:
            form: `manifests`, `chart` or `both`.
        """
        files: dict[str, bytes] = {}
        for item in self.apps:
            files |= item.files(form)
        return dict(sorted(files.items()))

    def stream(self) -> str:
        """Return all objects as one YAML stream in the order of their waves, and by app within a wave."""
        return manifest_stream([rendered for item in self.apps for rendered in item.objects])
