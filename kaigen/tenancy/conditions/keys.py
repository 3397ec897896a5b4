"""Conditions of keys: those of mappings, and those by which pods choose nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping, text
from kaigen.tenancy import cel
from kaigen.tenancy.condition import Refusal, refuse_value

EXCLUDES = ("NotIn", "DoesNotExist")
"""Operators by which a node affinity avoids nodes."""


class NoKeys(Struct, frozen=True):
    """A mapping without keys that match a pattern, except those that the tenant is granted.

    Attributes:
        pattern: of RE2 and Python, for whole keys.
        grant: field of a tenant.
        always: globs of keys that need no grant.
    """

    pattern: str
    grant: str = ""
    always: tuple[str, ...] = ()

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each key; one without a value is none."""
        granted = (*tenant.granted(self.grant), *self.always)
        for key, item in mapping(value).items():
            if item is not None and _is_refused(str(key), self.pattern, granted):
                yield Refusal(f"`{key}`", (key,))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each key."""
        allowed = (*tenant.granted(self.grant), *self.always)
        exempt = f" && !{cel.matches('key', glob_pattern(allowed))}" if allowed else ""
        return f"!{value}.exists(key, {cel.matches('key', self.pattern)}{exempt})"


class NodeKey(Struct, frozen=True):
    """A toleration, or a requirement of a node affinity, whose `key` does not match a pattern or is granted.

    A requirement that excludes nodes may have any key.

    Attributes:
        pattern: of RE2 and Python, for whole keys.
        grant: field of a tenant.
    """

    pattern: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the key; a missing one is that of all taints."""
        key = text(mapping(value).get("key"))
        is_refused = _is_refused(key, self.pattern, tenant.granted(self.grant))
        if mapping(value).get("operator") in EXCLUDES or not is_refused:
            return []
        return refuse_value(key) if key else [Refusal("of all taints")]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the key."""
        granted = tenant.granted(self.grant)
        key = f"{cel.at(value, ('key',))}.orValue('')"
        excludes = f"{cel.at(value, ('operator',))}.orValue('') in {cel.texts(EXCLUDES)}"
        exempt = f" || {cel.matches(key, glob_pattern(granted))}" if granted else ""
        return f"({excludes} || !{cel.matches(key, self.pattern)}{exempt})"


def _is_refused(key: str, pattern: str, granted: tuple[str, ...]) -> bool:
    return re.fullmatch(pattern, key) is not None and not is_granted(key, granted)
