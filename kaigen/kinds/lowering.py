"""What every kind's lowering takes and returns: input documents in, specs of kaigen's kinds and diagnostics out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kaigen.catalog.catalog import Catalog
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import nearest
from kaigen.kinds.compat import Naming, ServingNaming
from kaigen.kinds.config_files import file_key, resolve_file
from kaigen.kinds.input_documents import ANY_NAME, InputDocuments, ObjectName
from kaigen.kinds.positioned import Positioned, SourceField

if TYPE_CHECKING:
    from kaigen.kinds.base import AppBlock
    from kaigen.yaml.document import Document

PREFIX = "kaigen.dev/"
"""Prefix of annotations that direct kaigen."""
ENVIRONMENTS = f"{PREFIX}environments"
"""The annotation of the environments that have a foreign resource, separated by commas."""


class LoweringContext(Struct, frozen=True):
    """What a lowering may read besides its document.

    Attributes:
        profile: name of the cluster profile that the output is for.
        documents: every document of the run.
        root: folder of the repository, which the files that documents name are in.
        namespace: namespace of documents that name none.
        settings: of the dialects in kaigen.yaml, by dialect.
        catalog: kaigen's tables with the rows of the repository.
    """

    profile: str = "generic"
    documents: InputDocuments = field(default_factory=InputDocuments)
    root: str = "."
    namespace: str = "default"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    catalog: Catalog = Catalog()


class Lowered(Struct, frozen=True):
    """A spec that a document is lowered to.

    Attributes:
        block: the spec, of any kind that kaigen compiles.
        origins: field of the document that each field of the spec came from; the longest prefix of a path decides.
            None when the document is the spec itself.
        naming: names of a foreign system to keep; None for kaigen's own.
        hints: by diagnostic code, hints that name fields of the document in place of fields of the spec.
        sources: fields that were written in other documents.
    """

    block: AppBlock
    origins: Mapping[FieldPath, FieldPath] | None = None
    naming: Naming | ServingNaming | None = None
    hints: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[FieldPath, SourceField] = field(default_factory=dict)


def origins_below(data: Any, path: FieldPath, origin: FieldPath) -> dict[FieldPath, FieldPath]:
    """Return the origin of a field, and of every field in it that is written.

    Args:
        data: what is written.
        path: the field of the spec.
        origin: the field of the document.
    """
    found = {path: origin}
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found |= origins_below(value, (*path, key), (*origin, key))
    return found


class LoweringResult(Struct, frozen=True):
    """What the lowering of one document returns.

    Attributes:
        specs: none when an error was found.
        diagnostics: errors and warnings.
        consumed: other documents that became part of the specs and are not rendered themselves.
        joined: whether the document became part of the specs of another one, and therefore has none.
        looked_up: objects that were looked up among the documents of the run, and files, whether they exist or not.
        urls: fields of the document with URLs that containers get as text, and these; fields of the specs have others.
    """

    specs: tuple[Lowered, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    consumed: tuple[Document, ...] = ()
    joined: bool = False
    looked_up: tuple[ObjectName, ...] = ()
    urls: tuple[tuple[str, FieldPath], ...] = ()


class Lowering:
    """Collects what the lowering of one document finds."""

    def __init__(self, document: Positioned, context: LoweringContext | None = None) -> None:
        self.document = document
        self.context = context or LoweringContext()
        self.diagnostics: list[Diagnostic] = []
        self._consumed: list[Document] = []
        self._looked_up: list[ObjectName] = []
        self._urls: list[tuple[str, FieldPath]] = []

    def result(self, *specs: Lowered, joined: bool = False) -> LoweringResult:
        """Return the result with these specs.

        Args:
            specs: none after an error, and for a document that is part of another.
            joined: whether the document became part of the specs of another one.
        """
        return LoweringResult(
            specs,
            tuple(self.diagnostics),
            tuple(self._consumed),
            joined,
            tuple(dict.fromkeys(self._looked_up)),
            tuple(self._urls),
        )

    def names_server(self, text: str, path: FieldPath) -> None:
        """Have a server checked that a container gets as text: no field of the specs has it.

        Args:
            text: URL of the server, or its host with or without a port.
            path: its field in the document.
        """
        self._urls.append((text if "://" in text else f"http://{text}", path))

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return any(item.severity is Severity.ERROR for item in self.diagnostics)

    @property
    def namespace(self) -> str:
        """Namespace of the document."""
        return self._namespace_of(self.document.data)

    def _namespace_of(self, data: Any) -> str:
        namespace: str = data["metadata"].get("namespace") or self.context.namespace
        return namespace

    def find_object(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Document | None:
        """Return an object of the input by its name; None when the input does not have it.

        An object without a namespace is in the namespace of the context. When several objects have the name, those in
        the document's own file take precedence.

        Args:
            api_version: of the object.
            kind: of the object.
            name: of the object.
            namespace: of the object; None for that of the document.
        """
        candidates = self._found(api_version, kind, name, namespace)
        own_file = self.document.mark(()).file
        candidates.sort(key=lambda document: document.mark(()).file != own_file)
        return candidates[0] if candidates else None

    def find_objects(self, api_version: str, kind: str, namespace: str | None = None) -> list[Document]:
        """Return all objects of a kind in a namespace of the input.

        Args:
            api_version: of the objects.
            kind: of the objects.
            namespace: of the objects; None for that of the document.
        """
        return self._found(api_version, kind, ANY_NAME, namespace)

    def _found(self, api_version: str, kind: str, name: str, namespace: str | None) -> list[Document]:
        self._looked_up.append((api_version, kind, name))
        return [
            document
            for document in self.context.documents.named(api_version, kind, name)
            if self._namespace_of(document.data) == (namespace or self.namespace)
        ]

    def find_file(self, name: str) -> str:
        """Return the path of a file that the document names, relative to it.

        Raises:
            ProblemError: it is outside of the repository.
        """
        path = resolve_file(name, self.document.mark(()).file, self.context.root)
        self._looked_up.append(file_key(path))
        return path

    def consume(self, document: Document) -> None:
        """Make another document part of this one."""
        self._consumed.append(document)

    def error(self, code: str, message: str, path: Sequence[str | int], hint: str = "", *, key: bool = False) -> None:
        """Report an error at a field of the document."""
        self._report(Severity.ERROR, code, message, path, hint, key)

    def warning(self, code: str, message: str, path: Sequence[str | int], hint: str = "", *, key: bool = False) -> None:
        """Report a warning at a field of the document."""
        self._report(Severity.WARNING, code, message, path, hint, key)

    def _report(
        self, severity: Severity, code: str, message: str, path: Sequence[str | int], hint: str, key: bool
    ) -> None:
        mark = self.document.mark(path, key=key)
        self.diagnostics.append(Diagnostic(code, message, mark, hint, severity, dotted_path(path)))

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Report problems that have positions of their own, such as in another document."""
        self.diagnostics.extend(diagnostics)

    def ignored(self, fields: Iterable[str], path: FieldPath, reason: str) -> None:
        """Warn about each field that is present and has no effect."""
        block: Any = self.document.data
        for key in path:
            block = block.get(key, {})
        for name in fields:
            if name in block:
                message = f"`{name}` has no effect: {reason}"
                self.warning("KG0405", message, (*path, name), "delete it", key=True)

    def directives(self, annotations: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
        """Return the annotations that direct kaigen, by name without their prefix; unknown ones are errors.

        That of the environments, which every resource may have, was read before.
        """
        given = {}
        for key, value in annotations.items():
            if not key.startswith(PREFIX) or key == ENVIRONMENTS:
                continue
            name = key.removeprefix(PREFIX)
            if name in known:
                given[name] = value
            else:
                similar = nearest(name, known)
                listed = ", ".join(PREFIX + item for item in known)
                self.error(
                    "KG0406",
                    f"unknown annotation `{key}`",
                    ("metadata", "annotations", key),
                    f"did you mean `{PREFIX}{similar[0]}`?" if similar else f"known: {listed}",
                    key=True,
                )
        return given

    def flag(self, directives: Mapping[str, str], name: str, default: bool) -> bool:
        """Return a directive that is true or false."""
        value = directives.get(name)
        if value in {"true", "false"}:
            return value == "true"
        if value is not None:
            self.error(
                "KG0406", f'`{PREFIX}{name}` must be "true" or "false"', ("metadata", "annotations", PREFIX + name)
            )
        return default
