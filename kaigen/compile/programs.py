"""The ConfigMap with the programs of an app, and its mount in each container that names the path of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kaigen.compile.app import App
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import DIGEST_LENGTH, Release, Setting
from kaigen.compile.field_expressions import Arguments, Items
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.pod_edits import edit_items, edit_pods, with_config_map, with_items_after
from kaigen.programs.files import FOLDER, VOLUME, program_text, programs_in

_MOUNT = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
_LISTS = ("initContainers", "containers")


def with_programs(app: App, frame: Frame) -> App:
    """Return an app whose pods have the programs that their containers name.

    The name of the ConfigMap ends in a hash of its content: a change makes new pods, and the pods that it replaces
    keep the programs that fit their arguments.
    """
    names = {name for item in app.objects if not item.verbatim for name in _names(item.body.get("spec"))}
    if not names:
        return app
    data = {name: program_text(name) for name in sorted(names)}
    suffix = f"-programs-{sha256_hex(go_json(data))[:DIGEST_LENGTH]}"
    name = Release(suffix)

    def container(body: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(_names(body)):
            return body
        return {**body, "volumeMounts": with_items_after([_MOUNT], body.get("volumeMounts"))}

    def pod(spec: Mapping[str, Any]) -> Mapping[str, Any]:
        using = {field: edit_items(spec[field], container) for field in _LISTS if any(_names(spec.get(field)))}
        if not using:
            return spec
        volume = {"name": VOLUME, "configMap": {"name": name}}
        return {**spec, **using, "volumes": with_items_after([volume], spec.get("volumes"))}

    return with_config_map(edit_pods(app, pod), "configmap-programs", frame.metadata("", "programs", name=name), data)


def _names(tree: Any) -> Iterator[str]:
    """Yield the names of the programs whose paths occur in a tree, also in commands that are settings.

    A whole pod in a setting has its programs itself: the value of a setting cannot contain the name of the release.
    """
    if isinstance(tree, str):
        yield from programs_in(tree)
    elif isinstance(tree, Mapping):
        for node in tree.values():
            yield from _names(node)
    elif isinstance(tree, list | tuple):
        for node in tree:
            yield from _names(node)
    elif isinstance(tree, Setting):
        yield from () if isinstance(tree.default, dict) else programs_in(tree.default)
    elif isinstance(tree, Arguments | Items):
        yield from _names([getattr(tree, field) for field in tree.__struct_fields__])
