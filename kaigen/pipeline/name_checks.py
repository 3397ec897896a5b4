"""Checks of the names of all apps of a run: those that clash, and overrides and references without a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.pipeline.summary import FOLDER, AppSummary, Missing, ObjectKey
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.core.json_types import FieldPath
    from kaigen.pipeline.compiler import Compiler
    from kaigen.pipeline.unit import RunApp, Unit

with lazy_imports():
    from kaigen.compile.builders import bucket_access
    from kaigen.compile.model import mounted
    from kaigen.emit import values
    from kaigen.environments import unmatched as environments_unmatched
    from kaigen.kinds import job as kinds_job
    from kaigen.kinds import model as kinds_model

AppKey = tuple[str, str]
"""Namespace and name of an app."""


def duplicate_names(units: Sequence[Unit]) -> tuple[list[Diagnostic], set[tuple[Unit, int]]]:
    """Return an error for each spec whose name another has, whatever its kind, and these specs by position."""
    first: dict[AppKey, tuple[Unit, int]] = {}
    found: list[Diagnostic] = []
    duplicates: set[tuple[Unit, int]] = set()
    for unit in units:
        for position, (_, namespace, name) in enumerate(unit.defines):
            owner, other = first.setdefault((namespace, name), (unit, position))
            if (owner, other) == (unit, position):
                continue
            duplicates.add((unit, position))
            spec = owner.loaded.specs[other]
            mark = spec.document.mark(("metadata", "name"))
            found.append(
                unit.loaded.specs[position].diagnostic(
                    "KG0302",
                    f"`{name}` is the name of another app of this namespace, a {spec.block.kind} at {mark}",
                    ("metadata", "name"),
                    "rename one of them, or move it to another namespace",
                )
            )
    return found, duplicates


def unknown_overrides(compiler: Compiler, apps: Collection[AppKey]) -> list[Diagnostic]:
    """Return an error for each overridden setting of an app that does not exist."""
    if not compiler.overrides:
        return []
    return values.unknown_names(apps, compiler.overrides)


def unmatched_overrides(
    compiler: Compiler, matched: Collection[int | str], apps: Sequence[AppKey], *, partial: bool
) -> Iterator[Diagnostic]:
    """Return the problems of overrides, pins and patches that apply to no app.

    Args:
        compiler: with the settings of the run.
        matched: those that apply to an app.
        apps: namespace and name of every app.
        partial: only some of the apps were compiled.
    """
    config = compiler.config
    if config.overrides or config.pins:
        yield from environments_unmatched.warn_of_unmatched(config, matched, set(apps))
    if config.patches:
        yield from compiler.patches.unmatched(set(matched), apps, partial=partial or bool(compiler.absent))
    if (config.apps.include or config.apps.exclude) and not config.passthrough:
        yield from environments_unmatched.unknown_apps(config, set(apps))


def missing_objects(missing: Iterable[Missing], apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning for each reference to an object that no app makes."""
    made = {
        (key.kind, namespace, key.name)
        for app in apps
        for key in app.objects
        for namespace in ("", key.namespace or app.namespace)
    }
    for item in missing:
        if (item.kind, item.namespace, item.name) not in made:
            yield item.diagnostic


def clashes(apps: Sequence[RunApp]) -> Iterator[Diagnostic]:
    """Return an error for each app whose name or object another app has already."""
    names: dict[AppKey, RunApp] = {}
    owners: dict[ObjectKey, AppSummary] = {}
    for unit, app in apps:
        first_unit, first = names.setdefault(app.key, (unit, app))
        if first is not app:
            yield _same_name(unit, app, first_unit, first)
    for unit, app in apps:
        own: set[ObjectKey] = set()
        for key in app.objects:
            owner = owners.setdefault(key, app)
            if owner is not app:
                yield _same_object(key, unit, app, owner)
            elif app.position < 0 and key in own and key.kind != FOLDER:
                yield _twice(key, unit, app)
            own.add(key)


def _twice(key: ObjectKey, unit: Unit | None, app: AppSummary) -> Diagnostic:
    """Return the error for a file with two plain objects of one name; of specs, the check of the app reports it."""
    message = f"{key.kind} `{key.name}` is twice in this file"
    mark = Mark(app.source)
    for document in unit.loaded.plain if unit is not None else ():
        if (document.kind, document.name) == (key.kind, key.name):
            mark = document.mark(("metadata", "name"))
    return Diagnostic("KG0573", message, mark, "remove one of them, or rename it")


def _same_name(unit: Unit | None, app: AppSummary, first_unit: Unit | None, first: AppSummary) -> Diagnostic:
    if unit is None and first_unit is not None:
        message = f"`{app.name}` is the name of the app with the ExternalSecrets of a namespace"
        return first_unit.diagnostic(first, "KG0302", message, ("metadata", "name"), "choose another name for this app")
    message = f"the app of this file is `{app.name}`, and so is the app of {first.source}"
    mark = unit.loaded.plain[0].mark(()) if unit is not None and unit.loaded.plain else Mark(app.source)
    return Diagnostic("KG0302", message, mark, "rename one of the files")


def _bucket_field(folder: str, unit: Unit | None, app: AppSummary) -> FieldPath:
    """Return the field of a spec with a folder of a bucket: of a Job's output, or a Model's files."""
    block = unit.loaded.specs[app.position].block if unit is not None and app.position >= 0 else None
    if isinstance(block, kinds_job.Job):
        return ("spec", "output", "bucket", "uri")
    convert = mounted.conversion(block.spec) if isinstance(block, kinds_model.Model) else None
    own = convert.store.bucket if convert is not None and convert.store is not None else None
    if own is not None and bucket_access.location(own) == folder:
        return ("spec", "convert", "distributedLlama", "store", "bucket", "uri")
    return ("spec", "store", "bucket", "uri")


def _same_object(key: ObjectKey, unit: Unit | None, app: AppSummary, owner: AppSummary) -> Diagnostic:
    """Return the error for an app that creates, or fills, what another one does."""
    field: FieldPath = ("metadata", "name")
    code, message = "KG0302", f"{key.kind} `{key.name}` belongs to app `{owner.name}` too"
    hint = "rename one of the two apps"
    if key.kind == FOLDER:
        code, field = "KG0318", _bucket_field(key.name, unit, app)
        message = f"app `{owner.name}` in namespace `{owner.namespace}` is stored at {key.name} too"
        hint = "choose another prefix for this one"
    if unit is None:
        return Diagnostic(code, message, Mark(app.source), hint)
    return unit.diagnostic(app, code, message, field, hint)
