"""A YAML file in a ConfigMap, with errors at its lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.field_path import dotted_path
from kaigen.kinds.lowering import Lowering
from kaigen.kinds.source_field import SourceField
from kaigen.yaml.embedded import parse_embedded

if TYPE_CHECKING:
    from kaigen.yaml.document import Document


class ConfigFile(Struct, frozen=True):
    """A mapping in a ConfigMap.

    Attributes:
        mapping: its content.
        lowering: collects its problems.
    """

    mapping: Mapping[str, Json]
    lowering: Lowering
    _document: Document
    _field: tuple[str, str]

    def error(self, code: str, message: str, path: FieldPath = (), hint: str = "") -> None:
        """Report an error at a key of the file."""
        self._report(Severity.ERROR, code, message, path, hint)

    def warning(self, code: str, message: str, path: FieldPath = (), hint: str = "") -> None:
        """Report a warning at a key of the file."""
        self._report(Severity.WARNING, code, message, path, hint)

    def source(self, path: FieldPath) -> SourceField:
        """Return the place of a value of the file."""
        return SourceField(self._document.mark(path), dotted_path((*self._field, *path)))

    def _report(self, severity: Severity, code: str, message: str, path: FieldPath, hint: str) -> None:
        mark = self._document.mark(path, key=True)
        self.lowering.report([Diagnostic(code, message, mark, hint, severity, dotted_path((*self._field, *path)))])


def read_config_file(document: Document, key: str, name: str, at: FieldPath, lowering: Lowering) -> ConfigFile | None:
    """Return the file under a key of a ConfigMap, which becomes part of the resource that names it.

    Args:
        document: the ConfigMap.
        key: of the file.
        name: of the ConfigMap.
        at: the field that names the ConfigMap.
        lowering: collects problems; they are errors of the file, at its lines.
    """
    lowering.consume(document)
    data = document.data.get("data") if isinstance(document.data, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get(key), str):
        lowering.error("KG0418", f"ConfigMap `{name}` has no key `{key}`", at, f"add `{key}` to it")
        return None
    problems = Diagnostics()
    field = ("data", key)
    embedded = parse_embedded(document, field, problems)
    lowering.report(problems)
    if problems.has_errors:
        return None
    content = embedded[0].data if len(embedded) == 1 else None
    if not isinstance(content, dict):
        mark = document.mark(field, key=True)
        lowering.report([Diagnostic("KG0418", f"`{key}` must be one YAML mapping", mark, path=dotted_path(field))])
        return None
    return ConfigFile(content, lowering, embedded[0], field)
