"""The tenants of kaigen.yaml with everything that they are granted: lists, defaults of the profile, quotas."""

import posixpath
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kaigen.catalog.profiles import get_profile
from kaigen.config.controller_keys import common_entries
from kaigen.config.reserved import reserved_names
from kaigen.config.settings import Config
from kaigen.config.tenant_settings import Tenant
from kaigen.config.tenants import TenantBlock
from kaigen.kubernetes.rights import USUAL_KINDS


def tenant_settings(
    blocks: Mapping[str, TenantBlock],
    images: Mapping[str, str],
    profile: str,
    *common: Mapping[str, str],
    gpus: Sequence[str] = (),
) -> tuple[Tenant, ...]:
    """Return the tenants of kaigen.yaml.

    Args:
        blocks: by name.
        images: kaigen's own images by name.
        profile: name of the profile.
        common: the labels and the annotations that kaigen.yaml gives to every object.
        gpus: the resources of GPUs, which quotas limit.
    """
    own = common_entries(*common) if blocks else ()
    classes = profile_classes(profile) if blocks else ()
    return tuple(
        Tenant(
            name,
            tuple(posixpath.normpath(folder) for folder in block.folders),
            tuple(block.namespaces),
            {
                "kinds": tuple(USUAL_KINDS if block.kinds is None else block.kinds),
                "buckets": tuple(block.buckets),
                "drivers": tuple(block.drivers),
                "attributes": tuple(block.attributes),
                "options": tuple(block.options),
                "storageClasses": tuple(block.storage_classes) or default_classes(profile),
                "priorityClasses": tuple(block.priority_classes),
                "classes": (*block.classes, *classes),
                "hosts": tuple(block.hosts),
                "images": (*block.images, *sorted(images.values())),
                "references": tuple(block.references),
                "services": tuple(block.services),
                "addresses": tuple(block.addresses),
                "servers": tuple(block.servers),
                "triggers": tuple(block.triggers),
                "volumes": tuple(block.volumes),
                "domains": tuple(block.domains),
                "annotations": (*block.annotations, *own),
                "nodes": tuple(block.nodes),
                "roles": tuple(block.roles),
                "networks": tuple(block.networks),
            },
            block.gpus,
            block.pod_security,
            quotas={namespace: quota for namespace in block.namespaces if (quota := _quota(block, namespace, gpus))},
            per_hour=block.budget.per_hour if block.budget is not None else None,
        )
        for name, block in blocks.items()
    )


def _quota(block: TenantBlock, namespace: str, gpus: Sequence[str]) -> dict[str, str]:
    limits = {f"requests.{name}": str(block.gpus) for name in gpus if block.gpus is not None}
    return {**limits, **block.quota, **block.quotas.get(namespace, {})}


def default_classes(profile: str) -> tuple[str, ...]:
    """Return the storage class that a profile gives to volumes; none where it leaves that to the cluster."""
    name = get_profile(profile).storage_class
    return (name,) if name else ()


def profile_classes(profile: str) -> tuple[str, ...]:
    """Return the classes that a profile gives to pods, as `KIND/NAME`."""
    name = get_profile(profile).gpu_runtime_class
    return (f"RuntimeClass/{name}",) if name else ()


def delivered_tenants(config: Config) -> tuple[Tenant, ...]:
    """Return the tenants of settings, with what `gitops` and `network` say of names and connections."""
    tenancy = config.gitops.tenancy if config.gitops is not None else None
    return tuple(
        replace(
            tenant,
            others=tuple(
                place
                for other in config.tenants
                if other.name != tenant.name
                for place in other.namespaces
                if any(place.startswith(f"{own}-") for own in tenant.namespaces)
            ),
            reserved=reserved_names(config.gitops, config.environment, tenant.namespaces, config.syncer_secrets),
            denied=tuple(tenancy.default_deny) if tenancy is not None else (),
            network=config.network,
        )
        for tenant in config.tenants
    )
