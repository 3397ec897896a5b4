"""The Secrets that apps read: which key for what, and which object makes them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kaigen.kubernetes.secrets import OPAQUE
from kaigen.secrets.facts import Facts, Maker, Use


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


def gather(facts: Facts) -> list[ExpectedSecret]:
    """Return the Secrets that are read, by namespace and name."""
    makers = {(namespace, name): maker for namespace, name, maker in reversed(facts.makes)}
    found: dict[tuple[str, str], ExpectedSecret] = {}
    for namespace, name, kind, use in facts.reads:
        known = found.get((namespace, name))
        if known is None:
            known = ExpectedSecret(namespace, name, OPAQUE, (), False, True, (), makers.get((namespace, name)))
        found[namespace, name] = replace(
            known,
            type=kind if known.type == OPAQUE else known.type,
            keys=tuple(sorted({*known.keys, *use.keys})),
            whole=known.whole or not use.keys,
            optional=known.optional and use.optional,
            uses=known.uses if use in known.uses else (*known.uses, use),
        )
    return [replace(item, uses=tuple(sorted(item.uses, key=lambda use: use.app))) for _, item in sorted(found.items())]
