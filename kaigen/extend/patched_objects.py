"""Apply one patch to the objects of an app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kaigen.compile.app import App, Object, Place
from kaigen.compile.expressions import Scope, SpecPath, find_settings, resolve
from kaigen.compile.pod_edits import follow_runs
from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.merge import Merge, MergeFailed
from kaigen.extend.patch_target import Patch
from kaigen.extend.pointer import OperationFailed, apply, brief, closed, same, thaw

_IDENTITY: tuple[SpecPath, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


def patch_app(app: App, patch: Patch, diagnostics: Diagnostics) -> tuple[App, bool]:
    """Return an app with one patch applied, and whether the patch matched an object.

    Args:
        app: an app that the patch's target matches.
        patch: the patch.
        diagnostics: collects problems.
    """
    scope = Scope(app.name, app.namespace, app.default_values())
    objects: list[Object] = []
    names: list[tuple[str, str]] = []
    matched = False
    for item in app.objects:
        metadata: Any = item.body["metadata"]
        name = str(resolve(metadata["name"], scope))
        names.append((item.kind, name))
        if not patch.matches_object(item, name):
            objects.append(item)
            continue
        matched = True
        objects.append(_patched_object(item, name, patch, scope, diagnostics))
    if not matched:
        if not patch.has_wildcard:
            diagnostics.add(_no_object(app, patch, names))
        return app, False
    objects = follow_runs(app.objects, objects)
    used = {
        setting.path
        for item in objects
        for setting in (*([item.when] if item.when else []), *find_settings(item.body))
    }
    removed = [setting.path for setting in app.settings if setting.path not in used]
    if removed:
        diagnostics.add(_removed_settings(app, patch, removed))
    kept = tuple(setting for setting in app.settings if setting.path in used)
    return replace(app, objects=tuple(objects), settings=kept), True


def _removed_settings(app: App, patch: Patch, paths: Sequence[str]) -> Diagnostic:
    listed = ", ".join(f"`{path}`" for path in paths)
    if len(paths) == 1:
        message = f"the patch replaces the setting {listed} of `{app.name}` with a plain value"
    else:
        message = f"the patch replaces the settings {listed} of `{app.name}` with plain values"
    hint = f"set `values` in {FILE_NAME} instead, to keep the chart's setting"
    return Diagnostic("KG1024", message, patch.marks(), hint, Severity.WARNING)


def _no_object(app: App, patch: Patch, objects: Sequence[tuple[str, str]]) -> Diagnostic:
    kind, pattern = patch.target.kind, patch.target.name
    kinds = sorted({each for each, _ in objects})
    if kind is not None and kind not in kinds:
        hint = did_you_mean(kind, kinds) or "kinds in the app: " + ", ".join(kinds)
        return Diagnostic("KG1021", f"app `{app.name}` has no {kind}", patch.target_marks(("kind",)), hint)
    names = [name for each, name in objects if kind in (None, each)]
    roles = [item.role for item in app.objects if kind in (None, item.kind) and not item.test]
    hint = did_you_mean(pattern or "", [*names, *roles]) or "names: " + ", ".join(
        f"`{name}`" for name in names
    )
    message = f"app `{app.name}` has no {kind or 'object'} `{pattern}`"
    return Diagnostic("KG1021", message, patch.target_marks(("name",)), hint)


def _patched_object(item: Object, name: str, patch: Patch, scope: Scope, diagnostics: Diagnostics) -> Object:
    body: Any = thaw(item.body)
    before = _identity(body, scope)
    marks: list[tuple[SpecPath, Mark]] = []
    title = f"{item.kind} `{name}`"
    if isinstance(patch.content, Mapping):
        merge = Merge(scope)
        try:
            body = merge.apply(body, patch.content)
        except MergeFailed as error:
            mark = patch.marks(error.path)
            diagnostics.add(Diagnostic("KG1022", f"{title}: {error}", mark, error.hint))
            return item
        for path, origin in merge.absent:
            message = f"{title} has no {_removed(path, origin, patch)} to remove"
            mark = patch.marks(origin, key=True)
            diagnostics.add(Diagnostic("KG1022", message, mark, severity=Severity.WARNING))
        marks += [(path, patch.marks(origin)) for path, origin in merge.written]
    else:
        for index, operation in enumerate(patch.content):
            try:
                body, changed = apply(body, operation, scope)
            except OperationFailed as error:
                mark = patch.marks((index, error.member))
                diagnostics.add(Diagnostic("KG1022", f"{title}: {error}", mark, error.hint))
                return item
            if changed:
                marks.append((changed, patch.marks((index,))))
    after = _identity(body, scope)
    for path in _IDENTITY:
        if not same(before[path], after[path]):
            field = ".".join(map(str, path))
            diagnostics.add(
                Diagnostic(
                    "KG1023",
                    f"{title}: a patch cannot change `{field}`, from {brief(before[path])} to {brief(after[path])}",
                    patch.marks(),
                    "add an object of your own instead: other objects refer to this one",
                )
            )
            return item
    body = closed(body)
    # An unchanged name keeps its expression.
    body["metadata"]["name"] = item.body["metadata"]["name"]  # type: ignore[index, call-overload]
    return replace(item, body=body, place=_with_marks(tuple(marks), item.place))


def _removed(path: SpecPath, origin: SpecPath, patch: Patch) -> str:
    """Return what a merge patch removes, as messages show it."""
    if not isinstance(path[-1], int):
        return f"`{'.'.join(map(str, path))}`"
    entry: Any = patch.content
    for step in origin:
        entry = entry[step]
    key = next(key for key in entry if not key.startswith("$"))
    return f"`{key}: {entry[key]}` in `{'.'.join(map(str, path[:-1]))}`"


def _identity(body: Any, scope: Scope) -> dict[SpecPath, Any]:
    """Return the values of the fields by which other objects refer to an object."""
    values = {}
    for path in _IDENTITY:
        node = body
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        values[path] = resolve(node, scope)
    return values


def _with_marks(marks: tuple[tuple[SpecPath, Mark], ...], before: Place | None) -> Place:
    """Return a lookup of marks in which those of a patch come before the object's own."""

    def place(path: SpecPath) -> Mark | None:
        for changed, mark in reversed(marks):
            if path[: len(changed)] == changed:
                return mark
        return before(path) if before else None

    return place
