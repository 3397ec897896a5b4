"""Names of places in OCI registries (the grammar of the OCI distribution specification 1.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kaigen.diagnostics.diagnostic import InputError

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    r"oci://(?P<host>(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?)"
    rf"/(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
)
_LOOPBACK = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Reference:
    """A repository in a registry, and perhaps a tag.

    Attributes:
        host: with its port.
        repository: path of the repository.
        tag: empty when none is named.
    """

    host: str
    repository: str
    tag: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether the registry is on this machine, where no TLS is needed."""
        return bool(_LOOPBACK.fullmatch(self.host))

    def __str__(self) -> str:
        return f"oci://{self.host}/{self.repository}" + (f":{self.tag}" if self.tag else "")


def parse_reference(text: str, *, tag: bool) -> Reference:
    """Read `oci://HOST/REPOSITORY[:TAG]`.

    Args:
        text: what was given.
        tag: whether a tag may be named.

    Raises:
        InputError: KG0906.
    """
    found = _REFERENCE.fullmatch(text)
    if found and (tag or not found["tag"]):
        return Reference(found["host"], found["repository"], found["tag"] or "")
    if "@" in text:
        hint = "credentials come from `docker login` or `helm registry login`, never from the address"
        raise InputError.of("KG0906", "an address in a registry holds no `@`", hint=hint)
    hint = (
        "for example `oci://ghcr.io/acme/manifests:latest`"
        if tag
        else "for example `oci://ghcr.io/acme/charts`"
    )
    shown = "".join(char if char.isprintable() else "?" for char in text)
    raise InputError.of("KG0906", f"`{shown}` is no place in an OCI registry", hint=hint)
