"""The Secrets that apps read: which key for what, and which object makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.secrets import OPAQUE
from kaigen.secrets.facts import Facts, Maker, Use

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry


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


def gather(facts: Facts, external: Sequence[ExternalEntry] = ()) -> list[ExpectedSecret]:
    """Return the Secrets that are read, by namespace and name.

    Args:
        facts: what apps read and make.
        external: objects that exist although no app makes them.
    """
    makers = {(namespace, name): maker for namespace, name, maker in reversed(facts.makes)}
    found: dict[tuple[str, str], ExpectedSecret] = {}
    for namespace, name, kind, use in facts.reads:
        known = found.get((namespace, name))
        if known is None:
            maker = makers.get((namespace, name))
            if maker is None and any(entry.is_named("Secret", namespace, name) for entry in external):
                maker = Maker("external", "", None)
            known = ExpectedSecret(namespace, name, OPAQUE, (), False, True, (), maker)
        found[namespace, name] = replace(
            known,
            type=kind if known.type == OPAQUE else known.type,
            keys=tuple(sorted({*known.keys, *use.keys})),
            whole=known.whole or not use.keys,
            optional=known.optional and use.optional,
            uses=known.uses if use in known.uses else (*known.uses, use),
        )
    return [replace(item, uses=tuple(sorted(item.uses, key=lambda use: use.app))) for _, item in sorted(found.items())]


def missing_keys(secrets: list[ExpectedSecret]) -> Iterator[Diagnostic]:
    """Yield a warning (KG0330) for each key that is read and not made."""
    for secret in secrets:
        maker = secret.maker
        if maker is None or maker.keys is None:
            continue
        where = f" at {maker.mark}" if maker.mark else f" of {maker.app}"
        source = "Secret encrypted with SOPS" if maker.source == "SOPS" else maker.source
        for use in secret.uses:
            for key in use.keys:
                if key in maker.keys or use.optional:
                    continue
                yield Diagnostic(
                    "KG0330",
                    f"`{secret.name}` has no key `{key}`: the {source}{where} does not make it",
                    use.mark,
                    did_you_mean(key, maker.keys) or f"its keys: {', '.join(sorted(maker.keys)) or 'none'}",
                    Severity.WARNING,
                    use.field,
                )
