"""Buckets that kaigen.yaml grants, as patterns of admission policies and as checks of kaigen.

A URI grants the bucket or folder, and everything below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kaigen.config.globs import NOTHING, is_granted, pattern_of
from kaigen.kubernetes.buckets import SCHEMES, is_bucket_uri, schemes_pattern

_OF_PATH = r"[^\t\n\r ,?#]"
_QUERY = r"([?#][\s\S]*)?"


def bucket_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 for the buckets of these URIs, and everything below them.

    The pattern of a URI, `BUCKET_URI`, must match, too: a star would match a path with `..`.
    """
    places: dict[str, set[str]] = {}
    for glob in globs:
        scheme, place = _place(glob)
        if scheme in SCHEMES:
            places.setdefault(schemes_pattern(scheme), set()).add(pattern_of(place, _OF_PATH))
    listed = (rf"({schemes})://({'|'.join(sorted(below))})(/{_OF_PATH}*)?{_QUERY}" for schemes, below in places.items())
    return "|".join(sorted(listed)) or NOTHING


def is_bucket_granted(uri: str, globs: Iterable[str]) -> bool:
    """Return whether a URI is that of one of the buckets, or below it, in linear time.

    A URI that is not well-formed, such as one with `..`, is granted to nobody.
    """
    if not is_bucket_uri(uri):
        return False
    scheme, _, rest = uri.partition("://")
    family = schemes_pattern(scheme.lower())
    places = [place for found, place in map(_place, globs) if found in SCHEMES and schemes_pattern(found) == family]
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    return is_granted(path, places) or is_granted(path, [f"{place}/*" for place in places])


def _place(glob: str) -> tuple[str, str]:
    """Return the scheme, and what follows it."""
    scheme, _, rest = glob.partition("://")
    return scheme.lower(), rest.removesuffix("*").rstrip("/")
