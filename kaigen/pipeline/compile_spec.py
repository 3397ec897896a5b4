"""The app of one spec: compiled, patched, its settings laid over it, its objects checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kaigen.diagnostics.category import Category
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark, Severity
from kaigen.pipeline.origins import spec_path
from kaigen.pipeline.result import Compiled

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.compile.context import Context, SpecIndex
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides
    from kaigen.diagnostics.problem import Problem
    from kaigen.kinds.spec import Spec


def make_context(config: Config, specs: SpecIndex) -> Context:
    """What specs are compiled for, by a repository's settings."""
    from kaigen.catalog.images import default_images
    from kaigen.catalog.profiles import get_profile
    from kaigen.compile.context import Context

    patches = None
    if config.patches:
        from kaigen.extend.patch_files import read_patches

        patches = read_patches(config)
    return Context(
        profile=get_profile(config.profile),
        namespace=config.namespace,
        target=config.kubernetes,
        images=config.images or default_images(),
        specs=specs,
        patches=patches,
    )


def compile_spec(
    spec: Spec, context: Context, layers: Sequence[Overrides], found: Diagnostics
) -> Compiled | None:
    """The app of one spec with its objects, checked; None when it cannot be made.

    Args:
        spec: the spec.
        context: what it is compiled for.
        layers: settings to override, by app.
        found: takes what is wrong, and what is worth a warning.
    """
    app = _compile(spec, context, found)
    if app is None:
        return None
    patched: tuple[str, ...] = ()
    if context.patches is not None:
        found.extend(context.patches.diagnostics)
        app, patched = context.patches.apply(app, found)
    return replace(_finish(app, spec, layers, context.target, found), patched=patched)


def _compile(spec: Spec, context: Context, found: Diagnostics) -> App | None:
    from kaigen.compile.problems import Problems

    problems = Problems()
    naming = () if spec.naming is None else (spec.naming,)
    app: App | None = spec.target.compiler()(spec.block, context, problems, *naming)
    for problem in problems.items:
        warning = problem.severity is not Severity.ERROR
        found.add(spec.diagnostic(problem.code, problem.message, problem.path, problem.hint, warning=warning))
    found.extend(problems.diagnostics)
    if app is None or problems.failed:
        return None
    kind = f"{spec.entry.kind} of {spec.entry.api_version}" if spec.lowered else spec.block.kind
    return replace(app, source=spec.source, kind=kind)


def _finish(app: App, spec: Spec, layers: Sequence[Overrides], target: str, found: Diagnostics) -> Compiled:
    values = app.default_values()
    if any(name in layer for layer in layers for name in (app.name, f"{app.namespace}/{app.name}")):
        from kaigen.emit.values import check_values, effective_values

        values = effective_values(app, layers)
        wrong = check_values(app, values, layers)
        found.extend(wrong)
        if wrong:
            values = app.default_values()
    objects = app.render(values)
    for item, finding in _findings(objects, target, app):
        path = spec_path(item, finding.path, spec.document.data)
        written = item.object.place(finding.path) if item.object.place else None
        if written is not None:
            found.add(_placed_finding(item, finding, written, spec, path))
            continue
        if path and finding.category is Category.CREDENTIAL and _leaks(spec):
            continue
        name = (
            f" {item.body['metadata']['name']}{f' at {finding.where}' * bool(finding.where)}"
            if not path
            else ""
        )
        found.add(
            spec.diagnostic(
                finding.code,
                f"{item.body['kind']}{name}: {finding.message}",
                path or ("metadata", "name"),
                finding.hint,
                warning=finding.severity is not Severity.ERROR,
                key=finding.category is Category.UNKNOWN_FIELD and path[-1:] == finding.path[-1:],
            )
        )
    return Compiled(app, values, objects, spec)


def _placed_finding(
    item: Rendered, finding: Problem, written: Mark, spec: Spec, path: tuple[str | int, ...]
) -> Diagnostic:
    """A finding about what a user's template or patch wrote: told there, with the place in the spec."""
    name = item.body["metadata"]["name"]
    origin = spec.document.mark(spec.document_path(path or ("metadata", "name")))
    hint = f"{finding.hint}; " if finding.hint else ""
    return Diagnostic(
        finding.code,
        f"{item.body['kind']} {name} at {finding.where}: {finding.message}",
        written,
        f"{hint}it is made for {origin}",
        finding.severity,
    )


def _findings(objects: Sequence[Rendered], target: str, app: App) -> Iterable[tuple[Rendered, Problem]]:
    from kaigen.check import check_object, check_policy, check_references

    for item in objects:
        for finding in check_object(item.body, target=target):
            yield item, finding
        for finding in check_policy(item.body, pod_security=app.pod_security):
            yield item, finding
    for index, finding in check_references(
        [item.body for item in objects], external=_Elsewhere(app.external_objects)
    ):
        yield objects[index], finding


class _Elsewhere:
    """What an app may refer to without making it: volumes of other apps, what users keep in ConfigMaps, and what it
    says itself."""

    def __init__(self, named: Collection[tuple[str, str]]) -> None:
        self._named = named

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, tuple):
            return False
        kind, _, name = identity
        return kind in {"PersistentVolumeClaim", "ConfigMap"} or (kind, name) in self._named


def _leaks(spec: Spec) -> bool:
    """Whether loading has found a credential in the spec's document, and told it with its line."""
    from kaigen.yaml.document_secrets import find_secrets

    return any(find_secrets(spec.document))  # type: ignore[arg-type]
