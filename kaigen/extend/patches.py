"""Patches of the user's over the objects of apps: both forms have them, and a patch that no longer fits is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App, Object, Place
from kaigen.compile.expressions import Expr, Scope, SpecPath, find_settings, resolve
from kaigen.compile.field_expressions import HashedName, Labels
from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.pointer import Fails, apply, brief, merge, same, steps, thaw

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.yaml.document import Document

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "add": ("path", "value"),
    "copy": ("from", "path"),
    "move": ("from", "path"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "test": ("path", "value"),
}
_IDENTITY: tuple[SpecPath, ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


class PlaceOf:
    """Gives the place of a path in a patch, or of the key at its end."""

    def __init__(self, document: Callable[[], Document | None], start: SpecPath, file: str) -> None:
        self._document = document
        self._start = start
        self._file = file

    def __call__(self, path: SpecPath = (), *, key: bool = False) -> Mark:
        """The place; the file alone when it is another by now."""
        document = self._document()
        return document.mark((*self._start, *path), key=key) if document else Mark(self._file)


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch.

    Attributes:
        index: its number in the configuration.
        target: which objects are meant: `app`, and perhaps `kind` and `name`.
        content: a list of operations, or a mapping to merge.
        place: where its parts stand.
        at: where its target stands.
    """

    index: int
    target: Mapping[str, str]
    content: Sequence[Mapping[str, Any]] | Mapping[str, Any]
    place: PlaceOf
    at: PlaceOf

    @property
    def token(self) -> str:
        """What tells it among all that can match."""
        return f"patch:{self.index}"

    def means(self, namespace: str, name: str) -> bool:
        """Whether it is for the app of that name."""
        wanted = self.target["app"]
        return fnmatchcase(f"{namespace}/{name}" if "/" in wanted else name, wanted)

    def fits(self, item: Object, name: str) -> bool:
        """Whether an object is meant."""
        wanted = self.target.get("name")
        if item.test and not (wanted or "").startswith("tests/"):
            return False
        if self.target.get("kind", item.kind) != item.kind:
            return False
        return wanted is None or fnmatchcase(name, wanted) or fnmatchcase(item.role, wanted)


@dataclass(frozen=True, slots=True)
class Patches:
    """Every patch of a run.

    Attributes:
        every: those that are right.
        diagnostics: what is wrong with the others.
    """

    every: tuple[Patch, ...]
    diagnostics: tuple[Diagnostic, ...]

    def apply(self, app: App, found: Diagnostics) -> tuple[App, tuple[str, ...]]:
        """An app with the patches that are for it, and the tokens of those that changed an object.

        Args:
            app: what the compiler made.
            found: takes what is wrong.
        """
        matched = []
        for patch in self.every:
            if patch.means(app.namespace, app.name):
                app, changed = _patched(app, patch, found)
                if changed:
                    matched.append(patch.token)
        return app, tuple(matched)

    def unmatched(
        self, matched: set[Any], apps: Iterable[tuple[str, str]], *, partial: bool
    ) -> list[Diagnostic]:
        """Patches that changed nothing.

        Args:
            matched: tokens of those that did.
            apps: namespace and name of every app.
            partial: not every app was compiled.
        """
        every = sorted(set(apps))
        found = []
        for patch in self.every:
            if patch.token in matched:
                continue
            wanted = patch.target["app"]
            meant = [name for namespace, name in every if patch.means(namespace, name)]
            if not meant:
                names = [f"{namespace}/{name}" if "/" in wanted else name for namespace, name in every]
                hint = did_you_mean(wanted, names) or f"apps: {', '.join(names) or 'none'}"
                found.append(Diagnostic("KG1021", f"no app `{wanted}` to patch", patch.at(("app",)), hint))
            elif not partial and len(meant) > 1 and not _is_name(wanted):
                found.append(
                    Diagnostic(
                        "KG1021",
                        f"none of the {len(meant)} apps that `{wanted}` means has {_described(patch.target)}",
                        patch.at(("name",) if "name" in patch.target else ("kind",)),
                        "see `kaigen render --stdout` for the objects that there are",
                    )
                )
        return found


def _is_name(wanted: str) -> bool:
    return "*" not in wanted and "?" not in wanted


def _described(target: Mapping[str, str]) -> str:
    kind = target.get("kind", "object")
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    return f"{article} {kind}" + (f" named `{target['name']}`" if "name" in target else "")


def read_patches(config: Config) -> Patches:
    """The patches of a configuration."""
    found = Diagnostics()
    every = []

    @cache
    def main() -> Document | None:
        return _document(config.root / FILE_NAME, config.root, Diagnostics())

    for index, raw in enumerate(config.patches):
        start = tuple(raw["at"])
        at = PlaceOf(main, (*start, "target"), FILE_NAME)
        content = raw["patch"]
        place = PlaceOf(main, (*start, "patch"), FILE_NAME)
        if isinstance(content, str):
            own = Diagnostics()
            document = _document(config.root / content, config.root, own)
            if document is None:
                problem = next(iter(own), None)
                known = problem and problem.mark and problem.mark.line
                found.extend(own if known else ())
                if not known:
                    reason = problem.message if problem else "holds no document"
                    hint = problem.hint if problem else ""
                    found.add(Diagnostic("KG1020", f"the patch `{content}`: {reason}", place(), hint))
                continue
            content = document.data

            def read(document: Document = document) -> Document | None:
                return document

            place = PlaceOf(read, (), content if isinstance(content, str) else document.source.path)
        wrong = list(_problems(content, place))
        found.extend(wrong)
        if not wrong:
            every.append(Patch(index, raw["target"], content, place, at))
    return Patches(tuple(every), tuple(found.sorted()))


def _document(path: Path, root: Path, found: Diagnostics) -> Document | None:
    from kaigen.yaml.document import parse
    from kaigen.yaml.sources import read_sources

    sources, problems = read_sources([str(path)], root=root)
    found.extend(problems)
    documents = [document for source in sources for document in parse(source, found)]
    if len(documents) > 1:
        found.add(
            Diagnostic("KG1020", "a patch is one document", documents[1].mark(()), "write a file for each")
        )
    return documents[0] if documents and not found.has_errors else None


def _problems(content: Any, place: PlaceOf) -> Iterable[Diagnostic]:
    if isinstance(content, dict):
        if not content:
            yield Diagnostic("KG1020", "this patch changes nothing", place())
        return
    if not isinstance(content, list):
        hint = "a list of operations (RFC 6902), or a mapping to merge (RFC 7396)"
        yield Diagnostic("KG1020", "this is no patch", place(), hint)
        return
    for index, operation in enumerate(content):
        if not isinstance(operation, dict):
            yield Diagnostic(
                "KG1020", "an operation is a mapping", place((index,)), "for example `op: remove`"
            )
            continue
        name = operation.get("op")
        if not isinstance(name, str) or name not in _MEMBERS:
            known = ", ".join(f"`{each}`" for each in _MEMBERS)
            text = "an operation needs `op`" if name is None else f"there is no operation `{name}`"
            hint = did_you_mean(str(name), _MEMBERS) or f"operations: {known}"
            yield Diagnostic("KG1020", text, place((index, "op")), hint)
            continue
        wanted = ("op", *_MEMBERS[name])
        for member in wanted:
            if member not in operation:
                yield Diagnostic("KG1020", f"`{name}` needs `{member}`", place((index, "op")))
        for member in operation:
            if member not in wanted:
                hint = did_you_mean(member, wanted) or "it has " + ", ".join(f"`{each}`" for each in wanted)
                yield Diagnostic(
                    "KG1020", f"`{name}` has no `{member}`", place((index, member), key=True), hint
                )
        for member in ("path", "from"):
            pointer = operation.get(member)
            if member in wanted and pointer is not None:
                reason = "it must be text" if not isinstance(pointer, str) else _pointer_problem(pointer)
                if reason:
                    hint = "for example `/spec/template/spec/containers/0/image`"
                    yield Diagnostic("KG1020", f"no JSON pointer: {reason}", place((index, member)), hint)


def _pointer_problem(pointer: str) -> str:
    try:
        steps(pointer)
    except ValueError as error:
        return str(error)
    return ""


def _patched(app: App, patch: Patch, found: Diagnostics) -> tuple[App, bool]:
    scope = Scope(app.name, app.namespace, app.default_values())
    objects: list[Object] = []
    names: list[tuple[str, str]] = []
    renamed: dict[str, HashedName] = {}
    matched = False
    for item in app.objects:
        metadata: Any = item.body["metadata"]
        name = str(resolve(metadata["name"], scope))
        names.append((item.kind, name))
        if not patch.fits(item, name):
            objects.append(item)
            continue
        matched = True
        changed = _patched_object(item, name, patch, scope, found)
        hashed = item.hashed
        if hashed is not None and hashed.spec is item.body.get("spec"):
            renamed[hashed.helper] = replace(hashed, spec=changed.body["spec"])  # type: ignore[arg-type]
        objects.append(changed)
    if not matched:
        if _is_name(patch.target["app"]):
            found.add(_no_object(app, patch, names))
        return app, False
    objects = [replace(item, body=_renamed(item.body, renamed)) if renamed else item for item in objects]
    used = {
        setting.path
        for item in objects
        for setting in (*([item.when] if item.when else []), *find_settings(item.body))
    }
    gone = [setting.path for setting in app.settings if setting.path not in used]
    if gone:
        listed = ", ".join(f"`{path}`" for path in gone)
        text = (
            f"{listed} is no setting of `{app.name}` any more"
            if len(gone) == 1
            else (f"{listed} are no settings of `{app.name}` any more")
        )
        found.add(
            Diagnostic(
                "KG1024",
                f"{text}: the patch puts plain values in their place"
                if len(gone) > 1
                else (f"{text}: the patch puts a plain value in its place"),
                patch.place(),
                f"override it with `values` in {FILE_NAME} instead, where a setting is enough",
                Severity.WARNING,
            )
        )
    kept = tuple(setting for setting in app.settings if setting.path in used)
    return replace(app, objects=tuple(objects), settings=kept), True


def _no_object(app: App, patch: Patch, names: Sequence[tuple[str, str]]) -> Diagnostic:
    kind, wanted = patch.target.get("kind"), patch.target.get("name")
    kinds = sorted({each for each, _ in names})
    if kind is not None and kind not in kinds:
        hint = did_you_mean(kind, kinds) or "it has " + ", ".join(kinds)
        return Diagnostic("KG1021", f"app `{app.name}` has no {kind}", patch.at(("kind",)), hint)
    there = [name for each, name in names if kind in (None, each)]
    roles = [item.role for item in app.objects if kind in (None, item.kind) and not item.test]
    hint = did_you_mean(wanted or "", [*there, *roles]) or "there are " + ", ".join(
        f"`{name}`" for name in there
    )
    return Diagnostic(
        "KG1021", f"app `{app.name}` has no {kind or 'object'} `{wanted}`", patch.at(("name",)), hint
    )


def _patched_object(item: Object, name: str, patch: Patch, scope: Scope, found: Diagnostics) -> Object:
    body: Any = thaw(item.body)
    before = _identity(body, scope)
    marks: list[tuple[SpecPath, Mark]] = []
    whose = f"{item.kind} `{name}`"
    if isinstance(patch.content, Mapping):
        missed: list[SpecPath] = []
        body = merge(body, patch.content, scope, missed=missed)
        for path in missed:
            text = f"{whose}: there is no `{'.'.join(map(str, path))}` to take away"
            found.add(Diagnostic("KG1022", text, patch.place(path, key=True), severity=Severity.WARNING))
        marks += [(path, patch.place(path)) for path in _leaves(patch.content, ())]
    else:
        for index, operation in enumerate(patch.content):
            try:
                body, changed = apply(body, operation, scope)
            except Fails as error:
                mark = patch.place((index, error.member))
                found.add(Diagnostic("KG1022", f"{whose}: {error}", mark, error.hint))
                return item
            if changed:
                marks.append((changed, patch.place((index,))))
    after = _identity(body, scope)
    for path in _IDENTITY:
        if not same(before[path], after[path]):
            field = ".".join(map(str, path))
            found.add(
                Diagnostic(
                    "KG1023",
                    f"{whose}: a patch cannot change `{field}`, from {brief(before[path])} to {brief(after[path])}",
                    patch.place(),
                    "others refer to an object by it; make an object of your own instead",
                )
            )
            return item
    # What was not changed keeps its expressions, and its name.
    body["metadata"]["name"] = item.body["metadata"]["name"]  # type: ignore[index, call-overload]
    return replace(item, body=body, place=_placed(tuple(marks), item.place))


def _leaves(node: Any, path: SpecPath) -> Iterable[SpecPath]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path


def _identity(body: Any, scope: Scope) -> dict[SpecPath, Any]:
    found = {}
    for path in _IDENTITY:
        node = body
        for step in path:
            node = node.get(step) if isinstance(node, dict) else None
        found[path] = resolve(node, scope)
    return found


def _placed(marks: tuple[tuple[SpecPath, Mark], ...], before: Place | None) -> Place:
    def place(path: SpecPath) -> Mark | None:
        for changed, mark in reversed(marks):
            if path[: len(changed)] == changed:
                return mark
        return before(path) if before else None

    return place


def _renamed(tree: Any, names: Mapping[str, HashedName]) -> Any:
    """A tree with the names whose specs changed."""
    if isinstance(tree, HashedName):
        return names.get(tree.helper, tree)
    if isinstance(tree, Labels) or not isinstance(tree, dict | list | tuple | Expr):
        return tree
    if isinstance(tree, dict):
        result = {key: _renamed(node, names) for key, node in tree.items()}
        name = tree.get("metadata", {}).get("name") if isinstance(tree.get("metadata"), dict) else None
        if isinstance(name, HashedName) and name.helper in names and "spec" in tree:
            result["spec"] = names[name.helper].spec
        return result
    if isinstance(tree, list | tuple):
        return [_renamed(node, names) for node in tree]
    parts = getattr(tree, "parts", None)
    return replace(tree, parts=tuple(_renamed(part, names) for part in parts)) if parts else tree  # type: ignore[type-var]
