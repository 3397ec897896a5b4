"""The table of fields by which an object reaches outside its namespace.

The check of specs and the admission policies are both made from this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaigen.catalog import controllers
from kaigen.kubernetes.manifest import Object, mapping, type_of
from kaigen.kubernetes.value_paths import values_at
from kaigen.tenancy.reach import Reach
from kaigen.tenancy.rows.classes import CLASS_REACHES
from kaigen.tenancy.rows.metadata import METADATA_REACHES
from kaigen.tenancy.rows.network import NETWORK_REACHES
from kaigen.tenancy.rows.network_policies import NETWORK_POLICY_REACHES
from kaigen.tenancy.rows.pods import POD_REACHES
from kaigen.tenancy.rows.ray import RAY_REACHES
from kaigen.tenancy.rows.rbac import RBAC_REACHES
from kaigen.tenancy.rows.reserved import RESERVED_REACHES
from kaigen.tenancy.rows.scaling import SCALING_REACHES
from kaigen.tenancy.rows.secrets import SECRET_REACHES
from kaigen.tenancy.rows.storage import STORAGE_REACHES
from kaigen.tenancy.rows.syncers import SYNCER_REACHES

REACHES: tuple[Reach, ...] = (
    *POD_REACHES,
    *STORAGE_REACHES,
    *NETWORK_REACHES,
    *RAY_REACHES,
    *CLASS_REACHES,
    *SECRET_REACHES,
    *SCALING_REACHES,
    *METADATA_REACHES,
    *RBAC_REACHES,
    *RESERVED_REACHES,
    *NETWORK_POLICY_REACHES,
    *SYNCER_REACHES,
)
"""Every rule."""

_HOSTS = tuple(reach for reach in REACHES if reach.name in ("ingress-host", "route-host"))


def hosts_of(obj: Object) -> Iterator[str]:
    """Yield the hosts of an Ingress or a route, and those that annotations of any object name."""
    yield from annotated_hosts(mapping(mapping(obj.get("metadata")).get("annotations")))
    kind = type_of(obj)
    for reach in _HOSTS:
        if kind in reach.types:
            for steps in reach.paths:
                yield from (str(value) for _, value in values_at(obj, steps))


def annotated_hosts(annotations: Mapping[str, object]) -> Iterator[str]:
    """Yield the hosts of annotations by which controllers serve or register hosts."""
    for key in controllers.host_keys():
        value = annotations.get(key)
        if isinstance(value, str):
            yield from value.replace(",", " ").split()
