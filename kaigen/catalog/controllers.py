"""Labels and annotations that controllers of a cluster obey, and those of them that reach nothing."""

from __future__ import annotations

from functools import cache

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


@cache
def domains() -> dict[str, str]:
    """Return what precedes the slash of keys that controllers obey, and who does; each includes its subdomains."""
    groups = yaml_files.load("controllers").values()
    return {domain: group["by"] for group in groups for domain in group["domains"]}


def words() -> tuple[str, ...]:
    """Return the keys without a domain that controllers obey, in lower case."""
    return tuple(word.lower() for word in _listed("words"))


def host_keys() -> tuple[str, ...]:
    """Return the annotations whose values are hosts, with commas between them."""
    return _listed("hosts")


def raw_keys() -> tuple[str, ...]:
    """Return globs of annotations with configuration that a controller inserts as it is."""
    return _listed("raw")


def harmless_entries() -> tuple[str, ...]:
    """Return what reaches nothing, as `KEY` or `KEY=VALUE` without wildcards."""
    return _listed("harmless")


@cache
def _listed(field: str) -> tuple[str, ...]:
    groups = yaml_files.load("controllers").values()
    return tuple(sorted(each for group in groups for each in group.get(field, ())))
