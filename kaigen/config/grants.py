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


class Ungranted(Struct, frozen=True):
    """What kaigen.yaml does not allow.

    Attributes:
        field: of the `WantedVolume`.
        what: the kind of thing, with its article.
        name: its name.
    """

    field: str
    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


def ungranted(wanted: WantedVolume, allow: Allowed) -> tuple[Ungranted, ...]:
    """Return what no entry of kaigen.yaml allows, by the entry that allows most; empty if one allows everything."""
    return min((tuple(_missing(wanted, grant)) for grant in allow.volumes), key=len)


def _missing(wanted: WantedVolume, grant: VolumeGrant) -> Iterator[Ungranted]:
    if not matches_glob(wanted.namespace, grant.namespaces):
        yield Ungranted("namespace", "a volume in namespace", wanted.namespace)
    if wanted.uri and not matches_glob(wanted.uri, grant.uris):
        yield Ungranted("uri", "the bucket", wanted.uri)
    if wanted.driver and not matches_glob(wanted.driver, grant.drivers):
        yield Ungranted("driver", "the driver", wanted.driver)
    for field, what, given, patterns in (
        ("secrets", "the Secret", wanted.secrets, grant.secrets),
        ("attributes", "the attribute", wanted.attributes, grant.attributes),
        ("options", "the option", wanted.options, grant.options),
    ):
        for item in given:
            if not matches_glob(item, patterns):
                yield Ungranted(field, what, item)
