"""Dialects of installed packages: found, checked, and kept from taking a run down when they fail."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kaigen.diagnostics import codes
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import ProblemError
from kaigen.dialects.registry import GROUP, OWN, RESERVED, Dialect, find_kind
from kaigen.kinds.block import Block
from kaigen.kinds.block_schema import block_schema
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import GROUP_VERSION, PATCHABLE, find_entry, import_reference
from kaigen.kinds.kind import Continued, ForeignKind, Kind, Trainer
from kaigen.kinds.lowering import Lowered, Lowering, LoweringContext, LoweringResult
from kaigen.kinds.packages import Offer, failure, model_problem, offers
from kaigen.kinds.positioned import Positioned

_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
_KIND = r"[A-Z][A-Za-z0-9]*"


class PackageKind(ForeignKind, frozen=True):
    """A kind of a package's dialect.

    Attributes:
        offered: the kind in the package.
        package: its name and version.
    """

    offered: ForeignKind | None = None
    package: str = ""

    def model(self) -> type[Block]:
        """Return the model of a whole document."""
        assert self.offered is not None
        return self.offered.model()

    def validate(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """Return the document as the kind's model, or None and its errors."""
        try:
            return super().validate(document)
        except Exception as error:
            # A model may have code of the package.
            return None, [self._failed(error)]

    def lower(self, block: Any, document: Positioned, context: LoweringContext) -> LoweringResult:
        """Return the specs of kaigen's kinds that the package lowers a document to, its exceptions as diagnostics."""
        assert self.offered is not None
        lowering = Lowering(document, context)
        try:
            result = self.offered.lower(block, document, context)
        except ProblemError as error:
            found = error.problem
            lowering.error(found.code, found.message, found.path, found.hint)
            return lowering.result()
        except Exception as error:
            lowering.report([self._failed(error)])
            return lowering.result()
        wrong = _result_problem(result)
        if wrong:
            lowering.error("KG1011", f"{self._name} returned {wrong}", ("kind",))
            return lowering.result()
        return result

    def continued(self, document: Mapping[str, Any], name: str, trainer: Trainer) -> Continued:
        """Return the document that runs what a notebook tried; the arguments are those of a ForeignKind.

        Raises:
            InputError: the package failed.
        """
        assert self.offered is not None
        try:
            return self.offered.continued(document, name, trainer)
        except Exception as error:
            raise InputError([self._failed(error)]) from error

    def _failed(self, error: Exception) -> Diagnostic:
        return failure(error, f"{self._name} failed", "KG1011")

    @property
    def _name(self) -> str:
        return f"the kind `{self.kind}` of the package {self.package}"

    @property
    def volatile(self) -> bool:
        """Whether the kind can change without a change in the repository: a package can be upgraded at any time."""
        return True


def _result_problem(result: Any) -> str:
    """Return what a lowering returned that kaigen cannot compile; empty if it can."""
    if not isinstance(result, LoweringResult):
        return f"a {type(result).__name__} instead of a LoweringResult"
    for item in result.specs:
        if not isinstance(item, Lowered):
            return f"a {type(item).__name__} instead of a Lowered"
        block = item.block
        target = find_entry(getattr(block, "api_version", None), getattr(block, "kind", None), BUILTIN_KINDS)
        if target is None or not isinstance(block, target.model()):
            return f"a {type(block).__name__}, which is none of kaigen's kinds"
        if item.origins is None:
            return "a spec without `origins`, the fields of the document that its fields come from"
    unknown = next((item.code for item in result.diagnostics if item.code not in codes.codes()), None)
    if unknown is not None:
        return f"a message with the code `{unknown}`, which kaigen does not have"
    failed = any(item.severity is Severity.ERROR for item in result.diagnostics)
    return "" if result.specs or result.joined or failed else "neither a spec nor an error"


class PackageDialects(Struct, frozen=True):
    """The dialects of all installed packages.

    Attributes:
        kinds: every kind of those that can be used.
        settings: their blocks in `dialects` of kaigen.yaml, by dialect.
        diagnostics: errors of those that cannot be used.
    """

    kinds: tuple[PackageKind, ...] = ()
    settings: Mapping[str, type[Block]] = {}
    diagnostics: tuple[Diagnostic, ...] = ()


def find_any_kind(api_version: str | None, kind: str | None) -> Kind | None:
    """Return the kind of a document; None when neither kaigen nor any dialect, of packages too, has it."""
    return find_kind(api_version, kind) or find_entry(api_version, kind, package_dialects().kinds)


def package_dialects() -> PackageDialects:
    """Return the dialects of all installed packages and the errors of those that cannot be used."""
    return _package_dialects(tuple(sys.path))


@lru_cache(maxsize=4)
def _package_dialects(path: tuple[str, ...]) -> PackageDialects:
    offered, found = offers(GROUP, "dialect", Dialect, OWN)
    kinds: list[PackageKind] = []
    settings: dict[str, type[Block]] = {}
    owners: dict[str, str] = {}
    for offer in offered:
        problem = _problem(offer, owners)
        if problem:
            found.append(offer.unusable(problem))
            continue
        dialect = offer.value
        owners[dialect.name] = offer.package
        if dialect.settings:
            settings[dialect.name] = import_reference(dialect.settings)
        kinds += [_of_package(kind, offer.package) for kind in dialect.kinds]
    return PackageDialects(tuple(kinds), settings, tuple(found))


def _of_package(kind: ForeignKind, package: str) -> PackageKind:
    fields = {name: getattr(kind, name) for name in ForeignKind.__struct_fields__}
    return PackageKind(**fields, offered=kind, package=package)


def _problem(offer: Offer[Dialect], owners: Mapping[str, str]) -> str:
    """Return why a dialect cannot be used; empty if it can.

    Args:
        offer: the dialect.
        owners: packages by the names of the dialects before it.
    """
    dialect = offer.value
    wrong = _wrong_texts(dialect, ("name", "title"))
    if wrong:
        return wrong
    if not re.fullmatch(_NAME, dialect.name):
        return f"`name` is `{dialect.name}`; it must be lowercase words with `-` between them"
    if dialect.name in RESERVED:
        return f"the name `{dialect.name}` is reserved for kaigen"
    if dialect.name in owners:
        return f"the package {owners[dialect.name]} has a dialect `{dialect.name}`, too"
    if dialect.estimator:
        return "`estimator` is for kaigen's own dialects"
    if dialect.settings:
        block, wrong = _named(dialect.settings)
        if wrong := wrong or model_problem(block):
            return f"`settings` {wrong}"
    if not isinstance(dialect.kinds, tuple) or not dialect.kinds:
        return "`kinds` must be a tuple that is not empty"
    return next(filter(None, (_kind_problem(kind, dialect.name) for kind in dialect.kinds)), "")


def _kind_problem(kind: Any, system: str) -> str:
    """Return why a kind of a dialect cannot be used; empty if it can."""
    if not isinstance(kind, ForeignKind):
        return f"`kinds` has a {type(kind).__name__}, not a ForeignKind"
    wrong = _wrong_texts(kind, ("api_version", "kind", "summary", "model_reference", "lower_reference"))
    if wrong:
        return wrong
    if not re.fullmatch(GROUP_VERSION, kind.api_version):
        return f"`{kind.api_version}` is not a group and version such as `acme.example/v1`"
    if not re.fullmatch(_KIND, kind.kind):
        return f"`{kind.kind}` is not the name of a kind such as `InferenceService`"
    if kind.system != system:
        return f"`system` of `{kind.kind}` is `{kind.system}`; it must be the dialect's name, `{system}`"
    if not {*kind.patchable} <= {*PATCHABLE}:
        return f"`patchable` of `{kind.kind}` must be some of {', '.join(f'`{name}`' for name in PATCHABLE)}"
    for name in ("lower_reference", "continued_reference"):
        reference = getattr(kind, name)
        function, wrong = _named(reference) if reference else (len, "")
        if wrong or not callable(function):
            return f"`{name}` of `{kind.kind}` {wrong or 'must be a function'}"
    model, wrong = _named(kind.model_reference)
    wrong = wrong or model_problem(model, "api_version", "kind", "metadata") or _names_problem(model, kind)
    return f"the model of `{kind.kind}` {wrong}" if wrong else ""


def _wrong_texts(value: Struct, names: Iterable[str]) -> str:
    for name in names:
        if not isinstance(getattr(value, name), str) or not getattr(value, name):
            return f"`{name}` must be a string that is not empty"
    return ""


def _named(reference: str) -> tuple[Any, str]:
    """Return what `module:name` refers to, and why it cannot be imported; empty if it can."""
    try:
        return import_reference(reference), ""
    except Exception as error:
        # The module is the package's, which raises anything.
        return None, f"cannot be imported from `{reference}`: {type(error).__name__}: {error}"


def _names_problem(model: type[Block], kind: ForeignKind) -> str:
    """Return why a model cannot read documents of a kind by their names; empty if it can."""
    fields = block_schema(model)["properties"]
    for name, value in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        allowed = fields[name].get("enum", [fields[name].get("const", value)])
        if value not in allowed:
            return f"has the {name} {' or '.join(f'`{each}`' for each in allowed)}, not `{value}`"
    return ""
