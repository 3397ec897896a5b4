"""Load kinds of installed packages from the entry point group `kaigen.kinds`, and validate their documents.

A document is validated by the JSON Schema of its kind, with own versions of the keywords for which jsonschema uses
Python's `re`: patterns are searched in linear time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from msgspec import Struct

from kaigen.compile.app import App
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import ProblemError
from kaigen.extend.schemas import check_schema, embed_schema, with_defaults
from kaigen.kinds.block import Block, replace_fields
from kaigen.kinds.entry import GROUP_VERSION
from kaigen.kinds.errors import explain
from kaigen.kinds.kind import CompiledKind
from kaigen.kinds.packages import failure, model_problem, offers
from kaigen.kinds.positioned import Unplaced
from kaigen.kinds.schema import deref
from kaigen.kinds.user import UserDocument
from kaigen.kinds.validate import validate_document
from kaigen.regex.keyword import pattern_keyword
from kaigen.regex.pattern import matches

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.compile.problems import Problems
    from kaigen.kinds.positioned import Positioned


def violations(schema: Mapping[str, Any], data: Any) -> Iterator[ValidationError]:
    """Yield what is wrong with the data.

    Args:
        schema: one without errors, as `kaigen.extend.schemas.check_schema` returns them.
        data: of a document.
    """
    # jsonschema would continue with its own class at a schema that names its dialect.
    root = {key: value for key, value in schema.items() if key != "$schema"}
    found: Iterator[ValidationError] = _validator(root)(root).iter_errors(data)
    return found


def _validator(root: dict[str, Any]) -> Any:
    def unevaluated(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        others = {key: value for key, value in schema.items() if key != "unevaluatedProperties"}
        evaluated = _evaluated(validator, root, instance, others)
        wrong = [key for key in instance if key not in evaluated and not _fits(validator, rule, instance[key])]
        if wrong:
            yield ValidationError(f"unevaluated properties are not allowed: {', '.join(wrong)}")

    return extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {
            "pattern": pattern_keyword(),
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "unevaluatedProperties": unevaluated,
        },
    )


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, rule in patterns.items():
            for key in _matching(instance, [pattern]):
                yield from validator.descend(instance[key], rule, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    named = _matching(instance, schema.get("patternProperties", ())) | schema.get("properties", {}).keys()
    extras = [key for key in instance if key not in named]
    if isinstance(rule, dict):
        for key in extras:
            yield from validator.descend(instance[key], rule, path=key)
    elif not rule and extras:
        yield ValidationError(f"additional properties are not allowed: {', '.join(extras)}")


def _evaluated(validator: Any, root: dict[str, Any], instance: dict[str, Any], schema: Any) -> set[str]:
    """Return the fields that the keywords of a schema and of those that apply with it have examined."""
    if not isinstance(schema, dict):
        return set()
    found = set(instance) & set(schema.get("properties", {}))
    found |= _matching(instance, schema.get("patternProperties", ()))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            found |= {key for key, value in instance.items() if _fits(validator, schema[keyword], value)}
    for inner in _applying(validator, root, instance, schema):
        found |= _evaluated(validator, root, instance, inner)
    return found


def _applying(validator: Any, root: dict[str, Any], instance: dict[str, Any], schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas in a schema that apply to the same mapping."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            yield deref(root, {"$ref": schema[keyword]})
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from (inner for inner in schema.get(keyword, ()) if _fits(validator, inner, instance))
    if "if" in schema:
        fits = _fits(validator, schema["if"], instance)
        yield from [schema["if"], schema.get("then")] if fits else [schema.get("else")]
    yield from (inner for key, inner in schema.get("dependentSchemas", {}).items() if key in instance)


def _fits(validator: Any, rule: Any, value: Any) -> bool:
    return next(validator.descend(value, rule), None) is None


def _matching(instance: Mapping[str, Any], patterns: Iterable[str]) -> set[str]:
    return {key for key in instance if any(matches(pattern, key) for pattern in patterns)}


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
