"""Which volumes kaigen.yaml allows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.block_settings import Allowed, VolumeGrant, matches_glob
from kaigen.config.globs import is_granted
from kaigen.kubernetes.buckets import (
    ATTRIBUTES,
    BUCKET_DRIVERS,
    OPTIONS,
    S3_OPTIONS,
    is_bucket_uri,
    location,
    mount_options,
)
from kaigen.kubernetes.manifest import Object, mapping

_DRIVERS = frozenset(row.driver for row in BUCKET_DRIVERS if row.own)
_ENDPOINT = "endpoint-url "


class WantedVolume(Struct, frozen=True):
    """A volume that a spec asks for.

    Attributes:
        namespace: of the spec.
        uri: of the bucket and folder; empty where it is not known.
        servers: of the bucket, besides that of its cloud.
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
    servers: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The bucket, the folder and the server as one text."""
        return " at ".join([self.uri.removesuffix("/"), *self.servers])


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


def wanted_volume(spec: Object, namespace: str, *, inline: bool = False) -> WantedVolume:
    """Return what a CSI volume asks for, without what kaigen sets itself.

    Args:
        spec: of a PersistentVolume, or the volume of a pod.
        namespace: of the pods that mount it.
        inline: whether it is the volume of a pod; its Secret is one of the pod's namespace.
    """
    csi = mapping(spec.get("csi"))
    secrets = dict.fromkeys(
        f"{place}/{reference.get('name')}"
        for key, value in csi.items()
        if str(key).endswith("SecretRef") and not inline
        for reference in [mapping(value)]
        for place in [reference.get("namespace")]
        if place != namespace
    )
    driver = str(csi.get("driver") or "")
    given = mapping(csi.get("volumeAttributes"))
    attributes = [str(key) for key in given if key not in ATTRIBUTES]
    options = [str(each) for each in mount_options(spec, inline=inline)]
    if not inline and "mountOptions" in given:
        attributes.append("mountOptions")
    written = str(given.get("options") or S3_OPTIONS)
    if not written.startswith(S3_OPTIONS):
        attributes.append("options")
    else:
        options += re.split(r"\s+(?=-)", written.removeprefix(S3_OPTIONS).strip())
    servers = [each.removeprefix(_ENDPOINT) for each in options if each.startswith(_ENDPOINT)]
    return WantedVolume(
        namespace,
        location(spec, inline=inline),
        "" if driver in _DRIVERS else driver,
        tuple(secrets),
        tuple(attributes),
        tuple(each for each in options if each and not is_granted(each, (*OPTIONS, f"{_ENDPOINT}*"))),
        tuple(each.rstrip("/").partition("://")[2] for each in servers),
    )


def find_ungranted(wanted: WantedVolume, allow: Allowed) -> tuple[Ungranted, ...]:
    """Return what no entry of kaigen.yaml allows, by the entry that allows most; empty if one allows everything."""
    return min((tuple(_missing(wanted, grant)) for grant in allow.volumes), key=len)


def _missing(wanted: WantedVolume, grant: VolumeGrant) -> Iterator[Ungranted]:
    if not matches_glob(wanted.namespace, grant.namespaces):
        yield Ungranted("namespace", "a volume in namespace", wanted.namespace)
    if wanted.uri and not (is_bucket_uri(wanted.uri) and matches_glob(wanted.place, grant.uris)):
        yield Ungranted("uri", "the bucket", wanted.place)
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
