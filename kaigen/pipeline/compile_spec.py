"""Compile one spec to an app with checked objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.profiles import get_profile
from kaigen.check import codes
from kaigen.check.budgets import budget_findings
from kaigen.check.clouds import cloud_findings
from kaigen.check.controller_versions import version_findings
from kaigen.check.custom_rules import default_findings
from kaigen.check.grants import grant_findings
from kaigen.check.policy import check_policy
from kaigen.check.references import MissingObject, check_classes, check_references
from kaigen.check.schema_check import check_object
from kaigen.compile.context import Context
from kaigen.compile.kind_compiler import KindCompiler, Resolution
from kaigen.compile.pod_images import with_images
from kaigen.compile.problems import Problems
from kaigen.compile.url_checks import check_urls, has_broken_url, url_problems
from kaigen.config.lock_file import lock_of
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.problem import first_of
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.repositories import blocks_in
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.spec import Spec
from kaigen.pipeline.origins import find_text, spec_path
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.summary import Missing
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.document_secrets import find_secrets

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.compile.context import ObjectsOf, SpecIndex
    from kaigen.config.external import ExternalEntry
    from kaigen.config.lock_file import Lock
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides
    from kaigen.core.json_types import Json
    from kaigen.diagnostics.problem import Problem
    from kaigen.extend.patches import Patches
    from kaigen.kinds.input_documents import Key

with lazy_imports():
    from kaigen.emit import values as emit_values
    from kaigen.pipeline import licenses
    from kaigen.tenancy import violations as tenancy


_QUOTED = re.compile("`([^`]+)`")
_LEVEL = ("spec", "security", "podSecurity")
_BUILD = ("spec", "build")
"""The fields that choose the Pod Security level of an app, and of the Job that builds its image."""


def make_context(
    config: Config, specs: SpecIndex, patches: Patches | None = None, objects_of: ObjectsOf | None = None
) -> Context:
    """Return the context that specs are compiled in, by a repository's settings."""
    lock = lock_of(config.root, config.lock)
    return Context(get_profile(config.profile), config, specs, patches, objects_of, lock, _digests(config, lock))


def _digests(config: Config, lock: Lock) -> Mapping[str, str]:
    """Return the locked digests of images, also by the names that kaigen's own images have after mirroring."""
    known = lock.images
    own = {config.images[name]: known[image] for name, image in config.plain_images.items() if image in known}
    return {**known, **own}


def resolve_spec(spec: Spec, context: Context) -> Resolution | None:
    """Return what is decided about a spec before its objects are made; None for a kind of a user.

    Args:
        spec: the spec.
        context: what it is compiled for.
    """
    compiler = spec.target.compiler()
    if not isinstance(compiler, KindCompiler):
        return None
    naming = compiler.default_naming if spec.naming is None else spec.naming
    resolution: Resolution = compiler.resolve(spec.block, context, Problems(), naming)
    return resolution


class SpecResult(Struct, frozen=True):
    """One spec after compiling.

    Attributes:
        compiled: its app with checked objects; None when there are errors that prevent it.
        diagnostics: errors and warnings.
        references: kind, namespace and name of the specs that were looked up, found or not.
        missing: references to objects that another app may make.
    """

    compiled: Compiled | None
    diagnostics: tuple[Diagnostic, ...]
    references: tuple[Key, ...]
    missing: tuple[Missing, ...] = ()


def compile_spec(spec: Spec, context: Context, layers: Sequence[Overrides] = ()) -> SpecResult:
    """Compile a spec, apply patches and overridden settings, and check its objects.

    Args:
        spec: the spec.
        context: what it is compiled for.
        layers: settings to override, by app.
    """
    index = context.specs.recorder()
    found = Diagnostics()
    compiled: Compiled | None = None
    missing: list[Missing] = []
    app = _compile(spec, replace(context, specs=index), found)
    if app is not None:
        app, patched, values = _overridden(app, context, layers, found)
        objects = app.render(values)
        missing = _check(spec, app, objects, context, found)
        compiled = Compiled(app, values, objects, spec, index.found(), patched)
    if context.config.licenses is not None:
        found.extend(licenses.check_licenses(spec, context, context.config.licenses))
    found.extend(check_tokens(spec, context))
    references = tuple(dict.fromkeys((*index.lookups, *index.indirect)))
    return SpecResult(compiled, tuple(found), references, tuple(missing))


def spec_objects(spec: Spec, context: Context, layers: Sequence[Overrides] = ()) -> list[Mapping[str, Json]] | None:
    """Return the objects of a spec that another one refers to; None when it has errors, which are not reported here.

    Args:
        spec: the spec.
        context: what the other one is compiled for; it records the specs that this one looks up.
        layers: settings to override, by app.
    """
    index = context.specs.recorder()
    found = Diagnostics()
    app = _compile(spec, replace(context, specs=index), found)
    context.specs.indirect += (*index.lookups, *index.indirect)
    if app is None:
        return None
    app, _, values = _overridden(app, context, layers, found)
    return [item.body for item in app.render(values)]


def _overridden(
    app: App, context: Context, layers: Sequence[Overrides], found: Diagnostics
) -> tuple[App, tuple[str, ...], Mapping[str, Json]]:
    """Return an app with its patches applied, the tokens of these patches, and its settings."""
    patched: tuple[str, ...] = ()
    if context.patches is not None:
        app, patched = context.patches.apply(app, found)
    app = with_images(app, context)
    return app, patched, _values(app, layers, found)


def _compile(spec: Spec, context: Context, found: Diagnostics) -> App | None:
    problems = Problems()
    naming = () if spec.naming is None else (spec.naming,)
    app: App | None = None
    if not has_broken_url(spec.block):
        app = spec.target.compiler()(spec.block, context, problems, *naming)
    namespace = context.config.namespace if app is None else app.namespace
    check_urls(spec.block, spec.source, namespace, context, problems)
    for each in url_problems(spec.urls, spec.source, namespace, context):
        problems.add_diagnostic(spec.document_diagnostic(each.code, each.message, each.path, each.hint))
    for problem in problems.items:
        warning = problem.severity is not Severity.ERROR
        found.add(spec.diagnostic(problem.code, problem.message, problem.path, problem.hint, warning=warning))
    found.extend(problems.diagnostics)
    if app is None or problems.failed:
        return None
    kind = f"{spec.entry.kind} of {spec.entry.api_version}" if spec.lowered else spec.block.kind
    return replace(app, source=spec.source, kind=kind, digest_in_version=context.config.digest_in_version)


def _values(app: App, layers: Sequence[Overrides], found: Diagnostics) -> Mapping[str, Json]:
    """Return the app's settings with overrides applied; the defaults when an override is invalid."""
    if any(name in layer for layer in layers for name in (app.name, f"{app.namespace}/{app.name}")):
        values = emit_values.effective_values(app, layers)
        problems = emit_values.check_values(app, values, layers)
        found.extend(problems)
        if not problems:
            return values
    return app.default_values()


def _check(spec: Spec, app: App, objects: Sequence[Rendered], context: Context, found: Diagnostics) -> list[Missing]:
    """Check the objects of an app, report each problem at its place in the spec, and return missing objects."""
    missing = []
    denied: dict[tuple[FieldPath, str], list[tuple[Problem, Diagnostic]]] = {}
    every = [*_problems(objects, context, app)]
    absent = [pair for pair in every if isinstance(pair[1], MissingObject)]
    reported = first_of([pair for pair in every if not isinstance(pair[1], MissingObject)])
    for item, problem in (*reported, *absent):
        path = spec_path(item, problem.path, spec.document.data)
        if context.config.tenants and isinstance(problem, tenancy.LooseLevel):
            path = _BUILD if item.object.pod_security else _LEVEL
        if isinstance(problem, MissingObject) and not path:
            path = find_text(problem.target.name, spec.document.data, (), "")
        if problem.code == codes.TENANT_NOT_GRANTED and not path:
            path = _named_text(problem.message, spec)
        written = item.object.place(problem.path) if item.object.place else None
        diagnostic = (
            _spec_problem(item, problem, spec, path)
            if written is None
            else _extension_problem(item, problem, written, spec, path)
        )
        if isinstance(problem, MissingObject):
            target = problem.target
            missing.append(Missing(target.kind, target.namespace, target.name, diagnostic))
        elif problem.code == codes.TENANT_NOT_GRANTED and not written:
            cause = (path or ("metadata", "name"), tenancy.cause_of(problem))
            denied.setdefault(cause, []).append((problem, diagnostic))
        elif written or not (path and problem.category is Category.CREDENTIAL and _has_credential(spec)):
            found.add(diagnostic)
    for same in denied.values():
        # What several objects have comes from one field, or is chosen for all of them.
        (_, diagnostic), *others = same
        if others:
            message, hint = tenancy.of_one_cause([problem for problem, _ in same])
            diagnostic = replace(diagnostic, message=f"{len(same)} objects: {message}", hint=hint)
        found.add(diagnostic)
    return missing


def _named_text(message: str, spec: Spec) -> FieldPath:
    """Return the field of a spec with the last text that a message about an object quotes, or the value of an option
    there; empty if there is none."""
    quoted = _QUOTED.findall(message)[1:]
    for text in (quoted[-1], quoted[-1].partition("=")[2]) if quoted else ():
        if text and (path := find_text(text, spec.document.data, (), "")):
            return path
    return ()


def _spec_problem(item: Rendered, problem: Problem, spec: Spec, path: FieldPath) -> Diagnostic:
    """Return a problem at the spec's field that it comes from, or at the spec's name with the object's field."""
    name = ""
    if not path:
        name = f" {item.body['metadata']['name']}" + (f" at {problem.where}" if problem.where else "")
    return spec.diagnostic(
        problem.code,
        f"{item.body['kind']}{name}: {problem.message}",
        path or ("metadata", "name"),
        problem.hint,
        warning=problem.severity is not Severity.ERROR,
        key=problem.category is Category.UNKNOWN_FIELD and path[-1:] == problem.path[-1:],
    )


def _extension_problem(item: Rendered, problem: Problem, written: Mark, spec: Spec, path: FieldPath) -> Diagnostic:
    """Return a problem at the line of the user's template or patch, with the spec's place in the hint."""
    name = item.body["metadata"]["name"]
    origin = spec.document.mark(spec.document_path(path or ("metadata", "name")))
    hint = f"{problem.hint}; " if problem.hint else ""
    return Diagnostic(
        problem.code,
        f"{item.body['kind']} {name} at {problem.where}: {problem.message}",
        written,
        f"{hint}it is made for {origin}",
        problem.severity,
    )


def _problems(objects: Sequence[Rendered], context: Context, app: App) -> Iterable[tuple[Rendered, Problem]]:
    bodies = [item.body for item in objects]
    for item in objects:
        for problem in check_object(item.body, target=context.config.kubernetes):
            yield item, problem
        for problem in version_findings(item.body, context.config.controllers):
            yield item, problem
        if context.config.has_argocd:
            for problem in default_findings(item.body):
                yield item, problem
        for problem in cloud_findings(item.body, context.profile, context.catalog):
            yield item, problem
        for problem in check_policy(item.body, pod_security=item.object.pod_security or app.pod_security):
            yield item, problem
        for problem in grant_findings(item.body, app.namespace, context.config.allow):
            yield item, problem
    if context.config.tenants:
        yield from _tenant_problems(objects, context, app)
    if context.config.syncer_secrets.fields:
        for item in objects:
            for problem in tenancy.syncer_secret_findings(
                item.body, app.namespace, app.source, context.config.tenants, context.config.syncer_secrets
            ):
                yield item, problem
    for index, problem in check_references(bodies, external=_External(app.external_objects, context.config.external)):
        yield objects[index], problem
    for index, problem in check_classes(bodies, context.config.external):
        yield objects[index], problem
    for index, problem in budget_findings(bodies):
        yield objects[index], problem


def _tenant_problems(objects: Sequence[Rendered], context: Context, app: App) -> Iterable[tuple[Rendered, Problem]]:
    loose: list[Problem] = []
    for item in objects:
        level = item.object.pod_security or app.pod_security
        for problem in tenancy.tenant_findings(item.body, app.namespace, app.source, context.config.tenants, level):
            if not isinstance(problem, tenancy.LooseLevel):
                yield item, problem
            elif problem not in loose:
                loose.append(problem)
                yield item, problem
    bodies = [item.body for item in objects]
    for index, problem in tenancy.binding_findings(bodies, app.namespace, app.source, context.config.tenants):
        yield objects[index], problem


class _External:
    """Objects that an app may refer to without creating them: those that it or kaigen.yaml names, and claims and
    ConfigMaps unless kaigen.yaml lists those that exist."""

    def __init__(self, named: Collection[tuple[str, str]], declared: Sequence[ExternalEntry]) -> None:
        self._named = named
        self._declared = declared
        self._unlisted = {"PersistentVolumeClaim", "ConfigMap"} - {item.kind for item in declared}

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, tuple):
            return False
        kind, namespace, name = identity
        return (
            kind in self._unlisted
            or (kind, name) in self._named
            or any(item.is_named(kind, namespace, name) for item in self._declared)
        )


def _has_credential(spec: Spec) -> bool:
    """Return whether loading reported a credential in the spec's document."""
    return any(find_secrets(spec.document))  # type: ignore[arg-type]


def check_tokens(spec: Spec, context: Context) -> Iterator[Diagnostic]:
    """Yield a warning for each repository that the lock has as gated, and for which the spec has no token."""
    lock = context.lock
    if lock is None or _may_have_token(spec):
        return
    for path, block in blocks_in(spec.block):
        if not isinstance(block, HubRepository | PulledModel) or block.token_secret is not None:
            continue
        locked = lock.of(block)
        if locked is not None and locked.gated:
            yield spec.diagnostic(
                "KG0355",
                f"{block.repo} is gated, and the spec has no token for it",
                (*path, "repo"),
                "set `tokenSecret` to a Secret with a Hub token",
                warning=True,
            )


def _may_have_token(spec: Spec) -> bool:
    """Return whether variables of the pods may contain a token."""
    fields = getattr(spec.block, "spec", None)
    return "HF_TOKEN" in getattr(fields, "env", {}) or bool(getattr(fields, "env_from", ()))
