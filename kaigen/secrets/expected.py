"""The Secrets that apps read: which key for what, and which object makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.diagnostics.field_path import dotted
from kaigen.kubernetes.made_secrets import SECRET, MadeSecret, made_secret
from kaigen.kubernetes.manifest import mapping, text
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secret_types import OPAQUE
from kaigen.secrets.facts import Facts, Maker, Use
from kaigen.secrets.purpose import purpose_of

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compilation, Compiled


class ExpectedSecret(Struct, frozen=True):
    """A Secret that apps of a namespace read.

    Attributes:
        namespace: the namespace of the Secret.
        name: its name.
        type: its type.
        keys: every key that is read by its name, sorted.
        whole: an app reads all keys.
        optional: every app works without it.
        uses: the places that read it, by app.
        maker: the object that makes it; None when a person must make it.
    """

    namespace: str
    name: str
    type: str
    keys: tuple[str, ...]
    whole: bool
    optional: bool
    uses: tuple[Use, ...]
    maker: Maker | None = None

    @property
    def apps(self) -> tuple[str, ...]:
        """The apps that read it."""
        return tuple(dict.fromkeys(use.app for use in self.uses))

    @property
    def as_files(self) -> bool:
        """Whether an app reads it as files."""
        return any(use.as_file for use in self.uses)


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
    mark, path = item.written_at(
        index, reference.path, reference.target.name, keys[0] if len(keys) == 1 else ""
    )
    return Use(
        app=app,
        object=f"{body['kind']}/{body['metadata']['name']}",
        keys=keys,
        purpose=purpose_of(body, reference),
        mark=mark,
        field=dotted(path),
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


def gather(facts: Facts) -> list[ExpectedSecret]:
    """Return the Secrets that are read, by namespace and name."""
    makers = {(namespace, name): maker for namespace, name, maker in reversed(facts.makes)}
    found: dict[tuple[str, str], ExpectedSecret] = {}
    for namespace, name, kind, use in facts.reads:
        known = found.get((namespace, name))
        if known is None:
            known = ExpectedSecret(
                namespace, name, OPAQUE, (), False, True, (), makers.get((namespace, name))
            )
        found[namespace, name] = replace(
            known,
            type=kind if known.type == OPAQUE else known.type,
            keys=tuple(sorted({*known.keys, *use.keys})),
            whole=known.whole or not use.keys,
            optional=known.optional and use.optional,
            uses=known.uses if use in known.uses else (*known.uses, use),
        )
    return [
        replace(item, uses=tuple(sorted(item.uses, key=lambda use: use.app)))
        for _, item in sorted(found.items())
    ]
