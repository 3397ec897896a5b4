"""Load kinds of installed packages from the entry point group `kaigen.kinds`."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import Decoder

from kaigen.compile.app import App
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import ProblemError
from kaigen.extend.definition import GROUP_VERSION
from kaigen.extend.schemas import check_schema, embedded, with_defaults
from kaigen.extend.validator import violations
from kaigen.kinds.block import Block, replaced
from kaigen.kinds.block_schema import block_schema
from kaigen.kinds.errors import explain
from kaigen.kinds.kind import CompiledKind
from kaigen.kinds.positioned import Unplaced
from kaigen.kinds.user import UserDocument
from kaigen.kinds.validate import validate_document

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
        if self.model is not None and not (isinstance(self.model, type) and issubclass(self.model, Block)):
            return "`model` must be a subclass of `kaigen.kinds.base.Block`"
        if self.model is not None and not {"metadata", "spec"} <= set(self.model.__struct_fields__):
            return "`model` must have the fields `metadata` and `spec`"
        if self.model is not None and (problem := _model_problem(self.model)):
            return f"`model` cannot be used: {problem}"
        return "" if self.schema is None else _schema_problem(self.schema)


def _model_problem(model: type[Block]) -> str:
    """Return why documents cannot be read as a model; empty if they can."""
    try:
        block_schema(model)
        Decoder(model)
    except Exception as error:
        # Types are written by the package; a wrong one raises anything.
        return str(error)
    return ""


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
        return None if schema is None else embedded(dict(schema))

    def validate(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """Return the document as the kind's model, or None and its errors."""
        assert self.offered is not None
        return read_by_schema(self, document, self.offered.schema)

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
    return replaced(block, spec=filled), []


def failure(error: BaseException, what: str, code: str) -> Diagnostic:
    """Return the diagnostic of an exception in a package's code, at the line that raised it."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/kaigen/" not in frame.filename.replace("\\", "/") and not frame.filename.startswith("<")
    ]
    last = own[-1] if own else None
    text = " ".join(str(error).split())[:300]
    mark = None
    if last is not None and last.lineno:
        text_of_line = linecache.getline(last.filename, last.lineno).rstrip("\n")
        column = len(text_of_line) - len(text_of_line.lstrip())
        mark = Mark(last.filename, last.lineno, column + 1, max(1, len(text_of_line) - column), text_of_line)
    message = f"{what}: {type(error).__name__}{f': {text}' if text else ''}"
    return Diagnostic(code, message, mark, "report this to the authors of the package")


def plugin_kinds() -> tuple[list[PluginKind], list[Diagnostic]]:
    """Return the kinds of all installed packages and the errors of those that cannot be used."""
    return _plugin_kinds(tuple(sys.path))


@lru_cache(maxsize=4)
def _plugin_kinds(path: tuple[str, ...]) -> tuple[list[PluginKind], list[Diagnostic]]:
    kinds: list[PluginKind] = []
    found: list[Diagnostic] = []
    points = {(point.name, point.value): point for point in entry_points(group=GROUP)}
    for _, point in sorted(points.items()):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        offered = _load(point, package, found)
        for item in offered:
            problem = item.problem()
            if problem:
                found.append(_unusable(point, package, f"{type(item).__name__}: {problem}"))
                continue
            kinds.append(
                PluginKind(
                    item.api_version,
                    item.kind,
                    point.value,
                    item.summary,
                    system=item.api_version.rpartition("/")[0],
                    offered=item,
                    package=package,
                )
            )
    return kinds, found


def _load(point: EntryPoint, package: str, found: list[Diagnostic]) -> list[PythonKind]:
    try:
        offered = point.load()
    except Exception as error:
        where = f"the kind `{point.name}` of the package {package} cannot be loaded"
        found.append(failure(error, where, "KG1010"))
        return []
    items = list(offered) if isinstance(offered, list | tuple) else [offered]
    wrong = next((item for item in items if not isinstance(item, PythonKind)), None)
    if wrong is not None:
        found.append(
            _unusable(point, package, f"`{point.value}` is a {type(wrong).__name__}, not a PythonKind")
        )
        return []
    return items


def _unusable(point: EntryPoint, package: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "KG1010",
        f"the kind `{point.name}` of the package {package} cannot be used: {reason}",
        hint="report this to the authors of the package",
    )
