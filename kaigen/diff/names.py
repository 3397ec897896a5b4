"""Apps whose namespace or name changed, and apps that became another name of an app."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct, field

from kaigen.diff.model import Effect
from kaigen.diff.objects import Obj, get_text, strip_header
from kaigen.diff.pairing import Pair
from kaigen.diff.trees import AppKey, FileRole, Trees, place_of
from kaigen.kubernetes.metadata_keys import ALIAS_OF
from kaigen.kubernetes.workloads import SERVING_TYPES


class Side(Struct):
    """The files of an app in one tree, by path within the app: the whole path and the bytes."""

    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    charts: dict[str, bytes] = field(default_factory=dict)

    def add(self, path: str, role: FileRole, data: bytes) -> None:
        """Add a file."""
        if role.role == "chart":
            self.charts[role.file] = data
        else:
            self.objects[role.file] = (path, data)

    def __bool__(self) -> bool:
        return bool(self.objects or self.charts)

    def nameless(self, name: str) -> set[tuple[str, bytes]]:
        """Return the files with an empty text in place of a name where it is a whole word."""
        word = re.compile(rb"(?<![a-z0-9])" + re.escape(name.encode()) + rb"(?![a-z0-9])")
        files = {file: data for file, (_, data) in self.objects.items()} or self.charts
        return {(file, word.sub(b"", strip_header(data))) for file, data in files.items()}


class NamedApp(Struct):
    """An app in both trees.

    Attributes:
        key: where it is; where it was, if it is gone.
        old_namespace: its namespace before; empty if it is the same.
        old_name: its name before; empty if it is the same.
        before: its files in the old tree.
        after: its files in the new tree.
    """

    key: AppKey
    old_namespace: str = ""
    old_name: str = ""
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)


AppT = TypeVar("AppT", bound=NamedApp)


def merge_apps(apps: Iterable[AppT]) -> list[AppT]:
    """Return the apps, with an app that moved to another namespace, or has another name, as one."""
    apps = sorted(apps, key=lambda app: app.key)
    gone = [app for app in apps if app.key.name and not app.after]
    come = [app for app in apps if app.key.name and not app.before]
    absorbed = _merge_moved(gone, come)
    gone = [app for app in gone if app.key not in absorbed]
    come = [app for app in come if not app.before]
    absorbed |= _merge_renamed(gone, come)
    return [app for app in apps if app.key not in absorbed]


def _merge_moved(gone: Sequence[NamedApp], come: Sequence[NamedApp]) -> set[AppKey]:
    """Give each app that moved to another namespace its old files; return the old apps."""
    removed: dict[tuple[str, str], list[NamedApp]] = {}
    added: dict[tuple[str, str], list[NamedApp]] = {}
    for app in gone:
        removed.setdefault((app.key.root, app.key.name), []).append(app)
    for app in come:
        added.setdefault((app.key.root, app.key.name), []).append(app)
    absorbed: set[AppKey] = set()
    for key, (app, *more) in added.items():
        sources = removed.get(key, [])
        if not more and len(sources) == 1 and sources[0].before.objects.keys() & app.after.objects.keys():
            app.before = sources[0].before
            app.old_namespace = sources[0].key.namespace
            absorbed.add(sources[0].key)
    return absorbed


def _merge_renamed(gone: Sequence[NamedApp], come: Sequence[NamedApp]) -> set[AppKey]:
    """Give each app with a new name its old files; return the old apps.

    An app has a new name if most of its files are those of one app that is gone, but for the name.
    """
    owners: dict[tuple[str, str, tuple[str, bytes]], list[NamedApp]] = {}
    for app in gone if come else ():
        for file in app.before.nameless(app.key.name):
            owners.setdefault((app.key.root, app.key.namespace, file), []).append(app)
    by_key = {app.key: app for app in gone}
    absorbed: set[AppKey] = set()
    for app in come if gone else ():
        files = app.after.nameless(app.key.name)
        found: Counter[AppKey] = Counter()
        for file in files:
            found.update(owner.key for owner in owners.get((app.key.root, app.key.namespace, file), ()))
        (key, same), second = [*found.most_common(2), (app.key, 0), (app.key, 0)][:2]
        if 2 * same > len(files) and same > second[1] and key not in absorbed:
            app.before, app.old_name = by_key[key].before, key.name
            absorbed.add(key)
    return absorbed


def new_alias(pairs: Iterable[Pair]) -> str:
    """Return the app that answers in place of one that is its alias now and was none before; empty for others.

    An app whose canary gets every request has its own pods still.
    """
    pairs = list(pairs)
    if any(new is not None and new.type in SERVING_TYPES for _, new, _ in pairs):
        return ""
    for old, new, _ in pairs:
        if old is None or new is None or new.kind != "Service" or ALIAS_OF in old.annotations:
            continue
        if found := new.annotations.get(ALIAS_OF):
            return str(found)
    return ""


def rename_effects(key: AppKey, old_name: str, pairs: Iterable[Pair], trees: Trees) -> Iterator[Effect]:
    """Yield what another name means for clients.

    Args:
        key: the app.
        old_name: its name before; empty if it is the same.
        pairs: its objects.
        trees: both trees.
    """
    pairs = list(pairs)
    answers = new_alias(pairs)
    if answers and not _is_served(answers, key, trees):
        text = f"requests fail until the pods of {answers}, which is new, are ready: add it first, in another commit"
        yield Effect("notice", text, "renamed")
    elif answers:
        text = f"the pods of {answers} answer from now on: they must be ready before this is merged"
        yield Effect("notice", text, "renamed")
    if old_name and any(old is not None and _is_front(old) for old, _, _ in pairs):
        text = f"Service {old_name} goes, and its clients find nothing: keep its name with an Alias"
        yield Effect("notice", text, "renamed")


def _is_front(obj: Obj) -> bool:
    """Return whether an object is a Service that clients use."""
    return obj.kind == "Service" and get_text(obj.data, "spec", "clusterIP") != "None"


def _is_served(name: str, key: AppKey, trees: Trees) -> bool:
    """Return whether an app had a Service before."""
    return any(place_of(obj) == key.namespace for obj in trees.named("old", "Service", key.root, name))
