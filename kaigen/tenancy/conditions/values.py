"""Conditions of single values and of keys: granted, matching a pattern, or not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import glob_pattern, host_pattern, is_granted, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping, text
from kaigen.tenancy import cel
from kaigen.tenancy.cel import matches
from kaigen.tenancy.reach import Refusal, refuse_value

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


class Granted(Struct, frozen=True):
    """A text that the tenant is granted.

    Attributes:
        grant: field of a tenant.
        always: globs of values that need no grant.
    """

    grant: str = ""
    always: tuple[str, ...] = ()

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what no glob matches."""
        return [] if isinstance(value, str) and is_granted(value, self._globs(tenant)) else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs."""
        return matches(value, glob_pattern(self._globs(tenant)))

    def _globs(self, tenant: Tenant) -> tuple[str, ...]:
        return (*tenant.granted(self.grant), *self.always)


class GrantedItems(Granted, frozen=True):
    """A text with commas between texts that the tenant is granted."""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the first item that no glob matches."""
        items = value.split(",") if isinstance(value, str) else [str(value)]
        return next((refuse_value(item) for item in items if not is_granted(item, self._globs(tenant))), [])

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the globs with each item."""
        return f"{value}.split(',').all(o, {matches('o', glob_pattern(self._globs(tenant)))})"


class Matching(Struct, frozen=True):
    """A text that a pattern matches.

    Attributes:
        pattern: of RE2 and Python, for the whole text.
    """

    pattern: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse what the pattern does not match."""
        return [] if re.fullmatch(self.pattern, str(value)) else refuse_value(value)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the pattern."""
        return matches(value, self.pattern)


class Missing(Struct, frozen=True):
    """No value."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse every value."""
        return refuse_value(value) if isinstance(value, str) else [Refusal("")]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Refuse every value."""
        return "false"


class NotTrue(Struct, frozen=True):
    """Any value but true."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse true."""
        return [Refusal("")] if value is True else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Refuse true."""
        return f"{value} != true"


class NotEmpty(Struct, frozen=True):
    """A text that is not empty.

    Attributes:
        hint: what to do.
    """

    hint: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse an empty text."""
        return [] if value else [Refusal("", hint=self.hint)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with an empty text."""
        return f"{value} != ''"


EXCLUDES = ("NotIn", "DoesNotExist")
"""Operators by which a node affinity avoids nodes."""


class NoKeys(Struct, frozen=True):
    """A mapping without keys that match a pattern, except those that the tenant is granted.

    Attributes:
        pattern: of RE2 and Python, for whole keys.
        grant: field of a tenant.
        always: globs of keys that need no grant.
    """

    pattern: str
    grant: str = ""
    always: tuple[str, ...] = ()

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each key; one without a value is none."""
        granted = (*tenant.granted(self.grant), *self.always)
        for key, item in mapping(value).items():
            if item is not None and _is_refused(str(key), self.pattern, granted):
                yield Refusal(f"`{key}`", (key,))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each key."""
        allowed = (*tenant.granted(self.grant), *self.always)
        exempt = f" && !{cel.matches('key', glob_pattern(allowed))}" if allowed else ""
        return f"!{value}.exists(key, {cel.matches('key', self.pattern)}{exempt})"


class NodeKey(Struct, frozen=True):
    """A toleration, or a requirement of a node affinity, whose `key` does not match a pattern or is granted.

    A requirement that excludes nodes may have any key.

    Attributes:
        pattern: of RE2 and Python, for whole keys.
        grant: field of a tenant.
    """

    pattern: str
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the key; a missing one is that of all taints."""
        key = text(mapping(value).get("key"))
        is_refused = _is_refused(key, self.pattern, tenant.granted(self.grant))
        if mapping(value).get("operator") in EXCLUDES or not is_refused:
            return []
        return refuse_value(key) if key else [Refusal("of all taints")]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the key."""
        granted = tenant.granted(self.grant)
        key = f"{cel.at(value, ('key',))}.orValue('')"
        excludes = f"{cel.at(value, ('operator',))}.orValue('') in {cel.texts(EXCLUDES)}"
        exempt = f" || {cel.matches(key, glob_pattern(granted))}" if granted else ""
        return f"({excludes} || !{cel.matches(key, self.pattern)}{exempt})"


def _is_refused(key: str, pattern: str, granted: tuple[str, ...]) -> bool:
    return re.fullmatch(pattern, key) is not None and not is_granted(key, granted)


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
