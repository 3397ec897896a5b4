"""Conditions of claims, of buckets, and of images that BuildKit reads or writes.

The URI of a bucket or a folder in it grants everything below it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kaigen.config.globs import NOTHING, glob_pattern, is_granted, pattern_of
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.buckets import (
    ANY_URI,
    BUCKET_DRIVERS,
    BUCKET_URI,
    HANDLE,
    INLINE_OPTIONS,
    MARK,
    SCHEMES,
    WEB_BUCKET,
    bucket_uris,
    is_bucket_uri,
    location,
    schemes_pattern,
)
from kaigen.kubernetes.manifest import mapping
from kaigen.tenancy.cel import at, matches, text
from kaigen.tenancy.reach import Refusal, refuse_value

_OF_PATH = r"[^\t\n\r ,?#]"
_QUERY = r"([?#][\s\S]*)?"

_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation that overrides the storage class of a claim (source: Kubernetes, well-known annotations)."""


class NamedVolume(Struct, frozen=True):
    """A claim that names its volume if its storage class is empty: it would get any volume that no claim has."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse an empty class without a volume."""
        claim = mapping(value)
        spec = mapping(claim.get("spec"))
        noted = mapping(mapping(claim.get("metadata")).get("annotations")).get(_ANNOTATION)
        if "" not in (spec.get("storageClassName"), noted) or spec.get("volumeName"):
            return []
        path = ("spec", "storageClassName") if spec.get("storageClassName") == "" else ("metadata", "annotations")
        return [Refusal("", path)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the class and the volume."""
        classes = (
            f"{at(value, ('spec', 'storageClassName'))}.orValue('x')",
            f"{at(value, ('metadata', 'annotations', _ANNOTATION))}.orValue('x')",
        )
        named = " && ".join(f"{each} != ''" for each in classes)
        return f"(({named}) || {at(value, ('spec', 'volumeName'))}.orValue('') != '')"


BUILD_OPTION = r"--(output|import-cache|export-cache)="
"""The beginning of an argument by which BuildKit reads or writes images, as a pattern of RE2 and Python."""

BUILD_IMAGE = r'(--[a-z-]+=)?"? *(ref|name)='
"""What precedes the image in a field of such an argument, as a pattern of RE2 and Python."""


class BucketText(Struct, frozen=True):
    """A text in which every URI of a bucket is that of one that the tenant is granted."""

    grant: str = "buckets"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse the URIs of other buckets, anywhere in the text."""
        for uri in dict.fromkeys(bucket_uris(value) if isinstance(value, str) else ()):
            yield from _bucket_refusals(uri, tenant.granted(self.grant))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each URI."""
        page = f"uri.matches({text(f'^({_WEB})://')}) && !{matches('uri', WEB_BUCKET)}"
        granted = _is_granted("uri", tenant.granted(self.grant))
        return f"{value}.findAll({text(ANY_URI)}).all(uri, ({page}) || {granted})"


class BucketVolume(Struct, frozen=True):
    """A volume whose driver mounts a bucket that the tenant is granted, or no bucket.

    Attributes:
        inline: whether it is the volume of a pod, and not the `spec` of a PersistentVolume.
        grant: field of a tenant.
    """

    inline: bool = False
    grant: str = "buckets"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse another bucket."""
        bucket = location(mapping(value), inline=self.inline)
        return _bucket_refusals(bucket, tenant.granted(self.grant)) if bucket else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Build the URI for the driver, and match it."""
        options = f"{at(value, INLINE_OPTIONS)}.orValue('').split(',')"
        if not self.inline:
            options = f"({at(value, ('mountOptions',))}.orValue([]) + {options})"
        found = "true"
        driver = f"{at(value, ('csi', 'driver'))}.orValue('')"
        for row in BUCKET_DRIVERS:
            name = f"{at(value, ('csi', *(row.inline if self.inline else row.path)))}.orValue('')"
            if row.marked and not self.inline:
                name = f"({matches(name, MARK)} ? {name}.split(':')[0] : {name})"
            account = f"{at(value, ('csi', *row.account))}.orValue('') + '/' + " if row.account else ""
            if row.account and not self.inline:
                handle = f"{at(value, ('csi', 'volumeHandle'))}.orValue('')"
                account += f"({matches(handle, HANDLE)} ? '' : ' ') + "
            place = f"'{row.scheme}://' + {account}{name}"
            if row.word:
                chosen = f"{options}.filter(o, o.matches({text(row.word)}))"
                rest = f"o.startsWith({text(row.option)}) ? o.substring({len(row.option)}) : o"
                place += f" + '/' + {chosen}.map(o, {rest}).join(' ')"
            granted = _is_granted("uri", tenant.granted(self.grant))
            found = f"({driver} == {text(row.driver)} ? [{place}].all(uri, {granted}) : {found})"
        return found


_WEB = schemes_pattern("https")
_PATH_HINT = (
    "name a bucket and a path whose parts have letters, digits, `_`, `.`, `=`, `+` and `-`, and begin with one of the "
    "first three; no other path is below a granted one"
)


def _bucket_refusals(uri: str, granted: Sequence[str]) -> list[Refusal]:
    """Refuse the URI of a bucket that is not granted."""
    if is_bucket_granted(uri, granted):
        return []
    return [Refusal(f"`{uri}`", hint="" if is_bucket_uri(uri) else _PATH_HINT)]


def _is_granted(uri: str, granted: Sequence[str]) -> str:
    """Return the expression that the URI of a bucket is granted."""
    return f"({matches(uri, BUCKET_URI)} && {matches(uri, bucket_pattern(granted))})"


class BuildArgument(Struct, frozen=True):
    """A text without an image that BuildKit reads or writes, or with one that the tenant is granted."""

    grant: str = "images"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the first image that no glob matches."""
        granted = tenant.granted(self.grant)
        return next((refuse_value(image) for image in _build_images(value) if not is_granted(image, granted)), [])

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each field with an image."""
        image = f"o.matches({text(f'^{BUILD_IMAGE}')})"
        granted = matches("o", f"{BUILD_IMAGE}({glob_pattern(tenant.granted(self.grant))})")
        fields = f"{value}.split(',').all(o, !{image} || {granted})"
        return f"(!{value}.matches({text(f'^{BUILD_OPTION}')}) || {fields})"


def _build_images(argument: object) -> Iterator[str]:
    """Yield the images of an argument by which BuildKit reads or writes images."""
    if isinstance(argument, str) and re.match(BUILD_OPTION, argument):
        for field in argument.split(","):
            found = re.match(BUILD_IMAGE, field)
            if found:
                yield field[found.end() :]


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
