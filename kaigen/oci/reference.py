"""References to OCI repositories (the grammar of the OCI distribution specification 1.1)."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.diagnostics.errors import InputError
from kaigen.kubernetes.images import DEFAULT_REGISTRY

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    r"oci://(?P<host>(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?)"
    rf"/(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
)
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?")


class Reference(Struct, frozen=True):
    """A repository in a registry, with an optional tag.

    Attributes:
        host: host and port of the registry.
        repository: path of the repository.
        tag: empty for none.
    """

    host: str
    repository: str
    tag: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether the registry is on this machine, where TLS is not needed."""
        return bool(_LOOPBACK.fullmatch(self.host))

    def __str__(self) -> str:
        return f"oci://{self.host}/{self.repository}" + (f":{self.tag}" if self.tag else "")


def registry_url(host: str, *, plain_http: bool) -> str:
    """Return the URL of a registry.

    Args:
        host: host and port, as in the names of images.
        plain_http: whether it is asked without TLS.
    """
    server = "registry-1.docker.io" if host == DEFAULT_REGISTRY else host
    return f"{'http' if plain_http else 'https'}://{server}"


def parse_reference(text: str, *, tag: bool) -> Reference:
    """Parse `oci://HOST/REPOSITORY[:TAG]`.

    Args:
        text: the reference.
        tag: whether a tag is allowed.

    Raises:
        InputError: KG0906.
    """
    match = _REFERENCE.fullmatch(text)
    if match and (tag or not match["tag"]):
        return Reference(match["host"], match["repository"], match["tag"] or "")
    if "@" in text:
        hint = "set credentials with `docker login` or `helm registry login`, not in the address"
        raise InputError.of("KG0906", "`@` is not allowed in an OCI address", hint=hint)
    hint = "for example `oci://ghcr.io/acme/manifests:latest`" if tag else "for example `oci://ghcr.io/acme/charts`"
    shown = "".join(char if char.isprintable() else "?" for char in text)
    raise InputError.of("KG0906", f"`{shown}` is not a valid OCI address", hint=hint)
