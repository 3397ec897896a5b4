"""The Secrets that compiled apps read and make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaigen.diagnostics.field_path import dotted_path
from kaigen.kubernetes.made_secrets import SECRET, MadeSecret, made_secret
from kaigen.kubernetes.manifest import mapping, text
from kaigen.kubernetes.references import Reference, references_of
from kaigen.secrets.expected import ExpectedSecret, gather
from kaigen.secrets.facts import Facts, Maker, Use
from kaigen.secrets.purpose import purpose_of

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compilation, Compiled


def facts_of(items: Iterable[Compiled]) -> Facts:
    """Return the Secrets that the objects of apps read and make."""
    reads: list[tuple[str, str, str, Use]] = []
    makes: list[tuple[str, str, Maker]] = []
    for item in items:
        app = f"{item.app.namespace}/{item.app.name}"
        for index, rendered in enumerate(item.objects):
            body = rendered.body
            namespace = text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace
            made = made_secret(body)
            if made is not None:
                makes.append((namespace, made.name, _maker(item, index, made, app)))
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


def expected_secrets(compilation: Compilation, apps: Sequence[str] = ()) -> list[ExpectedSecret]:
    """Return every Secret that apps read, by namespace and name.

    Args:
        compilation: the apps.
        apps: return only Secrets that one of these apps reads, `NAME` or `NAMESPACE/NAME`; all when empty.

    Returns:
        Each Secret once, with all its uses.
    """
    found = gather(facts_of(compilation.apps))
    if apps:
        requested = set(apps)
        found = [item for item in found if any(requested & {app, app.partition("/")[2]} for app in item.apps)]
    return found
