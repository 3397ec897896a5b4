"""Checks of what the apps of each tenant use together: GPUs, money, and folders of specs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.catalog.rates import currency_of
from kaigen.config.settings import FILE_NAME
from kaigen.config.tenant_settings import tenant_of_file, tenant_of_namespace
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.files import walk
from kaigen.pipeline.summary import AppSummary
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.pipeline.gpu_facts import GpuObject, ScaledKey
    from kaigen.pipeline.unit import RunApp, Unit

with lazy_imports():
    from kaigen.environments import patch as environments_patch


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
    used: Counter[str] = Counter()
    by_app: Counter[tuple[str, str]] = Counter()
    for unit, app, each, tenant, replicas in _tenant_gpus(apps, config):
        if tenant.gpus is None:
            continue
        amount = each.most(replicas)
        used[tenant.name] += amount
        by_app[tenant.name, app.name] += amount
        if each.unlimited and unit is not None:
            _, kind, name = each.key
            message = f"{kind} {name} requests GPUs, and {each.unlimited}, so `gpus` of tenant `{tenant.name}` "
            hint = "request none, set a limit, or use another kind"
            yield unit.diagnostic(app, "KG0385", f"{message}cannot limit them", ("metadata", "name"), hint)
    for tenant in config.tenants:
        if tenant.gpus is not None and used[tenant.name] > tenant.gpus:
            largest, name = max((number, app) for (owner, app), number in by_app.items() if owner == tenant.name)
            yield Diagnostic(
                "KG0385",
                f"the apps of tenant `{tenant.name}` request {used[tenant.name]} GPUs, and it has {tenant.gpus}",
                _tenant_mark(config, tenant, "gpus"),
                f"request fewer, or raise `tenants.{tenant.name}.gpus`; app `{name}` requests most: {largest}",
            )


def cost_budgets(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each tenant whose GPUs may cost more than its budget, and for each app without a price."""
    used: dict[str, dict[str, float]] = {}
    for unit, app, each, tenant, replicas in _tenant_gpus(apps, config):
        if tenant.per_hour is None:
            continue
        cost, (_, kind, name) = each.most_an_hour(replicas), each.key
        if cost is not None:
            by_app = used.setdefault(tenant.name, {})
            by_app[app.name] = by_app.get(app.name, 0) + cost
        elif unit is not None:
            message = f"{kind} {name} requests GPUs, and kaigen knows no price of them, "
            hint = "select nodes by `instanceType`, or add its price to the catalog (`kaigen cost` says why)"
            message += f"so `budget` of tenant `{tenant.name}` cannot limit it"
            yield unit.diagnostic(app, "KG0401", message, ("metadata", "name"), hint)
    unit_of_money = currency_of(config.catalog)
    for tenant in config.tenants:
        by_app = used.get(tenant.name, {})
        total = round(sum(by_app.values()), 2)
        if tenant.per_hour is not None and total > tenant.per_hour:
            name = max(by_app, key=lambda app: (by_app[app], app))
            yield Diagnostic(
                "KG0401",
                f"the GPUs of tenant `{tenant.name}` may cost {total:,.2f} {unit_of_money} an hour, and its budget is "
                f"{tenant.per_hour:,.2f}",
                _tenant_mark(config, tenant, "budget", "perHour"),
                f"request less, or raise `tenants.{tenant.name}.budget.perHour`; "
                f"app `{name}` costs most: {by_app[name]:,.2f}",
            )


def _tenant_mark(config: Config, tenant: Tenant, *field: str) -> Mark:
    """Return the place of a tenant's field in kaigen.yaml, in the environment if it sets the field."""
    entry = environments_patch.FileEntry(config.root / FILE_NAME, ())
    own = ("environments", config.environment or "", "tenants", tenant.name, *field)
    return entry.mark(own if entry.raw(own) is not None else ("tenants", tenant.name, *field))


def _tenant_gpus(
    apps: Sequence[RunApp], config: Config
) -> Iterator[tuple[Unit | None, AppSummary, GpuObject, Tenant, int]]:
    """Yield each object of a tenant that requests GPUs: file, app, object, tenant, and the most replicas that any
    autoscaler sets.
    """
    most: dict[ScaledKey, int] = {}
    for _, app in apps:
        for key, replicas in app.gpus.replicas if app.gpus is not None else ():
            most[key] = max(most.get(key, 0), replicas)
    for unit, app in apps:
        for each in app.gpus.objects if app.gpus is not None else ():
            tenant = tenant_of_file(app.source, config.tenants) or tenant_of_namespace(each.key[0], config.tenants)
            if tenant is not None:
                yield unit, app, each, tenant, most.get(each.key, 0)
