"""What objects of a kind can do beyond their namespace."""

from __future__ import annotations

from functools import cache

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


@cache
def harmless_kinds() -> dict[str, str]:
    """Return the kinds that act in their own namespace only, by type, each with the reason."""
    return _listed("harmless")


@cache
def effects() -> dict[str, str]:
    """Return what objects of further kinds do, by type, in one clause."""
    return _listed("effects")


@cache
def protections() -> dict[str, str]:
    """Return the kinds whose removal takes a protection away, by type, each with what they protect from."""
    return _listed("protections")


def _listed(field: str) -> dict[str, str]:
    groups = yaml_files.load("kind_effects").values()
    return {type_: text for group in groups for type_, text in group.get(field, {}).items()}
