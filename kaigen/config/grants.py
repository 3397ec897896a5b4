"""Which volumes kaigen.yaml allows."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.block_settings import Allowed, VolumeGrant, matches_glob


class WantedVolume(Struct, frozen=True):
    """A volume that a spec asks for.

    Attributes:
        namespace: of the spec.
        uri: of the bucket; empty where it is not known.
        driver: name of the CSI driver; empty for those that kaigen knows.
        secrets: Secrets of other namespaces, `NAMESPACE/NAME`.
        attributes: keys of attributes that the spec adds.
        options: mount options that the spec adds.
    """

    namespace: str
    uri: str = ""
    driver: str = ""
    secrets: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def ungranted(wanted: WantedVolume, allow: Allowed) -> tuple[str, ...]:
    """Return what no entry of kaigen.yaml allows, by the entry that allows most; empty if one allows everything."""
    return min((tuple(_missing(wanted, grant)) for grant in allow.volumes), key=len)


def _missing(wanted: WantedVolume, grant: VolumeGrant) -> Iterator[str]:
    if not matches_glob(wanted.namespace, grant.namespaces):
        yield f"a volume in namespace {wanted.namespace}"
    if wanted.uri and not matches_glob(wanted.uri, grant.uris):
        yield f"the bucket {wanted.uri}"
    if wanted.driver and not matches_glob(wanted.driver, grant.drivers):
        yield f"the driver {wanted.driver}"
    for what, given, patterns in (
        ("the Secret", wanted.secrets, grant.secrets),
        ("the attribute", wanted.attributes, grant.attributes),
        ("the option", wanted.options, grant.options),
    ):
        for item in given:
            if not matches_glob(item, patterns):
                yield f"{what} {item}"
