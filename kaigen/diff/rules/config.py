"""Rules for ConfigMaps and Secrets, and for the pods that use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from msgspec import Struct, field

from kaigen.diff.formatting import listing
from kaigen.diff.objects import Obj, get
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.kubernetes.manifest import Object, entries
from kaigen.kubernetes.pods import PodTemplate, containers, pod_templates
from kaigen.kubernetes.references import references_of

CONFIG = frozenset({"ConfigMap", "Secret"})
EXTERNAL = frozenset({"ExternalSecret.external-secrets.io", "SealedSecret.bitnami.com"})


def data_changed(case: Case) -> Iterator[Finding]:
    """Data changed under the same name: only pods that mount it get the change."""
    old, new = case.pair
    fields = ("data", "binaryData", "stringData")
    changed = any(get(old.data, field) != get(new.data, field) for field in fields)
    if not changed or get(old.data, "immutable") is True:
        return
    mounted, fixed = _consumers(new, case)
    if fixed:
        yield (
            "notice",
            f"{listing(fixed)} keep{'s' if len(fixed) == 1 else ''} the old values until restarted: "
            "it is used as an environment variable or with subPath",
        )
    if mounted or not fixed:
        who = f"pods of {listing(mounted)}" if mounted else "pods that mount it"
        yield "info", f"{who} get it within minutes, without a restart (the name has no content hash)"


class _Users(Struct):
    """The objects that mount a ConfigMap or Secret, and those that read it only at container start."""

    mounted: dict[str, None] = field(default_factory=dict)
    fixed: dict[str, None] = field(default_factory=dict)


_Path = tuple[str | int, ...]
_Target = tuple[str, str]
"""Type and name of an object."""


def _consumers(config: Obj, case: Case) -> tuple[list[str], list[str]]:
    """Return the objects that mount it, and those that read it only at container start."""
    users = case.siblings.once("users", lambda: _users(case.siblings()))
    found = users.get((config.type, config.name), _Users())
    return list(found.mounted), list(found.fixed)


def _users(siblings: list[Obj]) -> dict[_Target, _Users]:
    """Return the users of each ConfigMap and Secret."""
    found: dict[_Target, _Users] = {}
    for obj in siblings:
        body = cast("Object", obj.data)
        templates = list(pod_templates(body))
        if not templates:
            continue
        paths: dict[_Path, dict[_Target, None]] = {}
        for one in references_of(body):
            if one.target.type in CONFIG:
                for length in range(len(one.path) + 1):
                    paths.setdefault(one.path[:length], {})[one.target.type, one.target.name] = None
        for template in templates:
            for target, is_mounted in _uses(template, paths):
                users = found.setdefault(target, _Users())
                (users.mounted if is_mounted else users.fixed)[str(obj)] = None
    return found


def _uses(template: PodTemplate, paths: Mapping[_Path, Iterable[_Target]]) -> Iterator[tuple[_Target, bool]]:
    """Yield what the containers of a pod use, and whether it is mounted and follows changes.

    Args:
        template: the pod.
        paths: what is referred to at each path and below it.
    """
    volumes: dict[object, list[_Target]] = {}
    for number, volume in entries(template.spec.get("volumes")):
        path = (*template.spec_path, "volumes", number)
        volumes.setdefault(volume.get("name"), []).extend(paths.get(path, ()))
    for container in containers(template):
        for target in paths.get(container.path, ()):
            yield target, False
        for _, mount in entries(container.body.get("volumeMounts")):
            for target in volumes.get(mount.get("name"), ()):
                yield target, not (mount.get("subPath") or mount.get("subPathExpr"))


def config_replaced(case: Case) -> Iterator[Finding]:
    """Data with a new name: objects that use it change as well."""
    old, new = case.pair
    if old.name != new.name:
        yield "info", f"{new} replaces {old}: pods switch to it when they are updated"


def config_removed(case: Case) -> Iterator[Finding]:
    """Data was removed."""
    mounted, fixed = _consumers(case.obj, case)
    users = [*mounted, *(name for name in fixed if name not in mounted)]
    if users:
        use = "uses" if len(users) == 1 else "use"
        yield "danger", f"is deleted, but {listing(users)} still {use} it: new pods will not start"
    else:
        yield "info", "is deleted; other pods that use it will not start again"


def secret_source(case: Case) -> Iterator[Finding]:
    """An object that creates a Secret from an external source."""
    if case.new is None:
        yield "notice", "the Secret that it created is deleted with it, unless it is set to be retained"
    elif case.old is not None and any(under(change, "spec") for change in case.fields):
        yield "notice", "the Secret's content changes; pods get it if they mount it, or after a restart"
