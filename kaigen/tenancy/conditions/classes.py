"""Conditions of names of classes."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy import cel
from kaigen.tenancy.condition import Refusal, quoted


class GrantedClass(Struct, frozen=True):
    """The name of a class that the tenant is granted as `KIND/NAME`.

    Attributes:
        kind: of the class.
        always: names that need no grant.
        grant: field of a tenant.
    """

    kind: str
    always: tuple[str, ...] = ()
    grant: str = "classes"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what no glob matches."""
        granted = (*tenant.classes(self.kind), *self.always)
        is_allowed = isinstance(value, str) and is_granted(value, granted)
        return [] if is_allowed else quoted(f"{self.kind}/{value}")

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs."""
        return cel.matches(value, glob_pattern((*tenant.classes(self.kind), *self.always)))
