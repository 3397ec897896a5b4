"""Conditions of namespaces, of names of objects in other namespaces, and of names of classes of the cluster."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import join_type, mapping, text
from kaigen.tenancy import cel
from kaigen.tenancy.cel import among, at, matches, texts
from kaigen.tenancy.reach import Refusal, refuse_value

WORKLOAD_IDENTITIES = ("none", "aws-eks")
"""Providers of KEDA's pod identities that are never the identity of KEDA itself (source: KEDA's documentation)."""


class OwnNamespace(Struct, frozen=True):
    """One of the tenant's namespaces."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse another namespace."""
        return [] if value in tenant.namespaces else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with the namespaces."""
        return among(value, tenant)


class Reference(Struct, frozen=True):
    """A mapping with `name` whose `namespace` is missing, one of the tenant's, or granted with the name.

    Attributes:
        grant: field of a tenant, with `NAMESPACE/NAME`.
    """

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the name of an object in another namespace."""
        target = mapping(value)
        place = target.get("namespace")
        shown = f"{place}/{target.get('name')}"
        own = place is None or place in tenant.namespaces
        return [] if own or is_granted(shown, tenant.granted(self.grant)) else refuse_value(shown)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the namespace, or match the globs."""
        place = at(value, ("namespace",))
        shown = f"({place}.value() + '/' + {at(value, ('name',))}.orValue(''))"
        own = among(f"{place}.value()", tenant)
        granted = matches(shown, glob_pattern(tenant.granted(self.grant)))
        return f"(!{place}.hasValue() || {own} || {granted})"


class ReferenceKind(Struct, frozen=True):
    """A mapping with `kind` and `group` of a known type. Others may name what is in no namespace.

    Attributes:
        types: that may be named, as in `Service`; the first is that of a mapping without these fields.
    """

    types: tuple[str, ...]
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse another type."""
        target = mapping(value)
        kind, group = (
            str(default if (found := target.get(field)) is None else found) for field, default in self._defaults()
        )
        return [] if f"{kind}.{group}" in self._known() else refuse_value(join_type(group, kind))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the kind and the group."""
        kind, group = (f"{at(value, (field,))}.orValue({cel.text(default)})" for field, default in self._defaults())
        return f"({kind} + '.' + {group}) in {texts(self._known())}"

    def _defaults(self) -> tuple[tuple[str, str], ...]:
        kind, _, group = self.types[0].partition(".")
        return (("kind", kind), ("group", group))

    def _known(self) -> list[str]:
        return [each if "." in each else f"{each}." for each in self.types]


class VolumeName(Struct, frozen=True):
    """A text that begins with one of the tenant's namespaces and a hyphen, or that the tenant is granted."""

    grant: str = "volumes"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what no glob matches."""
        own, name = tenant.volumes(), str(value)
        is_own = is_granted(name, tenant.granted(self.grant)) or tenant.may_begin(name)
        return [] if is_own and is_granted(name, own) else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs."""
        found = matches(value, glob_pattern(tenant.volumes()))
        if not tenant.others:
            return found
        granted = matches(value, glob_pattern(tenant.granted(self.grant)))
        return f"({found} && ({granted} || {_begins(value, tenant)}))"


class OwnName(Struct, frozen=True):
    """The name of an object of the cluster, which begins with one of the tenant's namespaces and a hyphen."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a name that another tenant may have."""
        is_own = is_granted(str(value), tenant.own_names()) and tenant.may_begin(str(value))
        return [] if is_own else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the beginning."""
        found = matches(value, glob_pattern(tenant.own_names()))
        return f"({found} && {_begins(value, tenant)})" if tenant.others else found


def _begins(value: str, tenant: Tenant) -> str:
    """Return the expression of `Tenant.may_begin`."""
    return " && ".join(f"!{value}.startsWith({cel.text(f'{other}-')})" for other in tenant.others)


class OwnIdentity(Struct, frozen=True):
    """A pod identity of KEDA that is not that of KEDA itself."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the identity of KEDA."""
        provider = mapping(value).get("provider")
        owner = mapping(value).get("identityOwner")
        is_own = provider in WORKLOAD_IDENTITIES or (provider, owner) == ("aws", "workload")
        return [] if is_own else refuse_value(provider)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the provider and the owner."""
        provider = f"{at(value, ('provider',))}.orValue('')"
        owner = f"{at(value, ('identityOwner',))}.orValue('')"
        return f"({provider} in {texts(WORKLOAD_IDENTITIES)} || ({provider} == 'aws' && {owner} == 'workload'))"


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
