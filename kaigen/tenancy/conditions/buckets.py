"""Conditions of buckets, and of images that BuildKit reads or writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import bucket_pattern, glob_pattern, is_bucket_granted, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.bucket_drivers import BUCKET_DRIVERS, INLINE_OPTIONS, location
from kaigen.kubernetes.manifest import mapping
from kaigen.tenancy.cel import at, matches, text
from kaigen.tenancy.condition import Refusal, quoted

OPTION = r"(--[a-z0-9-]+=)?"
"""What may precede the URI of a bucket in an argument, as a pattern of RE2 and Python."""

URI = rf"{OPTION}(s3|gs)://"
"""The beginning of an argument with the URI of a bucket."""

BUILD_OPTION = r"--(output|import-cache|export-cache)="
"""The beginning of an argument by which BuildKit reads or writes images, as a pattern of RE2 and Python."""

BUILD_IMAGE = r'(--[a-z-]+=)?"? *(ref|name)='
"""What precedes the image in a field of such an argument, as a pattern of RE2 and Python."""


class BucketText(Struct, frozen=True):
    """A text that is no URI of a bucket, or one that the tenant is granted."""

    grant: str = "buckets"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the URI of another bucket."""
        if not isinstance(value, str) or not re.match(URI, value):
            return []
        uri = re.sub(f"^{OPTION}", "", value)
        return [] if is_bucket_granted(uri, tenant.granted(self.grant)) else quoted(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the URI."""
        pattern = f"{OPTION}({bucket_pattern(tenant.granted(self.grant))})"
        return f"(!{value}.matches({text('^' + URI)}) || {matches(value, pattern)})"


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
        is_allowed = not bucket or is_bucket_granted(bucket, tenant.granted(self.grant))
        return [] if is_allowed else quoted(bucket)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Build the URI for the driver, and match it."""
        pattern = bucket_pattern(tenant.granted(self.grant))
        options = f"{at(value, ('mountOptions',))}.orValue([])"
        if self.inline:
            options = f"{at(value, INLINE_OPTIONS)}.orValue('').split(',')"
        found = "true"
        driver = f"{at(value, ('csi', 'driver'))}.orValue('')"
        for row in BUCKET_DRIVERS:
            path = row.inline if self.inline else row.path
            name = f"{at(value, ('csi', *path))}.orValue('').split(':')[0]"
            folders = "''"
            if row.word:
                chosen = f"{options}.filter(o, o.contains({text(row.word)}))"
                folders = f"{chosen}.map(o, o.replace({text(row.option)}, '')).join(' ')"
            place = f"('{row.scheme}://' + {name} + '/' + {folders})"
            found = f"({driver} == {text(row.driver)} ? {matches(place, pattern)} : {found})"
        return found


class BuildArgument(Struct, frozen=True):
    """A text without an image that BuildKit reads or writes, or with one that the tenant is granted."""

    grant: str = "images"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the first image that no glob matches."""
        granted = tenant.granted(self.grant)
        return next((quoted(image) for image in _build_images(value) if not is_granted(image, granted)), [])

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
