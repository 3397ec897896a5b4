"""Problems between the apps of namespaces and tenants: hosts that two have, and GPUs of a tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.globs import is_granted
from kaigen.config.settings import FILE_NAME
from kaigen.config.tenant_settings import tenant_of_file, tenant_of_namespace
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.files import walk

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.pipeline.cross_checks import RunApp
    from kaigen.pipeline.gpu_facts import ScaledKey


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
            if not any(files for _, _, files in walk(config.root / folder)):
                yield Diagnostic(
                    "KG0743",
                    f"folder `{folder}` of tenant `{tenant.name}` has no files, so its rules apply to no spec",
                    Mark(str(config.root / FILE_NAME)),
                    f"correct `tenants.{tenant.name}.folders`, or add the specs",
                    Severity.WARNING,
                )


def gpu_quotas(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each tenant whose apps may request more GPUs than it has."""
    most: dict[ScaledKey, int] = {}
    for _, app in apps:
        for key, replicas in app.gpus.replicas if app.gpus is not None else ():
            most[key] = max(most.get(key, 0), replicas)
    used: Counter[str] = Counter()
    by_app: Counter[tuple[str, str]] = Counter()
    for unit, app in apps:
        for each in app.gpus.objects if app.gpus is not None else ():
            namespace, kind, name = each.key
            tenant = tenant_of_file(app.source, config.tenants) or tenant_of_namespace(namespace, config.tenants)
            if tenant is None or tenant.gpus is None:
                continue
            amount = each.most(most.get(each.key, 0))
            used[tenant.name] += amount
            by_app[tenant.name, app.name] += amount
            if each.unlimited and unit is not None:
                message = f"{kind} {name} requests GPUs, and {each.unlimited}, so `gpus` of tenant `{tenant.name}` "
                hint = "request none, set a limit, or use another kind"
                yield unit.diagnostic(app, "KG0385", f"{message}cannot limit them", ("metadata", "name"), hint)
    for tenant in config.tenants:
        if tenant.gpus is not None and used[tenant.name] > tenant.gpus:
            largest, name = max((number, app) for (owner, app), number in by_app.items() if owner == tenant.name)
            yield Diagnostic(
                "KG0385",
                f"the apps of tenant `{tenant.name}` request {used[tenant.name]} GPUs, and it has {tenant.gpus}",
                Mark(str(config.root / FILE_NAME)),
                f"request fewer, or raise `tenants.{tenant.name}.gpus`; app `{name}` requests most: {largest}",
            )
