"""What a change of kaigen.yaml allows that was not allowed before."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from kaigen.config.settings import Config
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.reach import USUAL_KINDS
from kaigen.pipeline.license_changes import wider_licenses


def new_grants(before: Config, now: Config) -> list[str]:
    """Return what specs may use now and could not before.

    Args:
        before: the settings before the change; the defaults without kaigen.yaml.
        now: the settings.
    """
    allow = before.allow
    grants = [f"files {each} in the output" for each in now.allow.files if each not in allow.files]
    grants += [f"the namespace {each}" for each in now.allow.namespaces if each not in allow.namespaces]
    for grant in now.allow.volumes:
        if grant not in allow.volumes:
            named = [
                f"{field} {', '.join(values)}" for field, values in structs.asdict(grant).items() if values
            ]
            grants.append(f"volumes with {'; '.join(named)}")
    return [*grants, *wider_licenses(before.licenses, now.licenses), *_tenant_grants(before, now)]


def _tenant_grants(before: Config, now: Config) -> Iterator[str]:
    known = {tenant.name: tenant for tenant in before.tenants}
    for tenant in now.tenants:
        was = known.get(tenant.name)
        yield from _wider(was or Tenant(tenant.name, (), (), {"kinds": USUAL_KINDS}), tenant, now)
        if was is not None and was.gpus is not None and (tenant.gpus is None or tenant.gpus > was.gpus):
            amount = "any number of" if tenant.gpus is None else tenant.gpus
            yield f"{amount} GPUs as tenant {tenant.name}"
    for was in before.tenants:
        for folder in was.folders:
            if not any(tenant.owns(folder) for tenant in now.tenants):
                yield f"everything in folder {folder}, which is of no tenant any more"


def _wider(was: Tenant, tenant: Tenant, config: Config) -> Iterator[str]:
    """Return what a tenant is granted and was not, less kaigen's own images."""
    own = config.images.values()
    for field, values in {"namespaces": tenant.namespaces, **tenant.grants}.items():
        old = was.namespaces if field == "namespaces" else was.granted(field)
        new = [value for value in values if value not in old and not (field == "images" and value in own)]
        if new:
            yield f"{field} {', '.join(new)} as tenant {tenant.name}"
