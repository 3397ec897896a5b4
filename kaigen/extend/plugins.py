"""Load kinds of installed packages from the entry point group `kaigen.kinds`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.compile.app import App
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import ProblemError
from kaigen.extend.schemas import check_schema, embed_schema, with_defaults
from kaigen.extend.validator import violations
from kaigen.kinds.block import Block, replace_fields
from kaigen.kinds.entry import GROUP_VERSION
from kaigen.kinds.errors import explain
from kaigen.kinds.kind import CompiledKind
from kaigen.kinds.packages import failure, model_problem, offers
from kaigen.kinds.positioned import Unplaced
from kaigen.kinds.user import UserDocument
from kaigen.kinds.validate import validate_document

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.compile.problems import Problems
    from kaigen.kinds.positioned import Positioned

GROUP = "kaigen.kinds"


class PythonKind(Struct, frozen=True):
    """A kind that a package provides.

    Attributes:
        api_version: of its documents.
        kind: of its documents.
        summary: its purpose, a few words.
        compile: compiles a document to an app: `compile(document, context, problems) -> App`. The document is
            the model's, or with `schema` a `kaigen.kinds.user.UserDocument`.
        model: model of a whole document, a `kaigen.kinds.base.Block` with `metadata: Metadata`.
        schema: JSON Schema (2020-12) of `spec`, instead of a model.
    """

    api_version: str
    kind: str
    summary: str
    compile: Callable[[Any, Context, Problems], App]
    model: type[Block] | None = None
    schema: Mapping[str, Any] | None = None

    def problem(self) -> str:
        """Return why the kind cannot be used; empty if it can."""
        for name in ("api_version", "kind", "summary"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                return f"`{name}` must be a string that is not empty"
        if not re.fullmatch(GROUP_VERSION, self.api_version):
            return f"`{self.api_version}` is not a group and version such as `acme.example/v1`"
        if not callable(self.compile):
            return "`compile` must be a function"
        if (self.model is None) == (self.schema is None):
            return "it must have either `model` or `schema`"
        if self.model is not None and (problem := model_problem(self.model, "metadata", "spec")):
            return f"`model` {problem}"
        return "" if self.schema is None else _schema_problem(self.schema)


def _schema_problem(schema: Mapping[str, Any]) -> str:
    found = check_schema(Unplaced(dict(schema)))
    return found[0].message if found else ""


class PluginKind(CompiledKind, frozen=True):
    """The entry of a package's kind.

    Attributes:
        offered: the kind in the package.
        package: its name and version.
    """

    offered: PythonKind | None = None
    package: str = ""

    def model(self) -> type[Block]:
        """Return the model of a whole document."""
        assert self.offered is not None
        return self.offered.model or UserDocument

    def spec_schema(self) -> Mapping[str, Any] | None:
        """Return the JSON Schema of `spec` if the package provides one instead of a model."""
        assert self.offered is not None
        schema = self.offered.schema
        return None if schema is None else embed_schema(dict(schema))

    def validate(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """Return the document as the kind's model, or None and its errors."""
        assert self.offered is not None
        try:
            return read_by_schema(self, document, self.offered.schema)
        except Exception as error:
            # A model may have code of the package.
            return None, [failure(error, f"the kind `{self.kind}` of the package {self.package} failed", "KG1011")]

    def compiler(self) -> Callable[..., Any]:
        """Return the package's function, with its exceptions handled."""
        return self._compile

    def _compile(self, block: Any, context: Context, problems: Problems) -> App | None:
        assert self.offered is not None
        try:
            app = self.offered.compile(block, context, problems)
        except ProblemError as error:
            problems.add(error.problem)
            return None
        except Exception as error:
            where = f"the kind `{self.kind}` of the package {self.package} failed"
            problems.add_diagnostic(failure(error, where, "KG1011"))
            return None
        if isinstance(app, App) or problems.failed:
            return app if isinstance(app, App) else None
        problems.error(
            "KG1011",
            f"the kind `{self.kind}` of the package {self.package} returned a {type(app).__name__} instead of an App",
            ("kind",),
        )
        return None

    @property
    def volatile(self) -> bool:
        """Whether the kind can change without a change in the repository: a package can be upgraded at any time."""
        return True


def read_by_schema(
    entry: CompiledKind, document: Positioned, schema: Mapping[str, Any] | None
) -> tuple[Any, list[Diagnostic]]:
    """Validate a document by its model and the schema of its `spec`; return it with defaults filled in, and errors."""
    block, found = validate_document(document, entry)
    if schema is None:
        return block, found
    root = dict(schema)
    data = document.data.get("spec")
    if isinstance(data, dict):
        wrong = explain(document, root, violations(root, data), ("spec",))
        reported = {item.path for item in found}
        found += [item for item in wrong if item.path not in reported]
    if block is None or found:
        return None, found
    filled = with_defaults(root, root, data)
    return replace_fields(block, spec=filled), []


def plugin_kinds() -> tuple[list[PluginKind], list[Diagnostic]]:
    """Return the kinds of all installed packages and the errors of those that cannot be used."""
    return _plugin_kinds(tuple(sys.path))


@lru_cache(maxsize=4)
def _plugin_kinds(path: tuple[str, ...]) -> tuple[list[PluginKind], list[Diagnostic]]:
    kinds: list[PluginKind] = []
    offered, found = offers(GROUP, "kind", PythonKind)
    for offer in offered:
        item = offer.value
        problem = item.problem()
        if problem:
            found.append(offer.unusable(f"{type(item).__name__}: {problem}"))
            continue
        kinds.append(
            PluginKind(
                item.api_version,
                item.kind,
                offer.reference,
                item.summary,
                system=item.api_version.rpartition("/")[0],
                offered=item,
                package=offer.package,
            )
        )
    return kinds, found
