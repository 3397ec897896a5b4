"""The flags of vLLM by version, read from its own parser by `tools/facts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from kaigen.catalog.engines import Version, parse_version
from kaigen.catalog.json_tables import load_table
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files

Minor = tuple[int, int]
"""A version without its patch release, which does not change flags."""


class Flag(Struct, frozen=True):
    """A flag in one version.

    Attributes:
        names: long names without dashes, and short names with one.
        type: of its values: `text`, `int`, `float` or `json`; empty for a switch.
        words: words that it accepts besides a number.
        many: `list` if values follow it as arguments of their own, `repeat` if it is given once for each value,
            `json` if they are a JSON list.
        choices: its only values; empty for any.
        registered: names that vLLM registers for it, to which plugins add more; empty for a flag without a registry.
        off: names that switch it off.
        default: its default as JSON; None for none, or one that the parser computes.
        deprecated: why it should not be used; empty for a flag that should.
    """

    names: tuple[str, ...]
    type: str = ""
    words: tuple[str, ...] = ()
    many: str = ""
    choices: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    default: Any = None
    deprecated: str = ""


def minor_of(version: Version) -> Minor:
    """Return a version without its patch release."""
    return version[0], version[1] if len(version) > 1 else 0


@cache
def known_versions() -> tuple[Minor, ...]:
    """Return the versions whose flags are known, oldest first."""
    return tuple(minor_of(parse_version(text)) for text in load_table("vllm_flags")["versions"])


def known_range() -> str:
    """Return the known versions as text, such as `0.10 to 0.33`."""
    known = known_versions()
    return f"{version_text(known[0])} to {version_text(known[-1])}"


def nearest_version(version: Version | None) -> Minor:
    """Return the newest known version that is not newer than a version; the newest for None."""
    known = known_versions()
    older = [each for each in known if version is None or each <= minor_of(version)]
    return older[-1] if older else known[0]


@cache
def flags_of(version: Minor) -> Mapping[str, Flag]:
    """Return the flags of a known version by each of their names, such as `tp` and `no-enable-prefix-caching`."""
    found: dict[str, Flag] = {}
    for row in rows_of(known_versions().index(version)):
        flag = msgspec.convert(row, Flag)
        found |= dict.fromkeys(flag.names, flag)
    return found


def rows_of(place: int) -> Iterator[dict[str, Any]]:
    """Yield the flags of the version at a place of the table, as it has them."""
    for changes in load_table("vllm_flags")["flags"].values():
        row: dict[str, Any] | None = None
        for since, change in changes:
            if since > place:
                break
            row = None if change is None else _changed(row or {}, change)
        if row is not None:
            yield row


def _changed(row: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a flag with what a version changes: `+choices` adds words, `-choices` removes some, None removes a key."""
    new = dict(row)
    for key, value in change.items():
        name = key.lstrip("+-")
        if key.startswith("-"):
            new[name] = [word for word in new[name] if word not in value]
        elif key.startswith("+"):
            new[name] = sorted([*new[name], *value], key=word_order)
        else:
            new[name] = value
    return {key: value for key, value in new.items() if value is not None}


def word_order(word: str) -> tuple[int, str]:
    """Return the key that sorts words by name and numbers by size."""
    return len(word) if word.isdigit() else 0, word


def _known_in(part: str, name: str, version: Minor) -> bool:
    place = known_versions().index(version)
    return any(first <= place <= last for first, last in load_table("vllm_flags")[part].get(name, ()))


@cache
def environment_of(version: Minor) -> tuple[str, ...]:
    """Return the environment variables that a known version reads."""
    return tuple(name for name in load_table("vllm_flags")["environment"] if _known_in("environment", name, version))


def has_metric(name: str, version: Minor) -> bool:
    """Return whether a known version has a metric, which Prometheus may show with the suffix `_total`."""
    return _known_in("metrics", name.removesuffix("_total"), version)


def has_package(name: str, version: Minor) -> bool:
    """Return whether a known version installs a package that one of its flags needs."""
    return _known_in("packages", name, version)


def first_name(names: Sequence[str]) -> str:
    """Return the first long name of a flag."""
    return next((name for name in names if not name.startswith("-")), names[0])


def versions_with(name: str) -> tuple[Minor, ...]:
    """Return the known versions that have a flag."""
    return tuple(version for version in known_versions() if name in flags_of(version))


def names_with(version: Minor, many: str) -> tuple[str, ...]:
    """Return the names of a version's flags that take several values in one way, without short names."""
    every = flags_of(version).items()
    return tuple(sorted(name for name, flag in every if flag.many == many and not name.startswith("-")))


def successor_of(name: str, version: Minor) -> str:
    """Return what takes the place of a removed flag in a version; empty when nothing is known to."""
    for row in yaml_files.load("engines")["engines"]["vllm"]["successors"]:
        if name in row["flags"] and parse_version(row["since"]) <= version:
            return str(row["use"])
    return ""


def is_removed(name: str) -> bool:
    """Return whether the newest known version no longer has a flag."""
    known = versions_with(name)
    return bool(known) and known[-1] != known_versions()[-1]


def version_text(version: Version) -> str:
    """Return a version as text."""
    return ".".join(map(str, version))
