"""The Secrets that single apps read and make: data that the cache stores."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kaigen.diagnostics.diagnostic import Mark


class Use(Struct, frozen=True, array_like=True):
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


class Maker(Struct, frozen=True, array_like=True):
    """The object in the tree that makes a Secret.

    Attributes:
        source: `ExternalSecret`, `SealedSecret`, `SOPS`, `Secret`, `cert-manager`, or `external` for a Secret that
            kaigen.yaml lists as existing.
        app: `NAMESPACE/NAME`; empty without.
        keys: the keys that the Secret will have; None when they are unknown.
        mark: the line that defines it; None for objects that kaigen writes.
    """

    source: str
    app: str
    keys: frozenset[str] | None
    mark: Mark | None = None


class Facts(Struct, frozen=True, array_like=True):
    """The Secrets that single apps read and make.

    Attributes:
        reads: namespace, name and type of a Secret, with a place that reads it.
        makes: namespace and name of a Secret, with the object that makes it.
    """

    reads: tuple[tuple[str, str, str, Use], ...] = ()
    makes: tuple[tuple[str, str, Maker], ...] = ()


def merge_facts(facts: Iterable[Facts]) -> Facts:
    """Return the facts about several apps as one."""
    every = list(facts)
    return Facts(
        tuple(read for item in every for read in item.reads), tuple(made for item in every for made in item.makes)
    )
