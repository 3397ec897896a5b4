"""The patches of a repository: change the objects of apps, in manifests and charts alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from kaigen.compile.app import App, Object, Place
from kaigen.compile.expressions import Scope, find_settings, resolve
from kaigen.compile.pod_edits import follow_runs
from kaigen.config.block_settings import ObjectPatch
from kaigen.config.settings import FILE_NAME
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend import process
from kaigen.extend.patch_wire import Patched, PatchRequest, Sender
from kaigen.extend.pointer import brief, same, thaw
from kaigen.extend.wire import LIMIT, encode

if TYPE_CHECKING:
    from kaigen.yaml.document import Document


class PatchMarks(Struct, frozen=True):
    """Returns the mark of a path in a patch or its target.

    Attributes:
        document: reads the document that contains the patch; None where it can no longer be read.
        start: path of the patch in that document.
        file: name of the document's file.
    """

    document: Callable[[], Document | None]
    start: FieldPath
    file: str

    def __call__(self, path: FieldPath = (), *, key: bool = False) -> Mark:
        """Return the mark of a value, or of its key; only the file where the document can no longer be read."""
        document = self.document()
        return document.mark((*self.start, *path), key=key) if document else Mark(self.file)


class Patch(Struct, frozen=True):
    """One patch.

    Attributes:
        index: its number in the configuration.
        target: the entry of kaigen.yaml, which names the objects.
        content: a list of operations, or a mapping to merge.
        marks: marks in the patch.
        target_marks: marks in its target.
        encoded: the content for the process of patches.
    """

    index: int
    target: ObjectPatch
    content: Sequence[Mapping[str, Any]] | Mapping[str, Any]
    marks: PatchMarks
    target_marks: PatchMarks
    encoded: bytes

    @property
    def token(self) -> str:
        """A text that identifies the patch in the records of what matched."""
        return f"patch:{self.index}"

    @property
    def has_wildcard(self) -> bool:
        """Whether the target's app is a pattern, not a name."""
        return "*" in self.target.app or "?" in self.target.app

    def matches_app(self, namespace: str, name: str) -> bool:
        """Return whether the patch targets an app."""
        pattern = self.target.app
        return fnmatchcase(f"{namespace}/{name}" if "/" in pattern else name, pattern)

    def matches_object(self, item: Object, name: str) -> bool:
        """Return whether the patch targets an object of an app that it matches."""
        pattern = self.target.name
        if item.test and not (pattern or "").startswith("tests/"):
            return False
        if self.target.kind not in (None, item.kind):
            return False
        return pattern is None or fnmatchcase(name, pattern) or fnmatchcase(item.role, pattern)


_IDENTITY: tuple[FieldPath, ...] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


def _patch_app(app: App, patch: Patch, diagnostics: Diagnostics, stopped: dict[str, Diagnostic]) -> tuple[App, bool]:
    """Return an app with one patch applied, and whether the patch matched an object.

    Args:
        app: an app that the patch's target matches.
        patch: the patch.
        diagnostics: collects problems.
        stopped: what stopped patches in this run, by their tokens.
    """
    scope = Scope(app.name, app.namespace, app.default_values())
    names = [(item.kind, str(resolve(item.name, scope))) for item in app.objects]
    matching = [number for number, item in enumerate(app.objects) if patch.matches_object(item, names[number][1])]
    if not matching:
        if not patch.has_wildcard:
            diagnostics.add(_no_object(app, patch, names))
        return app, False
    objects = list(app.objects)
    answers = _answers([objects[number] for number in matching], patch, scope, diagnostics, stopped)
    for number, answer in zip(matching, answers, strict=False):
        kind, name = names[number]
        title = f"{kind} `{name}`"
        objects[number] = _patched_object(objects[number], answer, title, patch, scope, diagnostics)
    objects = follow_runs(app.objects, objects)
    used = {
        setting.path for item in objects for setting in (*([item.when] if item.when else []), *find_settings(item.body))
    }
    removed = [setting.path for setting in app.settings if setting.path not in used]
    if removed:
        diagnostics.add(_removed_settings(app, patch, removed))
    kept = tuple(setting for setting in app.settings if setting.path in used)
    return replace(app, objects=tuple(objects), settings=kept), True


def _answers(
    objects: Sequence[Object], patch: Patch, scope: Scope, diagnostics: Diagnostics, stopped: dict[str, Diagnostic]
) -> list[Patched]:
    """Return what the process of patches makes of objects; nothing after reporting that it reached a limit."""
    if patch.token in stopped:
        # Each app would take as long again.
        diagnostics.add(stopped[patch.token])
        return []
    sender = Sender(scope)
    try:
        bodies = [sender.frozen(item.body) for item in objects]
        answer = process.ask(process.PATCHES, encode(PatchRequest(bodies, Raw(patch.encoded))))
        found = sender.read(answer)
        if len(found) != len(objects):
            raise ValueError(f"{len(found)} objects in place of {len(objects)}")
    except process.Stopped as error:
        stopped[patch.token] = _stopped(patch, error)
    except ValueError as error:
        process.forget(process.PATCHES)
        stopped[patch.token] = _stopped(patch, process.unreadable(error))
    else:
        return found
    diagnostics.add(stopped[patch.token])
    return []


def _stopped(patch: Patch, error: process.Stopped) -> Diagnostic:
    path = (error.place,) if isinstance(patch.content, list) and error.place < len(patch.content) else ()
    return Diagnostic(LIMIT, f"the patch {error.message}", patch.marks(path), error.hint)


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
    hint = did_you_mean(pattern or "", [*names, *roles]) or "names: " + ", ".join(f"`{name}`" for name in names)
    message = f"app `{app.name}` has no {kind or 'object'} `{pattern}`"
    return Diagnostic("KG1021", message, patch.target_marks(("name",)), hint)


def _patched_object(
    item: Object, answer: Patched, title: str, patch: Patch, scope: Scope, diagnostics: Diagnostics
) -> Object:
    """Return an object after a patch, or the object itself after reporting why the patch does not apply."""
    if answer.failure is not None:
        failure = answer.failure
        mark = patch.marks(failure.origin)
        diagnostics.add(Diagnostic("KG1022", f"{title}: {failure.message}", mark, failure.hint))
        return item
    body = answer.body
    before, after = _identity(thaw(item.body), scope), _identity(body, scope)
    for path, origin in answer.absent:
        message = f"{title} has no {_removed(path, origin, patch)} to remove"
        mark = patch.marks(origin, key=True)
        diagnostics.add(Diagnostic("KG1022", message, mark, severity=Severity.WARNING))
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
    # An unchanged name keeps its expression.
    body["metadata"]["name"] = item.body["metadata"]["name"]  # type: ignore[index, call-overload]
    marks = tuple((path, patch.marks(origin)) for path, origin in answer.written)
    return replace(item, body=body, place=_with_marks(marks, item.place))


def _removed(path: FieldPath, origin: FieldPath, patch: Patch) -> str:
    """Return what a merge patch removes, as messages show it."""
    if not path or not isinstance(path[-1], int):
        return f"`{'.'.join(map(str, path))}`"
    entry: Any = patch.content
    for step in origin:
        entry = entry[step]
    key = next(key for key in entry if not key.startswith("$"))
    return f"`{key}: {entry[key]}` in `{'.'.join(map(str, path[:-1]))}`"


def _identity(body: Any, scope: Scope) -> dict[FieldPath, Any]:
    """Return the values of the fields by which other objects refer to an object."""
    values = {}
    for path in _IDENTITY:
        node = body
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        values[path] = resolve(node, scope)
    return values


def _with_marks(marks: tuple[tuple[FieldPath, Mark], ...], before: Place | None) -> Place:
    """Return a lookup of marks in which those of a patch come before the object's own."""

    def place(path: FieldPath) -> Mark | None:
        for changed, mark in reversed(marks):
            if path[: len(changed)] == changed:
                return mark
        return before(path) if before else None

    return place


class Patches(Struct, frozen=True):
    """Every patch of a run.

    Attributes:
        valid: the patches that can be applied, in order.
        diagnostics: errors of the others.
        stopped: what stopped patches in this run, by their tokens.
    """

    valid: tuple[Patch, ...]
    diagnostics: tuple[Diagnostic, ...]
    stopped: dict[str, Diagnostic] = field(default_factory=dict)

    def apply(self, app: App, diagnostics: Diagnostics) -> tuple[App, tuple[str, ...]]:
        """Return an app with its patches applied, and the tokens of the patches that matched an object.

        Args:
            app: the compiled app.
            diagnostics: collects problems.
        """
        matched = []
        for patch in self.valid:
            if patch.matches_app(app.namespace, app.name):
                app, changed = _patch_app(app, patch, diagnostics, self.stopped)
                if changed:
                    matched.append(patch.token)
        return app, tuple(matched)

    def unmatched(
        self, matched: AbstractSet[object], apps: Iterable[tuple[str, str]], *, partial: bool
    ) -> list[Diagnostic]:
        """Return an error for each patch that matched no object.

        Args:
            matched: tokens of the patches that did.
            apps: namespace and name of every app.
            partial: not every app was compiled.
        """
        every = sorted(set(apps))
        errors = []
        for patch in self.valid:
            if patch.token in matched:
                continue
            pattern = patch.target.app
            matching = [name for namespace, name in every if patch.matches_app(namespace, name)]
            if not matching:
                names = [f"{namespace}/{name}" if "/" in pattern else name for namespace, name in every]
                hint = did_you_mean(pattern, names) or f"apps: {', '.join(names) or 'none'}"
                mark = patch.target_marks(("app",))
                errors.append(Diagnostic("KG1021", f"no app matches `{pattern}`", mark, hint))
            elif not partial and len(matching) > 1 and patch.has_wildcard:
                errors.append(
                    Diagnostic(
                        "KG1021",
                        f"none of the {len(matching)} apps that match `{pattern}` has {_description(patch.target)}",
                        patch.target_marks(("name",) if patch.target.name is not None else ("kind",)),
                        "run `kaigen render --stdout` to list the objects",
                    )
                )
        return errors


def _description(target: ObjectPatch) -> str:
    kind = target.kind or "object"
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    return f"{article} {kind}" + (f" named `{target.name}`" if target.name is not None else "")
