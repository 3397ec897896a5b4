"""Conditions of servers that controllers connect to."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.config.globs import host_pattern, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy.cel import matches
from kaigen.tenancy.condition import Refusal, quoted

URL_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*://"
URL_REST = r"(:[0-9]+)?([/?][\s\S]*)?"
"""What precedes and follows the host of a URL, as patterns of RE2 and Python."""

PLAIN_REST = r"(:[0-9]+)?([/?][^\s%+,\\]*)?"
"""What follows the host of a server that may have no scheme: nothing that a controller decodes or splits."""


class Server(Struct, frozen=True):
    """A server in one of the tenant's namespaces, or that the tenant is granted.

    Attributes:
        plain: whether the text is always a server, or several with commas, also without a scheme; else it may be
            any text that has no `://`.
        grant: field of a tenant.
    """

    plain: bool = False
    grant: str = "servers"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse another server."""
        if not isinstance(value, str):
            return quoted(value) if self.plain else []
        if self.plain:
            return [] if all(_is_granted(item, tenant) for item in value.split(",")) else quoted(value)
        if "://" not in value:
            return []
        url = re.fullmatch(f"{URL_SCHEME}([^/?:]*){URL_REST}", value)
        return [] if url and is_host_granted(url[1], tenant.servers()) else quoted(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the URL, or each server."""
        hosts = host_pattern(tenant.servers())
        if self.plain:
            server = f" *({URL_SCHEME})?({hosts}){PLAIN_REST} *"
            return f"{value}.split(',').all(server, {matches('server', server)})"
        return f"(!{value}.contains('://') || {matches(value, f'{URL_SCHEME}({hosts}){URL_REST}')})"


def _is_granted(text: str, tenant: Tenant) -> bool:
    """Return whether a server with or without a scheme is granted."""
    url = re.fullmatch(f" *({URL_SCHEME})?([^/?:]*?){PLAIN_REST} *", text, re.ASCII)
    return url is not None and is_host_granted(url[2], tenant.servers())
