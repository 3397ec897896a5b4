"""The Secrets that apps read: which key for what, and which object makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.kubernetes.made_secrets import SECRET, MadeSecret, made_secret
from kaigen.kubernetes.manifest import mapping, text
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secret_types import OPAQUE
from kaigen.secrets.purpose import purpose_of

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compilation, Compiled


class Use(Struct, frozen=True):
    """One place of an app that reads a Secret.

    Attributes:
        app: `NAMESPACE/NAME`.
        object: kind and name, as in `Job/train-0a1b2c3d`.
        keys: the keys that are read; empty for all.
        purpose: what the Secret is read for, in a few words.
        mark: the line of the spec; None when no file contains it.
        field: the field of the spec; empty when kaigen does not know it.
        as_file: the values become files, not variables.
        optional: the app works without the Secret.
    """

    app: str
    object: str
    keys: tuple[str, ...]
    purpose: str
    mark: Mark | None = None
    field: str = ""
    as_file: bool = False
    optional: bool = False


class Maker(Struct, frozen=True):
    """The object in the tree that makes a Secret.

    Attributes:
        source: `ExternalSecret`, `SealedSecret`, `SOPS` or `Secret`.
        app: `NAMESPACE/NAME`.
        keys: the keys that the Secret will have; None when they are unknown.
        mark: the line that defines it; None for objects that kaigen writes.
    """

    source: str
    app: str
    keys: frozenset[str] | None
    mark: Mark | None = None


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


class Facts(Struct, frozen=True):
    """The Secrets that single apps read and make.

    Attributes:
        reads: namespace, name and type of a Secret, with a place that reads it.
        makes: namespace and name of a Secret, with the object that makes it.
    """

    reads: tuple[tuple[str, str, str, Use], ...] = ()
    makes: tuple[tuple[str, str, Maker], ...] = field(default=())


def merge_facts(facts: Iterable[Facts]) -> Facts:
    """Return the facts about several apps as one."""
    every = list(facts)
    return Facts(
        tuple(read for item in every for read in item.reads),
        tuple(made for item in every for made in item.makes),
    )


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
