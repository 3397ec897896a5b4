"""The settings of the block `tenants` of kaigen.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct


class Tenant(Struct, frozen=True):
    """A team with folders of specs, namespaces, and what its specs may reach outside these.

    Attributes:
        name: its name.
        folders: of its specs, relative to the repository.
        namespaces: that only it uses.
        grants: globs of what it may reach, by field of kaigen.yaml.
        gpus: GPUs that its apps may request in all; None for any number.
    """

    name: str
    folders: tuple[str, ...]
    namespaces: tuple[str, ...]
    grants: dict[str, tuple[str, ...]]
    gpus: int | None = None

    def granted(self, field: str) -> tuple[str, ...]:
        """Return the globs of a field."""
        return self.grants.get(field, ())

    def owns(self, source: str) -> bool:
        """Return whether a file is in one of the folders."""
        return any(source == folder or source.startswith(f"{folder}/") for folder in self.folders)


def glob_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 and Python for the whole of a text that one of the globs matches.

    `*` matches any text without blanks and commas, also an empty one.
    """
    patterns = {_pattern(glob) for glob in globs}
    return "|".join(sorted(patterns)) if patterns else _NOTHING


def is_granted(value: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs matches a text."""
    return re.fullmatch(glob_pattern(globs), value) is not None


def bucket_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 and Python for the buckets of these URIs, and everything below them."""
    places = {_pattern(glob.partition("://")[2].removesuffix("*").rstrip("/")) for glob in globs}
    below = "|".join(sorted(places))
    return rf"(s3|gs)://({below})(/{_TEXT}*)?" if places else _NOTHING


_NOTHING = r"[^\s\S]"
_TEXT = r"[^\t\n\r ,]"


def _pattern(glob: str) -> str:
    steps = {"*": f"{_TEXT}*", "?": _TEXT}
    return "".join(steps.get(each) or re.escape(each) for each in glob)


def tenant_of_file(source: str, tenants: Sequence[Tenant]) -> Tenant | None:
    """Return the tenant whose folder contains a file."""
    return next((tenant for tenant in tenants if tenant.owns(source)), None)


def tenant_of_namespace(namespace: str, tenants: Sequence[Tenant]) -> Tenant | None:
    """Return the tenant that owns a namespace."""
    return next((tenant for tenant in tenants if namespace in tenant.namespaces), None)
