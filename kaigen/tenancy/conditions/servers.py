"""Conditions of servers that controllers connect to."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.config.globs import host_pattern, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy.cel import matches
from kaigen.tenancy.reach import Refusal

URL_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*://"
URL_REST = r"(:[0-9]+)?([/?][\s\S]*)?"
"""What precedes and follows the host of a URL, as patterns of RE2 and Python."""

PLAIN_SCHEME = r"(https?|amqps?|tcp|socks5)://"
"""What precedes the host of a server that may have no scheme: only schemes that are followed by the server. Of others,
such as `dns://` and `passthrough://` of gRPC, the server may be in the path."""

PLAIN_REST = r"(:[0-9]+)?([/?][^\s%+,\\]*)?"
"""What follows the host of a server that may have no scheme: nothing that a controller decodes or splits."""

PORT = "(:[0-9]+)?"
"""What follows a host that is not a URL."""


class Server(Struct, frozen=True):
    """A server in one of the tenant's namespaces, or that the tenant is granted.

    Attributes:
        plain: whether the text is always a server, or several with commas, also without a scheme; else it may be
            any text that has no `://`.
        is_url: whether a plain server may be a URL, with a scheme and a path.
        grant: field of a tenant.
    """

    plain: bool = False
    is_url: bool = True
    grant: str = "servers"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse another server."""
        if not isinstance(value, str):
            return _refused(value, tenant) if self.plain else []
        if self.plain:
            return [] if all(self._is_granted(item, tenant) for item in value.split(",")) else _refused(value, tenant)
        if "://" not in value:
            return []
        url = re.fullmatch(f"{URL_SCHEME}([^/?:]*){URL_REST}", value)
        return [] if url and is_host_granted(url[1], tenant.servers()) else _refused(value, tenant)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the URL, or each server."""
        hosts = host_pattern(tenant.servers())
        if self.plain:
            return f"{value}.split(',').all(server, {matches('server', self._pattern(f'({hosts})'))})"
        return f"(!{value}.contains('://') || {matches(value, f'{URL_SCHEME}({hosts}){URL_REST}')})"

    def _pattern(self, host: str) -> str:
        """Return the pattern of one server, of RE2 and Python."""
        return f" *({PLAIN_SCHEME})?{host}{PLAIN_REST} *" if self.is_url else f" *{host}{PORT} *"

    def _is_granted(self, text: str, tenant: Tenant) -> bool:
        """Return whether a server with or without a scheme is granted."""
        found = re.fullmatch(self._pattern("(?P<host>[^/?:]*?)"), text, re.ASCII)
        return found is not None and is_host_granted(found["host"], tenant.servers())


def _refused(value: object, tenant: Tenant) -> list[Refusal]:
    """Return the refusal of a server, with the name of such a server in the tenant's own namespace."""
    host = re.fullmatch(f"({URL_SCHEME})?([a-z0-9-]+).*", str(value), re.DOTALL)
    name = host[2] if host is not None and not host[2].isdecimal() else "prom"
    hint = (
        f"name a server of the tenant with its namespace, such as `{name}.{tenant.namespaces[0]}.svc`, or add the host "
        f"to `tenants.{tenant.name}.servers` in kaigen.yaml"
    )
    return [Refusal(f"`{value}`", hint=hint)]
