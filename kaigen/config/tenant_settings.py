"""The settings of the block `tenants` of kaigen.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaigen.config.reserved import Reserved
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.config import network as config_network


class Tenant(Struct, frozen=True):
    """A team with folders of specs, namespaces, and what its specs may reach outside these.

    Attributes:
        name: its name.
        folders: of its specs, relative to the repository.
        namespaces: that only it uses.
        grants: globs of what it may reach, by field of kaigen.yaml.
        gpus: GPUs that its apps may request in all; None for any number.
        pod_security: the loosest level of the Pod Security Standards that its pods may need.
        others: namespaces of other tenants that begin with one of its own and a hyphen.
        reserved: names that its specs may not use.
        denied: directions, `Ingress` and `Egress`, that a NetworkPolicy denies to all pods of its namespaces.
        network: what pods may connect to without a grant in a denied direction; None for nothing.
        quotas: hard limits of the ResourceQuota of each namespace.
        per_hour: what the GPUs of its apps may cost in an hour; None for any amount.
    """

    name: str
    folders: tuple[str, ...]
    namespaces: tuple[str, ...]
    grants: dict[str, tuple[str, ...]]
    gpus: int | None = None
    pod_security: str = "restricted"
    others: tuple[str, ...] = ()
    reserved: Reserved = Reserved()
    denied: tuple[str, ...] = ()
    network: config_network.Network | None = None
    quotas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    per_hour: float | None = None

    def granted(self, field: str) -> tuple[str, ...]:
        """Return the globs of a field."""
        return self.grants.get(field, ())

    def servers(self) -> tuple[str, ...]:
        """Return globs of the hosts of servers that it may name: those in its namespaces, and those it is granted."""
        own = (f"*.{place}.svc{domain}" for place in self.namespaces for domain in ("", ".cluster.local"))
        return (*own, *self.granted("servers"))

    def volumes(self) -> tuple[str, ...]:
        """Return globs of the volumes that its claims may name: those of its namespaces, and those it is granted."""
        return (*(f"{place}-*" for place in self.namespaces), *self.granted("volumes"))

    def own_names(self) -> tuple[str, ...]:
        """Return globs of the names of its objects of the cluster."""
        return tuple(f"{place}-*" for place in self.namespaces)

    def may_begin(self, name: str) -> bool:
        """Return whether a name does not begin as those of another tenant whose namespace begins like its own."""
        return not any(name.startswith(f"{other}-") for other in self.others)

    def classes(self, kind: str) -> tuple[str, ...]:
        """Return globs of the names of classes of a kind that its objects may name."""
        entries = (entry.partition("/") for entry in self.granted("classes"))
        return tuple(name for of_kind, _, name in entries if of_kind in (kind, "*"))

    def owns(self, source: str) -> bool:
        """Return whether a file is in one of the folders."""
        return any(contains(folder, source) for folder in self.folders)


def contains(folder: str, path: str) -> bool:
    """Return whether a path is a folder or below it; `.` contains every path. Both are normalized."""
    return folder in (".", path) or path.startswith(f"{folder}/")


def tenant_of_file(source: str, tenants: Sequence[Tenant]) -> Tenant | None:
    """Return the tenant whose folder contains a file."""
    return next((tenant for tenant in tenants if tenant.owns(source)), None)


def default_namespace(source: str, tenants: Sequence[Tenant], namespace: str) -> str:
    """Return the namespace of specs of a file that name none: the only one of its tenant, or that of kaigen.yaml."""
    tenant = tenant_of_file(source, tenants)
    return tenant.namespaces[0] if tenant is not None and len(tenant.namespaces) == 1 else namespace


def tenant_of_namespace(namespace: str, tenants: Sequence[Tenant]) -> Tenant | None:
    """Return the tenant that owns a namespace."""
    return next((tenant for tenant in tenants if namespace in tenant.namespaces), None)
