"""Which labels and annotations a tenant needs a grant for, in admission policies and in checks of kaigen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from kaigen.catalog import controllers
from kaigen.config.globs import glob_pattern, is_granted


@cache
def key_pattern() -> str:
    """Return a pattern of RE2 and Python for the whole of a key that a controller obeys."""
    domains = "|".join(map(re.escape, controllers.domains()))
    return rf"([^/]*\.)?({domains})/[\s\S]*|{glob_pattern(controllers.keys())}"


def allowed_entries() -> tuple[str, ...]:
    """Return globs, `KEY` or `KEY=VALUE`, of what needs no grant; the hosts of annotations need one of `hosts`."""
    return (*controllers.harmless_entries(), *controllers.host_keys())


def is_controller_key(key: str) -> bool:
    """Return whether a controller obeys a label or an annotation of this key."""
    return re.fullmatch(key_pattern(), key) is not None


def is_raw_key(key: str) -> bool:
    """Return whether a controller inserts the value of an annotation into its configuration as it is."""
    return is_granted(key, controllers.raw_keys())


def common_entries(*given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels and annotations of controllers that kaigen.yaml gives to every object, as `KEY=VALUE`."""
    return tuple(
        f"{key}={value}" for entries in given for key, value in entries.items() if is_controller_key(key)
    )
