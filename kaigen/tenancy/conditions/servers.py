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


class Server(Struct, frozen=True):
    """A text that is no URL, or that of a server in one of the tenant's namespaces or that the tenant is granted."""

    grant: str = "servers"

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the URL of another server."""
        if not isinstance(value, str) or "://" not in value:
            return []
        url = re.fullmatch(f"{URL_SCHEME}([^/?:]*){URL_REST}", value)
        return [] if url and is_host_granted(url[1], tenant.servers()) else quoted(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the URL."""
        url = f"{URL_SCHEME}({host_pattern(tenant.servers())}){URL_REST}"
        return f"(!{value}.contains('://') || {matches(value, url)})"
