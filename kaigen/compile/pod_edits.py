"""Change every pod of an app, wherever its objects have one, with expressions in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kaigen.compile.app import App, Object, Roles
from kaigen.compile.expressions import Expr, Setting, Tree, find_settings
from kaigen.compile.field_expressions import Entries, HashedName, Items, Labels
from kaigen.compile.json_expressions import ObjectText

Edit = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns a changed copy of the spec of a pod, or of an item of one of its lists."""


def edit_pods(app: App, edit: Edit, edit_default: Edit | None = None) -> App:
    """Return an app with every pod changed. Names with a hash of a spec follow it, and so do the settings.

    Args:
        app: the app.
        edit: changes the spec of a pod.
        edit_default: changes that of a pod in the default of a setting, which has no expressions; `edit` if None.
    """
    edits = edit, edit_default or edit
    edited = [item if item.verbatim else replace(item, body=_edited(item.body, *edits)) for item in app.objects]
    objects = follow_runs(app.objects, edited)
    used = {setting.path: setting for item in objects for setting in find_settings(item.body)}
    return replace(
        app, objects=tuple(objects), settings=tuple(used.get(setting.path, setting) for setting in app.settings)
    )


def _edited(tree: Any, edit: Edit, edit_default: Edit) -> Any:
    if isinstance(tree, list | tuple):
        items = [_edited(node, edit, edit_default) for node in tree]
        return tree if all(new is old for new, old in zip(items, tree, strict=True)) else items
    if isinstance(tree, Setting) and isinstance(tree.default, dict | list):
        default = _edited(tree.default, edit_default, edit_default)
        return tree if default is tree.default else replace(tree, default=default)
    if not isinstance(tree, dict):
        return tree
    if isinstance(tree.get("containers"), list | tuple | Items):
        return edit(tree)
    changed = {key: _edited(node, edit, edit_default) for key, node in tree.items()}
    return tree if all(changed[key] is node for key, node in tree.items()) else changed


def edit_items(tree: Any, edit: Edit, edit_default: Edit | None = None) -> Any:
    """Return a list of a pod with every item changed: a plain list, one with settings, or a setting's default.

    Args:
        tree: the list.
        edit: changes an item.
        edit_default: changes one in the default of a setting; `edit` if None.
    """
    if isinstance(tree, list | tuple):
        return [edit(item) if isinstance(item, dict) else item for item in tree]
    if isinstance(tree, Items):
        parts = {name: edit_items(getattr(tree, name), edit, edit_default) for name in ("before", "after")}
        return replace(tree, fixed=tuple(edit_items(tree.fixed, edit)), **parts)
    if isinstance(tree, Setting) and isinstance(tree.default, list | tuple):
        return replace(tree, default=edit_items(tree.default, edit_default or edit))
    return tree


def default_items(tree: Any) -> list[Any]:
    """Return the items of such a list, with the defaults of its settings."""
    if isinstance(tree, Items):
        return [item for part in (tree.before, tree.fixed, tree.after) for item in default_items(part)]
    if isinstance(tree, Setting):
        return default_items(tree.default)
    return list(tree) if isinstance(tree, list | tuple) else []


def with_items_before(items: list[Any], tree: Any) -> Any:
    """Return such a list with further items at its start."""
    if not items:
        return tree
    if isinstance(tree, Items):
        return replace(tree, fixed=(*items, *tree.fixed))
    if isinstance(tree, Setting):
        return Items(None, tuple(items), tree)
    return [*items, *(tree or ())]


def with_items_after(items: list[Any], tree: Any) -> Any:
    """Return such a list with further items after the fixed ones."""
    if isinstance(tree, Items):
        return replace(tree, fixed=(*tree.fixed, *items))
    if isinstance(tree, Setting):
        return Items(tree, tuple(items), None)
    return [*(tree or ()), *items]


def with_config_map(app: App, role: str, metadata: Mapping[str, Any], data: Mapping[str, Any]) -> App:
    """Return an app with a ConfigMap, which its pods read.

    Args:
        app: the app.
        role: file name of the ConfigMap, without its extension; a number follows where the app has such a file.
        metadata: its metadata.
        data: its content.
    """
    body: dict[str, Tree] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    roles = Roles()
    for item in app.objects:
        roles.take(item.role)
    return replace(app, objects=(Object(role=roles.take(role), body=body), *app.objects))


def follow_runs(before: Sequence[Object], after: Sequence[Object]) -> list[Object]:
    """Return changed objects in which the names of runs, wherever they occur, are those of the changed specs.

    Args:
        before: the objects of an app.
        after: the same objects, changed.
    """
    names: dict[str, HashedName] = {}
    for old, new in zip(before, after, strict=True):
        if old.hashed is not None and new.body is not old.body:
            names[old.hashed.helper] = replace(old.hashed, spec=new.body["spec"])
    if not names:
        return list(after)
    _follow_each_other(before, names)
    found = []
    for old, new in zip(before, after, strict=True):
        body = _renamed(new.body, names)
        if old.hashed is not None and old.hashed.helper in names:
            # The same object as in the name, so that both are rendered once.
            body["spec"] = body["metadata"]["name"].spec
        found.append(replace(new, body=body))
    return found


def _follow_each_other(objects: Sequence[Object], names: dict[str, HashedName]) -> None:
    """Change the names of runs whose specs contain the name of another run that changed."""
    runs = [item.hashed for item in objects if item.hashed is not None]
    for _ in runs[1:]:
        for run in runs:
            known = names.get(run.helper, run)
            others = {helper: name for helper, name in names.items() if helper != run.helper}
            spec = _renamed(known.spec, others)
            if spec != known.spec:
                names[run.helper] = replace(known, spec=spec)


def _renamed(tree: Any, names: Mapping[str, HashedName]) -> Any:
    """Return a tree in which hashed names follow the specs that changed."""
    if isinstance(tree, HashedName):
        return names.get(tree.helper, tree)
    if isinstance(tree, Labels) or not isinstance(tree, dict | list | tuple | Expr):
        return tree
    if isinstance(tree, dict):
        return {key: _renamed(node, names) for key, node in tree.items()}
    if isinstance(tree, list | tuple):
        return [_renamed(node, names) for node in tree]
    if isinstance(tree, ObjectText):
        return replace(tree, of=_renamed(tree.of, names))
    if isinstance(tree, Entries):
        return replace(tree, fixed=_renamed(tree.fixed, names))
    parts = getattr(tree, "parts", None)
    return replace(tree, parts=tuple(_renamed(part, names) for part in parts)) if parts else tree
