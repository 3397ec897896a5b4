"""Conditions of names of classes, and of other objects of the cluster that an object names."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping, text
from kaigen.tenancy import cel
from kaigen.tenancy.condition import Refusal, refuse_value

_CLUSTER = "Cluster"
"""What kinds of the whole cluster begin with, where a namespaced kind does the same."""


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
        return [] if is_allowed else refuse_value(f"{self.kind}/{value}")

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs."""
        return cel.matches(value, glob_pattern((*tenant.classes(self.kind), *self.always)))


class NamespacedKind(Struct, frozen=True):
    """A mapping with `kind` and `name` of an object in the same namespace, or of one of the cluster that is granted."""

    grant: str = "classes"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the name of an object of the cluster."""
        kind = text(mapping(value).get("kind"))
        shown = f"{kind}/{text(mapping(value).get('name'))}"
        is_allowed = not kind.startswith(_CLUSTER) or is_granted(shown, tenant.granted(self.grant))
        return [] if is_allowed else refuse_value(shown)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs with the kind and the name."""
        kind, name = (f"{cel.at(value, (field,))}.orValue('')" for field in ("kind", "name"))
        granted = cel.matches(f"({kind} + '/' + {name})", glob_pattern(tenant.granted(self.grant)))
        return f"(!{kind}.startsWith({cel.text(_CLUSTER)}) || {granted})"
