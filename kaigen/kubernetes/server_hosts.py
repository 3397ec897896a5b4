"""What the host of a URL names: an address, a Service of a namespace, the pod itself, or metadata."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address

NEVER = {
    4: ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    6: (
        "fe80::/10",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "fd00:100::100:200/128",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:42::42/128",
        "fd00:a9fe:a9fe::1/128",
    ),
}
"""Ranges that no download needs, by the version of IP: link-local, and services of clouds with credentials of nodes.

Sources: RFC 6890; the WireServer of Azure; the metadata services of Amazon EC2 and Google Cloud; of Alibaba Cloud, with
the address of IPv6 in cloud-init's DataSourceAliYun; of Oracle: Compute Classic, "Retrieving Instance Metadata", and
`instance_principals_security_token_signer.py` of oracle/oci-python-sdk for IPv6; of Scaleway in cloud-init's
DataSourceScaleway; of Akamai, "Metadata service API".
"""

_UNUSABLE = {
    4: ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4"),
    6: ("::/128", "::1/128", "ff00::/8", "fec0::/10"),
}
"""Ranges that are not servers of their own: the pod itself, multicast, reserved (source: RFC 6890)."""

_RESERVED = tuple(ip_network(each) for ranges in (NEVER, _UNUSABLE) for each in (*ranges[4], *ranges[6]))
_EMBEDDED = ((ip_network("64:ff9b::/96"), 0), (ip_network("::/96"), 0), (ip_network("2002::/16"), 80))
"""Ranges of IPv6 with an IPv4 address inside, and the bits after it (sources: RFC 6052, RFC 4291, RFC 3056)."""

NO_PEERS = (*NEVER[4], *NEVER[6], *(str(network) for network, _ in _EMBEDDED))
"""Ranges with addresses that no policy may open as the address of a single server."""

_NAMES = re.compile(
    r"(.*\.)?localhost|localhost\.localdomain|ip6-(localhost|loopback)"
    r"|metadata(\.google\.internal|\.goog)?|instance-data(\.ec2\.internal)?"
)
"""Names of the pod itself and of metadata services (sources: RFC 6761; Google Cloud and Amazon EC2, metadata)."""

_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|[0-9a-f:.]+")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
"""A part of an address in the spellings of `inet_aton`, such as 0xa9fea9fe and 0251.0376.43518.

Clients read the same text as different addresses, so none of them is understood.
"""
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61", "."))
"""What IDNA reads as a dot (source: RFC 3490)."""


def host_of(url: str) -> str:
    """Return the host of a URL as clients understand it; empty for a URL without a host that can be understood.

    It has small letters, no dot at its end, and letters of other scripts as clients normalize them.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return plain_host(host)


def plain_host(host: str) -> str:
    """Return a host in the form of `host_of`; empty for one that is not understood."""
    host = unicodedata.normalize("NFKC", host.translate(_DOTS)).lower().removesuffix(".")
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""
    name = name.partition("%")[0] if ":" in name else name
    is_number = all(map(_NUMBER.fullmatch, name.split(".")))
    return name if _HOST.fullmatch(name) and (address_of(name) or not is_number) else ""


def address_of(host: str) -> Address | None:
    """Return the address that a host is; None for a name.

    Args:
        host: as `host_of` returns it.
    """
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_reserved(host: str) -> bool:
    """Return whether a host is the pod or the node itself, link-local, multicast, or a cloud's service of metadata.

    Args:
        host: as `host_of` returns it; an empty one, which is not understood, counts.
    """
    address = address_of(host)
    if address is None:
        return not host or _NAMES.fullmatch(host) is not None
    return any(_is_in_reserved(each) for each in (address, *_embedded(address)))


def _is_in_reserved(address: Address) -> bool:
    return any(address in network for network in _RESERVED)


def _embedded(address: Address) -> list[Address]:
    """Return the addresses of IPv4 in one of IPv6."""
    if not isinstance(address, IPv6Address):
        return []
    found: list[Address] = [address.ipv4_mapped] if address.ipv4_mapped else []
    return found + [
        IPv4Address((int(address) >> after) & 0xFFFFFFFF)
        for network, after in _EMBEDDED
        if address in network and int(address) > 0xFFFF
    ]


def is_private(host: str) -> bool:
    """Return whether a host is an address that is not of the Internet, such as those of pods and Services."""
    address = address_of(host)
    return address is not None and not all(each.is_global for each in (address, *_embedded(address)))


def namespace_of(host: str) -> str:
    """Return the namespace of a Service or pod by its name, as in `NAME.NAMESPACE.svc`; empty for another host."""
    labels = host.split(".")
    places = [place for place, label in enumerate(labels) if label in ("svc", "pod") and place >= 2]
    return labels[places[-1] - 1] if places else ""
