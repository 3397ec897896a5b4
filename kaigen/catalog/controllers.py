"""Labels and annotations by which controllers of a cluster reach beyond the namespace of an object."""

from __future__ import annotations

from functools import cache

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


def domains() -> tuple[str, ...]:
    """Return what precedes the slash of keys that controllers obey; each includes its subdomains."""
    return _listed("domains")


def keys() -> tuple[str, ...]:
    """Return globs of further keys that controllers obey."""
    return _listed("keys")


def host_keys() -> tuple[str, ...]:
    """Return the annotations whose values are hosts, with commas between them."""
    return _listed("hosts")


def raw_keys() -> tuple[str, ...]:
    """Return globs of annotations with configuration that a controller inserts as it is."""
    return _listed("raw")


def harmless_entries() -> tuple[str, ...]:
    """Return globs of `KEY` or `KEY=VALUE` that reach nothing."""
    return _listed("harmless")


@cache
def _listed(field: str) -> tuple[str, ...]:
    groups = yaml_files.load("controllers").values()
    return tuple(sorted(each for group in groups for each in group.get(field, ())))
