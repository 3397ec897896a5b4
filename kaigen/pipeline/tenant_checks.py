"""Problems between the apps of namespaces and tenants: hosts that two have, and GPUs of a tenant."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.globs import is_granted
from kaigen.config.settings import FILE_NAME
from kaigen.config.tenant_settings import tenant_of_file, tenant_of_namespace
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.pipeline.cross_checks import RunApp


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


def _lists(host: str, namespace: str, tenants: Sequence[Tenant]) -> bool:
    """Return whether the tenant of a namespace is granted a host."""
    tenant = tenant_of_namespace(namespace, tenants)
    return tenant is not None and is_granted(host, tenant.granted("hosts"))


def folders_without_files(config: Config) -> Iterator[Diagnostic]:
    """Return a warning for each folder of a tenant in which there is no file."""
    for tenant in config.tenants:
        for folder in tenant.folders:
            if not any(files for _, _, files in os.walk(config.root / folder)):
                yield Diagnostic(
                    "KG0743",
                    f"folder `{folder}` of tenant `{tenant.name}` has no files, so its rules apply to no spec",
                    Mark(str(config.root / FILE_NAME)),
                    f"correct `tenants.{tenant.name}.folders`, or add the specs",
                    Severity.WARNING,
                )


def gpu_quotas(apps: Iterable[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each tenant whose apps request more GPUs than it has."""
    used: Counter[str] = Counter()
    largest: dict[str, tuple[int, str]] = {}
    for _, app in apps:
        tenant = tenant_of_file(app.source, config.tenants) or tenant_of_namespace(
            app.namespace, config.tenants
        )
        if tenant is not None and app.gpus:
            used[tenant.name] += app.gpus
            largest[tenant.name] = max(largest.get(tenant.name, (0, "")), (app.gpus, app.name))
    for tenant in config.tenants:
        if tenant.gpus is not None and used[tenant.name] > tenant.gpus:
            amount, name = largest[tenant.name]
            yield Diagnostic(
                "KG0385",
                f"the apps of tenant `{tenant.name}` request {used[tenant.name]} GPUs, and it has {tenant.gpus}",
                Mark(str(config.root / FILE_NAME)),
                f"request fewer, or raise `tenants.{tenant.name}.gpus`; app `{name}` requests most: {amount}",
            )
