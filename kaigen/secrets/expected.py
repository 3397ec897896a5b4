"""The Secrets that apps expect: who reads which key for what, and what in the tree makes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Mark
from kaigen.kubernetes.made_secrets import SECRET, MadeSecret, made_secret
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secret_types import OPAQUE
from kaigen.secrets.purpose import purpose_of

if TYPE_CHECKING:
    from kaigen.pipeline.run import Compilation, Compiled


@dataclass(frozen=True, slots=True)
class Use:
    """One place of an app that reads a Secret.

    Attributes:
        app: `NAMESPACE/NAME`.
        object: kind and name, as in `Job/train-0a1b2c3d`.
        keys: what is read; empty for all there is.
        purpose: what for, a few words.
        mark: where the spec says so; None when it stands in no file.
        field: the spec's field; empty when kaigen cannot tell.
        as_file: the values become files, not variables.
        optional: it works without.
    """

    app: str
    object: str
    keys: tuple[str, ...]
    purpose: str
    mark: Mark | None = None
    field: str = ""
    as_file: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Maker:
    """What in the tree makes a Secret.

    Attributes:
        way: `ExternalSecret`, `SealedSecret`, `SOPS` or `Secret`.
        app: `NAMESPACE/NAME`.
        keys: those that the Secret will have; None when nobody can tell.
        mark: where it is written; None for what kaigen writes itself.
    """

    way: str
    app: str
    keys: frozenset[str] | None
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class ExpectedSecret:
    """A Secret that apps of a namespace read.

    Attributes:
        namespace: where it must be.
        name: its name.
        type: its type.
        keys: every key that is read by name, sorted.
        whole: somebody reads all its keys, whichever there are.
        optional: nobody needs it.
        uses: who reads it, by app.
        maker: what in the tree makes it; None when a person must.
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
        """The apps that read it, each once."""
        return tuple(dict.fromkeys(use.app for use in self.uses))

    @property
    def as_files(self) -> bool:
        """Whether somebody reads it as files."""
        return any(use.as_file for use in self.uses)


@dataclass(frozen=True, slots=True)
class Facts:
    """What single apps read and make: enough to tell the rest, without their objects.

    Attributes:
        reads: namespace, name and type of a Secret with a place that reads it.
        makes: namespace and name of a Secret with what makes it.
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
    """What the objects of apps say about Secrets."""
    reads: list[tuple[str, str, str, Use]] = []
    makes: list[tuple[str, str, Maker]] = []
    for item in items:
        app = f"{item.app.namespace}/{item.app.name}"
        for index, rendered in enumerate(item.objects):
            body = rendered.body
            metadata = body["metadata"]
            namespace = metadata.get("namespace") or item.app.namespace
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
    from kaigen.diagnostics.field_path import dotted

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
    """Every Secret that apps read, by namespace and name.

    Args:
        compilation: the apps.
        apps: only those that one of these reads, `NAME` or `NAMESPACE/NAME`; all when empty.

    Returns:
        Each Secret once, with all who read it.
    """
    found = gather(facts_of(compilation.apps))
    if apps:
        wanted = set(apps)
        found = [item for item in found if any(wanted & {app, app.partition("/")[2]} for app in item.apps)]
    return found


def gather(facts: Facts) -> list[ExpectedSecret]:
    """The Secrets that are read, each once, by namespace and name."""
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
