"""Conditions of single values: texts that are granted, that match a pattern, or that must not be there."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy.cel import matches
from kaigen.tenancy.condition import Refusal, refuse_value


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
