"""Build an app from the objects of a user's kind, with everything that all apps of kaigen have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.compile.app import App, Object, Place, collect_settings
from kaigen.compile.builders.frame import WAVE
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Namespace, Release, Scope, Setting, Tree, find_settings, resolve
from kaigen.compile.field_expressions import HashedName
from kaigen.compile.finish import check_labels, finish, frame_of
from kaigen.compile.problems import Problems
from kaigen.kinds.base import Metadata
from kaigen.kubernetes.kind_table import find_kind
from kaigen.kubernetes.schemas import is_cluster_scoped


class RunName(Expr, frozen=True):
    """The name of an object that ends in a hash of its own `spec`; `build_app` replaces it with a `HashedName`."""


RUN = RunName()


class Part(Struct, frozen=True):
    """One object that a kind makes.

    Attributes:
        role: file name without its suffix, unique in the app.
        body: the object, with expressions; `metadata` needs only a name.
        place: returns the mark of a path in the object; None where that is unknown.
    """

    role: str
    body: Mapping[str, Tree]
    place: Place | None = None


def build_app(
    kind: str,
    metadata: Metadata,
    context: Context,
    problems: Problems,
    parts: Sequence[Part],
    *,
    summary: str = "",
    pod_security: str = "restricted",
) -> App:
    """Return the app of some objects, with namespace, common labels, the user's annotations and sync waves.

    Args:
        kind: of the document.
        metadata: the document's.
        context: the target of the compilation.
        problems: collects problems.
        parts: the objects.
        summary: one sentence about the app.
        pod_security: the level its pods must satisfy.
    """
    check_labels(metadata, None, problems)
    frame = frame_of(metadata, context)
    objects = []
    for part in parts:
        body = dict(part.body)
        own: dict[str, Any] = dict(body.pop("metadata"))  # type: ignore[arg-type]
        object_kind, version = str(body["kind"]), str(body["apiVersion"])
        wave = find_kind(version, object_kind).wave
        annotations: Any = own.get("annotations", {})
        given = annotations.get(WAVE)
        if isinstance(given, str) and re.fullmatch("-?[0-9]{1,6}", given):
            wave = int(given)
        name = own["name"]
        if name == RUN:
            name = HashedName(body["spec"], f"{metadata.name}.{part.role}.digest")  # type: ignore[arg-type]
        elif object_kind == "Job" and isinstance(name, Expr) and not isinstance(name, HashedName):
            problems.warning(
                "KG1009",
                f"a Job of the kind `{kind}` keeps its name, so the API server rejects every change to its spec",
                ("metadata", "name"),
                "use `name: {{ run }}`, the app's name with a hash of the Job's spec",
            )
        common: Any = frame.metadata(
            "",
            "",
            wave=wave,
            annotations={key: value for key, value in annotations.items() if key != WAVE},
            name=name if isinstance(name, Expr) else None,
        )
        scoped = is_cluster_scoped(version, object_kind)
        full: dict[str, Tree] = {
            "name": name,
            **({} if scoped else {"namespace": own.get("namespace", Namespace())}),
            "labels": replace(common["labels"], own=dict(own.get("labels", {}))),
            "annotations": common["annotations"],
            **{key: value for key, value in own.items() if key not in _OWN},
        }
        rest = {key: node for key, node in body.items() if key not in {"apiVersion", "kind"}}
        objects.append(
            Object(
                role=part.role,
                body={"apiVersion": version, "kind": object_kind, "metadata": full, **rest},
                wave=wave,
                place=part.place,
            )
        )
    objects.sort(key=lambda item: item.wave)
    settings = _settings(objects, problems)
    return finish(
        kind, metadata, frame, context, objects, settings, problems, pod_security=pod_security, summary=summary
    )


_OWN = frozenset({"name", "namespace", "labels", "annotations"})


def _settings(objects: Sequence[Object], problems: Problems) -> tuple[Setting, ...]:
    found: dict[str, Setting] = {}
    for item in objects:
        for setting in find_settings(item.body):
            known = found.setdefault(setting.path, setting)
            if known.default != setting.default:
                problems.error(
                    "KG1007",
                    f"the setting `{setting.path}` has two defaults, {known.default!r} and {setting.default!r}",
                    setting.origin or ("metadata", "name"),
                    "rename one of the two settings",
                )
                return ()
    for path in found:
        inner = next((other for other in found if other.startswith(f"{path}.")), None)
        if inner:
            problems.error(
                "KG1007",
                f"the setting `{path}` cannot have both a value and the nested setting `{inner}`",
                ("metadata", "name"),
                "rename one of the two settings",
            )
            return ()
    return collect_settings(objects)


def join_parts(parts: Sequence[str | Expr]) -> str | Expr:
    """Return text and expressions as the simplest equivalent expression."""
    flat: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str):
            if flat and isinstance(flat[-1], str):
                flat[-1] += part
            elif part:
                flat.append(part)
        elif isinstance(part, Joined):
            flat.extend(part.parts)
        else:
            flat.append(part)
    if not flat:
        return ""
    if len(flat) == 1:
        return flat[0]
    first, second = flat[0], flat[1]
    alone = len(flat) == 2 and isinstance(first, Release) and not first.suffix
    if alone and isinstance(second, str) and re.fullmatch(r"[A-Za-z0-9.-]+", second):
        return Release(second)
    return Joined(tuple(flat))


def plain(tree: Tree, app: str, namespace: str) -> Any:
    """Return a tree with its expressions resolved to their defaults."""
    values: dict[str, Any] = {}
    for setting in find_settings(tree):
        here = values
        *parents, last = setting.keys
        for key in parents:
            here = here.setdefault(key, {})
        here[last] = setting.default
    return resolve(tree, Scope(app, namespace, values))
