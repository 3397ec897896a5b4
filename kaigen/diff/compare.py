"""Compares two rendered trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import field

from kaigen.config.settings import Config
from kaigen.diff.cost import affects_cost, carbon_change, cost_change
from kaigen.diff.model import ABSENT, AppChange, AppStatus, Change, Effect, FieldChange, ObjectChange, ObjectStatus
from kaigen.diff.names import NamedApp, merge_apps, new_alias, rename_effects
from kaigen.diff.objects import Obj, Unreadable, read_objects, strip_header
from kaigen.diff.pairing import Pair, diff_fields, full_identity, pair_objects
from kaigen.diff.rules import Case, Siblings, effects_of
from kaigen.diff.rules.rbac import ROLES, rights_fields
from kaigen.diff.rules.security import POD_SECURITY, requested_exception
from kaigen.diff.trees import AppKey, Trees, locate

HIDDEN = "(hidden)"
"""Printed instead of a value of a Secret."""

_POD_SECURITY = POD_SECURITY.encode()


def compare(
    old: Mapping[str, bytes], new: Mapping[str, bytes], *, settings: Mapping[str, Config] | None = None
) -> Change:
    """Return the changes between two rendered trees, and their effects in the cluster.

    Args:
        old: path to bytes, with `/` as separator. Apps are in `<namespace>/<app>/manifests/` and
            `<namespace>/<app>/chart/`, in any folder; objects elsewhere are shown under their folder.
        new: the same for the new tree.
        settings: kaigen.yaml by the folder of an environment in the trees; empty for a tree without environments.

    Only files whose bytes differ are read. A file that is not valid YAML is part of the result, not an error.
    """
    differing = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    if not differing:
        return Change()
    roles = {path: locate(path) for path in old.keys() | new.keys()}
    concerned = {roles[path].app for path in differing if roles[path].role in ("object", "chart")}
    trees = Trees(old, new, settings)
    apps: dict[AppKey, ComparedApp] = {key: ComparedApp(key, trees=trees) for key in concerned}
    for path, role in roles.items():
        app = apps.get(role.app)
        if app is not None and role.role in ("object", "chart"):
            if path in old:
                app.before.add(path, role, old[path])
            if path in new:
                app.after.add(path, role, new[path])
    merged = merge_apps(apps.values())
    for app in merged:
        app.read()
    _pair_across(merged)
    changes = [change for app in merged if (change := app.change()) is not None]
    other = sum(roles[path].role == "other" for path in differing)
    return Change(
        apps=tuple(sorted(changes, key=lambda app: (-app.rank, app.root, app.namespace, app.name))),
        formatting_only=sum(app.formatting_only for app in merged),
        other_files=other + sum(app.foreign for app in merged),
    )


class ComparedApp(NamedApp):
    """One app in both trees, during the comparison."""

    trees: Trees = field(default_factory=Trees)
    pairs: list[Pair] = field(default_factory=list)
    olds: list[Obj] = field(default_factory=list)
    news: list[Obj] = field(default_factory=list)
    broken: list[ObjectChange] = field(default_factory=list)
    formatting_only: int = 0
    foreign: int = 0
    known: dict[str, list[Obj]] = field(default_factory=dict)
    differing: set[str] = field(default_factory=set)
    """Paths in the new tree of files that differ, perhaps only in formatting."""

    @property
    def absorbs(self) -> bool:
        """Whether its old files are those of another folder."""
        return bool(self.old_namespace or self.old_name)

    def read(self) -> None:
        """Read the files that differ and match their objects."""
        files: dict[str, str] = {}
        olds: list[Obj] = []
        news: list[Obj] = []
        for file in sorted(self.before.objects.keys() | self.after.objects.keys()):
            was, now = self.before.objects.get(file), self.after.objects.get(file)
            if was is not None and now is not None:
                if was[1] == now[1] and not self.absorbs:
                    continue
                if strip_header(was[1]) == strip_header(now[1]) and not self.absorbs:
                    self.formatting_only += 1
                    continue
            old_side = [] if was is None else read_objects(*was)
            new_side = [] if now is None else read_objects(*now)
            old_side, new_side = self._without_broken(file, old_side, new_side)
            files |= {obj.path: file for obj in (*old_side, *new_side)}
            olds += old_side
            news += new_side
            if now is not None:
                self.known[file] = new_side
                if new_side:
                    self.differing.add(now[0])
        self.pairs, self.olds, self.news = pair_objects(olds, news, lambda obj: files[obj.path])

    def _without_broken(
        self, file: str, old: list[Obj] | Unreadable, new: list[Obj] | Unreadable
    ) -> tuple[list[Obj], list[Obj]]:
        """Return the objects of both sides of a file, and record files that cannot be read.

        Nothing is reported about the objects of a file that cannot be read now: they may still be in it.
        """
        if not isinstance(old, Unreadable) and not isinstance(new, Unreadable):
            return old, new
        sides = [side for side in (old, new) if isinstance(side, Unreadable)]
        if not self.key.name and all(side.foreign for side in sides):
            self.foreign += 1
        elif isinstance(new, Unreadable):
            text = f"the file cannot be compared: {new.reason}"
            effect = Effect("danger", text, "unreadable")
            self.broken.append(_unreadable(file, new.path, "changed" if old else "added", effect))
        elif isinstance(old, Unreadable):
            text = f"the file could not be read before: {old.reason}; its current objects are shown as new"
            status: ObjectStatus = "changed" if new else "removed"
            self.broken.append(_unreadable(file, old.path, status, Effect("notice", text, "unreadable")))
        if isinstance(new, Unreadable):
            return [], []
        return [] if isinstance(old, Unreadable) else old, new

    def siblings(self) -> list[Obj]:
        """Return every object of the app in the new tree."""
        for file, (path, data) in self.after.objects.items():
            if file not in self.known:
                found = read_objects(path, data)
                self.known[file] = [] if isinstance(found, Unreadable) else found
        return [obj for file in sorted(self.known) for obj in self.known[file]]

    def change(self) -> AppChange | None:
        """Return the changes of the app; None when it differs at most in formatting."""
        pairs = [*self.pairs, *(Pair(obj, None) for obj in self.olds), *(Pair(None, obj) for obj in self.news)]
        siblings = Siblings(self.siblings)
        objects = [change for pair in pairs if (change := self._object(pair, siblings)) is not None]
        touched = {change.path for change in (*objects, *self.broken)}
        self.formatting_only += len(self.differing - touched)
        objects += self.broken
        charts = sum(
            self.before.charts.get(file) != self.after.charts.get(file)
            for file in self.before.charts.keys() | self.after.charts.keys()
        )
        if not objects and not charts and not self.old_namespace:
            return None
        status: AppStatus = "changed" if self.before and self.after else "added" if self.after else "removed"
        alias_of = new_alias(pairs)
        if self.old_namespace:
            status = "moved"
        elif self.old_name or alias_of:
            status = "renamed"
        effects = sorted(self._own_effects(pairs), key=lambda effect: -effect.rank)
        objects.sort(key=lambda item: (-item.rank, item.kind, item.namespace, item.name, item.path))
        return AppChange(
            namespace=self.key.namespace,
            name=self.key.name,
            status=status,
            objects=tuple(objects),
            charts=charts,
            effects=tuple(effects),
            root=self.key.root,
            old_namespace=self.old_namespace,
            old_name=self.old_name,
            alias_of=alias_of,
        )

    def _object(self, pair: Pair, siblings: Siblings) -> ObjectChange | None:
        old, new = pair.old, pair.new
        fields: tuple[FieldChange, ...] = ()
        status: ObjectStatus = "added" if old is None else "removed"
        if old is not None and new is not None:
            fields = tuple(_fields(old, new))
            same = full_identity(old) == full_identity(new)
            if same and not fields and not pair.passed_from:
                return None
            status = "changed" if same else "replaced"
        shown = new or old
        if shown is None:
            return None
        return ObjectChange(
            kind=shown.kind,
            api_version=shown.api_version,
            namespace=shown.namespace,
            old_name=old.name if old else None,
            new_name=new.name if new else None,
            status=status,
            path=shown.path,
            fields=fields if shown.kind != "Secret" else tuple(_hide(change) for change in fields),
            effects=effects_of(Case(status, old, new, fields, siblings, pair.passed_from, self.trees)),
        )

    def _own_effects(self, pairs: Sequence[Pair]) -> Iterator[Effect]:
        if self.old_namespace:
            namespaces = f"from namespace {self.old_namespace} to {self.key.namespace}"
            text = f"moved {namespaces}: deleted there, created here"
            yield Effect("notice", text, "moved")
        yield from rename_effects(self.key, self.old_name, pairs, self.trees)
        before = {id(pair.new): pair.old for pair in pairs}
        if any(_POD_SECURITY in data for _, data in self.after.objects.values()):
            for obj in self.siblings():
                # An object that was not read as changed is unchanged.
                found = requested_exception(before.get(id(obj), obj), obj)
                if found is not None:
                    yield Effect(*found, "pod-security-exception")
        if any(affects_cost(obj) for pair in pairs for obj in (pair.old, pair.new) if obj is not None):
            now = self.siblings()
            was = [old for each in now if (old := before.get(id(each), each)) is not None]
            was += [pair.old for pair in pairs if pair.new is None and pair.old is not None]
            paths = (path for side in (self.after, self.before) for path, _ in side.objects.values())
            config = self.trees.config(next(paths))
            for name, change in (("cost", cost_change), ("carbon", carbon_change)):
                if text := change(was, now, config):
                    yield Effect("info", text, name)


def _unreadable(file: str, path: str, status: ObjectStatus, effect: Effect) -> ObjectChange:
    name = file.rpartition("/")[2]
    return ObjectChange(
        kind="",
        api_version="",
        namespace="",
        old_name=None if status == "added" else name,
        new_name=None if status == "removed" else name,
        status=status,
        path=path,
        effects=(effect,),
    )


def _rights(old: Obj, new: Obj) -> list[FieldChange] | None:
    """Return the changed rights of a role; None if its rules are compared as other fields."""
    if old.type not in ROLES or new.type not in ROLES or "rules" not in old.data or "rules" not in new.data:
        return None
    return rights_fields(old.data["rules"], new.data["rules"])


def _fields(old: Obj, new: Obj) -> Iterator[FieldChange]:
    rights = _rights(old, new)
    if rights is not None:
        yield from rights
        old, new = (Obj({**obj.data, "rules": []}, obj.path) for obj in (old, new))
    for change in diff_fields(old.data, new.data):
        if change.keys not in (("metadata", "name"), ("metadata", "namespace")):
            yield change


def _hide(change: FieldChange) -> FieldChange:
    """Return a field change of a Secret without its values."""
    if change.keys[0] not in ("data", "stringData"):
        return change
    old, new = (side if side is ABSENT else HIDDEN for side in (change.old, change.new))
    return FieldChange(change.keys, old, new)


def _pair_across(apps: Sequence[ComparedApp]) -> None:
    """Match objects that moved from one app to another: the cluster knows objects, not apps."""
    lost = {full_identity(obj): (app, obj) for app in apps for obj in app.olds}
    paired: set[int] = set()
    for app in apps:
        for obj in app.news:
            found = lost.pop(full_identity(obj), None)
            if found is None:
                continue
            source, old = found
            paired |= {id(old), id(obj)}
            giver = "/".join(part for part in source.key if part)
            app.pairs.append(Pair(old, obj, giver))
    for app in apps:
        app.olds = [obj for obj in app.olds if id(obj) not in paired]
        app.news = [obj for obj in app.news if id(obj) not in paired]
