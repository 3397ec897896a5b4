"""Conditions of names that kaigen.yaml takes for itself."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import identity_of, mapping
from kaigen.tenancy.cel import TYPE, at, matches, texts
from kaigen.tenancy.condition import Refusal, refuse_value


class FreeObject(Struct, frozen=True):
    """An object that has not the name of one that kaigen writes for the namespace.

    Attributes:
        type: of what a name refers to; empty for the whole object.
    """

    type: str = ""
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        path: FieldPath = ()
        kind, name = self.type, str(value)
        if not self.type:
            identity = identity_of(mapping(value))
            kind, name, path = identity.type, identity.name, ("metadata", "name")
        if not is_granted(f"{kind}/{name}", tenant.reserved.objects):
            return []
        return [Refusal(f"{kind.partition('.')[0]} `{name}`", path)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the type with the name."""
        if not tenant.reserved.objects:
            return "true"
        kind, name = f"'{self.type}'", value
        if not self.type:
            kind, name = TYPE, f"{at(value, ('metadata', 'name'))}.orValue('')"
        entry = f"({kind} + '/' + {name})"
        return f"!{matches(entry, glob_pattern(tenant.reserved.objects))}"


class FreeAccount(Struct, frozen=True):
    """The name of a ServiceAccount that applies no objects."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        return refuse_value(value) if value in tenant.reserved.accounts else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with the names."""
        return f"!({value} in {texts(tenant.reserved.accounts)})"


class FreeSecret(Struct, frozen=True):
    """The name of a Secret that Flux does not read."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        return refuse_value(value) if isinstance(value, str) and value in tenant.reserved.secrets else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with the names."""
        return f"!({value} in {texts(tenant.reserved.secrets)})"
