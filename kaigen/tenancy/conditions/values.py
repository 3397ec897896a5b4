"""Conditions of single values and of keys: granted, matching a pattern, or not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping, text
from kaigen.tenancy import cel
from kaigen.tenancy.cel import matches
from kaigen.tenancy.reach import Refusal, refuse_value


class Granted(Struct, frozen=True):
    """A text that the tenant is granted.

    Attributes:
        grant: field of a tenant.
        always: globs of values that need no grant.
    """

    grant: str = ""
    always: tuple[str, ...] = ()

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what no glob matches."""
        granted = (*tenant.granted(self.grant), *self.always)
        return [] if isinstance(value, str) and is_granted(value, granted) else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs."""
        return matches(value, glob_pattern((*tenant.granted(self.grant), *self.always)))


class GrantedItems(Struct, frozen=True):
    """A text with commas between texts that the tenant is granted.

    Attributes:
        grant: field of a tenant.
        always: globs of values that need no grant.
    """

    grant: str = ""
    always: tuple[str, ...] = ()

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the first item that no glob matches."""
        granted = (*tenant.granted(self.grant), *self.always)
        items = value.split(",") if isinstance(value, str) else [str(value)]
        return next((refuse_value(item) for item in items if not is_granted(item, granted)), [])

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs with each item."""
        pattern = glob_pattern((*tenant.granted(self.grant), *self.always))
        return f"{value}.split(',').all(o, {matches('o', pattern)})"


class Matching(Struct, frozen=True):
    """A text that a pattern matches.

    Attributes:
        pattern: of RE2 and Python, for the whole text.
    """

    pattern: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what the pattern does not match."""
        return [] if re.fullmatch(self.pattern, str(value)) else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the pattern."""
        return matches(value, self.pattern)


class Missing(Struct, frozen=True):
    """No value."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse every value."""
        return refuse_value(value) if isinstance(value, str) else [Refusal("")]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Refuse every value."""
        return "false"


class NotTrue(Struct, frozen=True):
    """Any value but true."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse true."""
        return [Refusal("")] if value is True else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Refuse true."""
        return f"{value} != true"


class NotEmpty(Struct, frozen=True):
    """A text that is not empty.

    Attributes:
        hint: what to do.
    """

    hint: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse an empty text."""
        return [] if value else [Refusal("", hint=self.hint)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with an empty text."""
        return f"{value} != ''"


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
