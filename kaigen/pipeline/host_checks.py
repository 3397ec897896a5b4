"""Checks of the hosts of all apps: of two namespaces, and of environments in different clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.globs import is_granted
from kaigen.config.tenant_settings import tenant_of_namespace
from kaigen.core.text import series
from kaigen.diagnostics.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.pipeline.unit import RunApp

_HOSTS_HINT = "write `{environment}` into the host, or override it for some of them"


def shared_hosts(apps: Sequence[RunApp], tenants: Sequence[Tenant]) -> Iterator[Diagnostic]:
    """Return a warning for each app with a host of another namespace's app, unless tenants of both list it."""
    first: dict[str, RunApp] = {}
    for unit, app in apps:
        for host in app.hosts:
            _, other = first.setdefault(host, (unit, app))
            if unit is None or other.namespace == app.namespace:
                continue
            if _lists(host, app.namespace, tenants) and _lists(host, other.namespace, tenants):
                continue
            message = f"the host `{host}` is also that of app `{other.name}` in namespace `{other.namespace}`"
            hint = "choose another host for one of them, or list it in `hosts` of both tenants in kaigen.yaml"
            found = unit.diagnostic(app, "KG0384", message, ("metadata", "name"), hint)
            yield replace(found, severity=Severity.WARNING)


def hosts_of_clusters(environments: Iterable[tuple[Config, Sequence[RunApp]]]) -> Iterator[Diagnostic]:
    """Return a warning for each host that environments of different clusters have.

    Args:
        environments: the settings and the apps of each.
    """
    places: dict[str, list[Config]] = {}
    marks: dict[str, Diagnostic] = {}
    for config, apps in environments:
        for unit, app in apps:
            for host in app.hosts:
                if unit is not None and config not in places.setdefault(host, []):
                    places[host].append(config)
                    marks.setdefault(host, unit.diagnostic(app, "KG0765", "", ("spec", "route", "host"), _HOSTS_HINT))
    for host, configs in places.items():
        if any(_differ(configs[0], other) for other in configs):
            names = series([config.environment for config in configs])
            message = f"the host `{host}` is that of the environments {names}, which have different clusters"
            yield replace(marks[host], message=message, severity=Severity.WARNING)


def _differ(one: Config, other: Config) -> bool:
    """Return whether two environments have different clusters, as far as kaigen.yaml says it."""
    return one.profile != other.profile or one.clusters != other.clusters


def _lists(host: str, namespace: str, tenants: Sequence[Tenant]) -> bool:
    """Return whether the tenant of a namespace is granted a host."""
    tenant = tenant_of_namespace(namespace, tenants)
    return tenant is not None and is_granted(host, tenant.granted("hosts"))
