"""Which texts are URIs of buckets and of folders in them, as patterns of RE2 and Python.

One pattern decides for the specs, for what kaigen.yaml allows and grants, and for the admission policies. A path with
an empty part, `.`, `..` or another character than these belongs to no folder, because clients read it differently:
aws-sdk-go 1 and gcsfuse remove `..` from paths, and others decode `%2e`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kaigen.regex.pattern import matches


def _any_case(text: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else re.escape(each) for each in text)


_FAMILIES: tuple[tuple[str, ...], ...] = (
    ("s3", "s3a", "s3n", "gs", "gcs"),
    ("abfs", "abfss"),
    ("wasb", "wasbs"),
    ("az",),
    ("adl",),
    ("http", "https"),
)
"""Schemes that name the same bucket. The downloader uses the S3 protocol for Google's buckets, too."""

SCHEMES = tuple(scheme for family in _FAMILIES for scheme in family)
"""Schemes of the URIs of buckets."""

_NAME = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
_PATH = r"(/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*/?"
_AUTHORITY = r"[A-Za-z0-9][A-Za-z0-9._@-]*"
_QUERY = r"([?#][\s\S]*)?"

LOCATION = f"(s3|gs)://{_NAME}{_PATH}"
"""The URI of a bucket and a folder in specs. Source: Amazon S3's rules for bucket names; for keys, the safe characters
that have no meaning to a shell or a mount helper."""


def schemes_pattern(scheme: str) -> str:
    """Return a pattern of the schemes that name the same bucket as one of `SCHEMES`, in any case."""
    family = next(each for each in _FAMILIES if scheme in each)
    return "|".join(map(_any_case, sorted(family)))


_OTHERS = "|".join(schemes_pattern(family[0]) for family in _FAMILIES[1:-1])
BUCKET_URI = (
    f"({schemes_pattern('s3')})://{_NAME}{_PATH}|({_OTHERS})://{_AUTHORITY}{_PATH}"
    f"|({schemes_pattern('http')})://{_AUTHORITY}{_PATH}{_QUERY}"
)
"""The whole of a URI of a bucket that somebody can be granted."""

_END = r"\s\"'`,;|<>()\[\]{}\x00-\x1f"
ANY_URI = f"({'|'.join(map(_any_case, sorted(SCHEMES, reverse=True)))})://[^{_END}]*"
"""A URI of one of `SCHEMES` within a text."""

_STORES = (
    rf"{_any_case('s3')}[A-Za-z0-9.-]{{0,100}}\.{_any_case('amazonaws.com')}(\.{_any_case('cn')})?"
    rf"|{_any_case('storage.googleapis.com')}|{_any_case('storage.cloud.google.com')}"
)
_ACCOUNTS = rf"({_any_case('blob')}|{_any_case('dfs')})\.{_any_case('core')}\.[A-Za-z0-9.-]+"
_REST = r"\.?(:[0-9]*)?"
WEB_BUCKET = (
    f"({schemes_pattern('http')})://"
    rf"([^/?#]+\.({_STORES}|{_ACCOUNTS}){_REST}([/?#][\s\S]*)?|([^/?#]*@)?({_STORES}){_REST}/[\s\S]+)"
)
"""The whole of a URL of a bucket at Amazon, Google or Azure (sources: Amazon S3, virtual hosting of buckets; Cloud
Storage, request endpoints; Azure Storage, resource URIs)."""

_WEB_URI = re.compile(f"({schemes_pattern('http')})://")
_ANY_URI = re.compile(ANY_URI, re.ASCII)
_BUCKET_URI = re.compile(BUCKET_URI)


def is_bucket_uri(uri: str) -> bool:
    """Return whether a text is the URI of a bucket or folder that somebody can be granted."""
    return _BUCKET_URI.fullmatch(uri) is not None


def bucket_uris(text: str) -> Iterator[str]:
    """Yield the URIs of buckets that are anywhere in a text."""
    for found in _ANY_URI.finditer(text):
        uri = found[0]
        if not _WEB_URI.match(uri) or matches(f"^({WEB_BUCKET})$", uri):
            yield uri
