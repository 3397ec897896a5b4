"""Which labels and annotations a tenant needs a grant for, in admission policies and in checks of kaigen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from kaigen.catalog import controllers
from kaigen.config.globs import is_granted

FREE_DOMAINS = ("app.kubernetes.io", "container.apparmor.security.beta.kubernetes.io", "kaigen.dev", "prometheus.io")
"""What precedes the slash of keys that need no grant, besides the tenant's own domains. Pod Security judges the values
of AppArmor's annotations; Prometheus asks the object itself."""

_WORD = "[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?"
_NAME = "[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"


def free_pattern(domains: Iterable[str]) -> str:
    """Return a pattern of RE2 and Python for the whole of a key that needs no grant unless it is one of `words`.

    A word is a key without a slash and without dots: container runtimes obey keys with dots.

    Args:
        domains: the tenant's own; each includes its subdomains.
    """
    own = (rf"([a-z0-9-]+\.)*{re.escape(domain)}" for domain in domains)
    return f"{_WORD}|({'|'.join((*map(re.escape, FREE_DOMAINS), *own))})/{_NAME}"


def is_free(key: str, value: object, domains: tuple[str, ...]) -> bool:
    """Return whether a tenant with domains of its own may have a label or an annotation without a grant.

    Hosts in the value need one of `hosts`.
    """
    if key in allowed_entries() or f"{key}={value}" in allowed_entries():
        return True
    return _free(domains).fullmatch(key) is not None and key.lower() not in controllers.words()


@cache
def _free(domains: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(free_pattern(domains))


@cache
def allowed_entries() -> frozenset[str]:
    """Return what needs no grant, as `KEY` or `KEY=VALUE` without wildcards; hosts need one of `hosts`."""
    return frozenset((*controllers.harmless_entries(), *controllers.host_keys()))


def obeyed_by(key: str) -> str:
    """Return who obeys a label or an annotation of this key; empty where kaigen does not know."""
    if key.lower() in controllers.words():
        return "some controllers"
    return controller_of(key.partition("/")[0])


def controller_of(domain: str) -> str:
    """Return who obeys keys of a domain, of one above it, or of a subdomain; empty where kaigen does not know."""
    known = controllers.domains()
    parents = (domain.split(".", number)[-1] for number in range(domain.count(".") + 1))
    found = next((known[each] for each in parents if each in known), "")
    return found or next((by for each, by in known.items() if each.endswith(f".{domain}")), "")


def is_raw_key(key: str) -> bool:
    """Return whether a controller inserts the value of an annotation into its configuration as it is."""
    return is_granted(key, controllers.raw_keys())


def common_entries(*given: Mapping[str, str]) -> tuple[str, ...]:
    """Return globs of the labels and annotations that kaigen.yaml gives to every object and that need a grant.

    A star or question mark in a value stands for one character, as in globs.
    """
    return tuple(
        f"{key}={value.replace('*', '?')}"
        for entries in given
        for key, value in entries.items()
        if not is_free(key, value, ())
    )
