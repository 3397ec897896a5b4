"""What labels and annotations of tenants reach by the controllers that obey them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kaigen.catalog.controllers import host_keys
from kaigen.config.controller_keys import allowed_entries, is_controller_key, is_raw_key
from kaigen.config.globs import is_entry_granted, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import Object, Path, mapping
from kaigen.kubernetes.reach import Reach, Test


def metadata_violations(
    reach: Reach, metadata: Object, at: Path, tenant: Tenant
) -> Iterator[tuple[Path, str]]:
    """Yield the place of each label and annotation that violates a rule of metadata, with what it reaches.

    Args:
        reach: the rule; others than those of metadata yield nothing.
        metadata: the mapping with the labels and annotations.
        at: its place.
        tenant: the tenant.
    """
    granted = tenant.granted(reach.grant)
    for field, noun in (("annotations", "the annotation"), ("labels", "the label")):
        for key, value in mapping(metadata.get(field)).items():
            place = (*at, field, str(key))
            is_annotation = field == "annotations"
            match reach.test:
                case Test.CONTROLLER_KEYS if _is_refused(str(key), value, granted):
                    yield place, f"{noun} `{key}`"
                case Test.RAW_KEYS if is_annotation and is_raw_key(str(key)):
                    yield place, f"{noun} `{key}`"
                case Test.HOSTS if is_annotation and key in host_keys():
                    for host in _hosts(value):
                        if not is_host_granted(host, granted):
                            yield place, f"the host `{host}`"


def _is_refused(key: str, value: object, granted: Sequence[str]) -> bool:
    return is_controller_key(key) and not is_entry_granted(key, value, (*granted, *allowed_entries()))


def _hosts(value: object) -> list[str]:
    """Return the hosts of an annotation; what is not separated by commas is one host, which no tenant has."""
    return str(value).replace(", ", ",").split(",")
