"""Which server of tokens gets the login of a registry.

A registry names the server in its answer (source: distribution's specification of token authentication). The login goes
to the registry's own host, to the domain above it, as of registry.gitlab.com, or to a host of that domain, as from
registry-1.docker.io to auth.docker.io. go-containerregistry compares domains, too (source: its
pkg/v1/remote/transport/bearer.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


def is_own_realm(registry: str, realm: str, listed: Iterable[str] = ()) -> bool:
    """Return whether a server of tokens may have the login of a registry.

    Args:
        registry: URL of the registry.
        realm: URL of the server that it names.
        listed: names of registries in Docker's configuration. A user who adds the host of the server trusts it.
    """
    own, other = _host(registry), _host(realm)
    above = own.partition(".")[2]
    if not other or other == own or any(_host(name if "//" in name else f"//{name}") == other for name in listed):
        return bool(other)
    return "." in above and not _is_address(own) and (other == above or other.endswith(f".{above}"))


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
