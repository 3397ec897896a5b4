"""The Secrets that compiled apps read and make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import dotted_path
from kaigen.kubernetes.manifest import Object, mapping, text
from kaigen.kubernetes.pods import CONTAINER_FIELDS
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secrets import DOCKER_CONFIG, SECRET, TLS, MadeSecret, made_secrets
from kaigen.secrets.expected import ExpectedSecret, gather
from kaigen.secrets.facts import Facts, Maker, Use

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry
    from kaigen.pipeline.result import Compilation, Compiled


def purpose_of(obj: Object, reference: Reference) -> str:
    """Return what an object reads a Secret for, as in `variable HF_TOKEN of fetch`."""
    if reference.secret_type == DOCKER_CONFIG and "env" not in reference.path:
        return "pulls images"
    if reference.secret_type == TLS:
        return "TLS"
    path = reference.path
    for depth, step in enumerate(path):
        item = _value_at(obj, path[: depth + 2])
        match step:
            case str() if step in CONTAINER_FIELDS:
                return _of_container(obj, path, depth, item)
            case "volumes":
                return f"volume {item.get('name')}"
            case "secretTargetRef":
                return f"parameter {item.get('parameter')} of a trigger"
    return ".".join(step for step in path[:-1] if isinstance(step, str) and step != "spec") or "reference"


def _of_container(obj: Object, path: FieldPath, depth: int, container: Object) -> str:
    name = container.get("name")
    suffix = f" of {name}" if isinstance(name, str) else ""
    if path[depth + 2] == "env":
        variable = _value_at(obj, path[: depth + 4]).get("name")
        return f"variable {variable}{suffix}"
    return f"variables{suffix}"


def _value_at(obj: Object, path: FieldPath) -> Object:
    value: object = obj
    for step in path:
        value = value[step]  # type: ignore[index]
    return mapping(value)


def facts_of(items: Iterable[Compiled]) -> Facts:
    """Return the Secrets that the objects of apps read and make."""
    reads: list[tuple[str, str, str, Use]] = []
    makes: list[tuple[str, str, Maker]] = []
    for item in items:
        app = f"{item.app.namespace}/{item.app.name}"
        for index, rendered in enumerate(item.objects):
            body = rendered.body
            namespace = text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace
            makes += [(namespace, made.name, _maker(item, index, made, app)) for made in made_secrets(body)]
            for reference in references_of(body, item.app.namespace):
                target = reference.target
                if target.type == SECRET:
                    use = _use(item, index, reference, app)
                    reads.append((target.namespace, target.name, reference.secret_type, use))
    return Facts(tuple(reads), tuple(makes))


def _maker(item: Compiled, index: int, made: MadeSecret, app: str) -> Maker:
    mark = item.documents[index].mark(made.path, key=True) if item.documents else None
    return Maker(made.source, app, made.keys, mark)


def _use(item: Compiled, index: int, reference: Reference, app: str) -> Use:
    body = item.objects[index].body
    keys = tuple(key for key, _ in reference.keys)
    mark, path = item.written_at(index, reference.path, reference.target.name, keys[0] if len(keys) == 1 else "")
    return Use(
        app=app,
        object=f"{body['kind']}/{body['metadata']['name']}",
        keys=keys,
        purpose=purpose_of(body, reference),
        mark=mark,
        field=dotted_path(path),
        as_file=reference.as_files,
        optional=reference.optional,
    )


def expected_secrets(
    compilation: Compilation, apps: Sequence[str] = (), external: Sequence[ExternalEntry] = ()
) -> list[ExpectedSecret]:
    """Return every Secret that apps read, by namespace and name.

    Args:
        compilation: the apps.
        apps: return only Secrets that one of these apps reads, `NAME` or `NAMESPACE/NAME`; all when empty.
        external: what `external` of kaigen.yaml lists.

    Returns:
        Each Secret once, with all its uses.
    """
    found = gather(facts_of(compilation.apps), external)
    if apps:
        requested = set(apps)
        found = [item for item in found if any(requested & {app, app.partition("/")[2]} for app in item.apps)]
    return found
