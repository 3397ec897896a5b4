"""The licences that a change of kaigen.yaml allows and that were not allowed before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from kaigen.config.licenses import STRICTNESS, Licenses, Verdict

_WILDCARD = re.compile(r"[*?\[]")
_WAYS = {"allow": "", "ask": " with a warning"}


def wider_licenses(before: Licenses | None, now: Licenses | None) -> Iterator[str]:
    """Return what specs may use now by the licence policy and could not before.

    Args:
        before: the policy before the change; None for all licences.
        now: the policy.
    """
    if before is None:
        return
    if now is None:
        yield "sources of every licence: kaigen.yaml has no `licenses` any more"
        return
    wider = [name for name in _names(before, now) if _is_wider(_verdict(before, name), _mildest(now, name))]
    for verdict, way in _WAYS.items():
        names = [name for name in wider if _mildest(now, name) == verdict]
        if names:
            yield f"sources with the licence {', '.join(names)}{way}"
    if before.allow and not now.allow:
        yield "sources with every licence that `licenses` does not name"
    was = before.known
    for source, licence in sorted(now.known.items()):
        if was.get(source) != licence and _is_wider(before.verdict(was.get(source, "unknown")), now.verdict(licence)):
            yield f"{source}, as it has the licence {licence} in `licenses.known`"


def _names(*policies: Licenses) -> list[str]:
    """Return the names and globs of some policies, and that of files without a licence."""
    found = ["unknown"]
    for policy in policies:
        found += [*policy.allow, *policy.deny, *policy.ask]
    return list(dict.fromkeys(name.lower() for name in found))


def _is_wider(before: Verdict, now: Verdict) -> bool:
    return STRICTNESS.index(now) < STRICTNESS.index(before)


def _verdict(policy: Licenses, name: str) -> Verdict:
    """Return what a policy says about every licence of a glob, except those that it names apart."""
    if _covers(policy.deny, name):
        return "deny"
    if _covers(policy.ask, name):
        return "ask"
    return "allow" if not policy.allow or _covers(policy.allow, name) else "deny"


def _mildest(policy: Licenses, name: str) -> Verdict:
    """Return the same, or that some of the licences may be used."""
    if _covers(policy.deny, name):
        return "deny"
    if _covers(policy.ask, name):
        return "ask"
    return "allow" if not policy.allow or _meets(policy.allow, name) else "deny"


def _covers(globs: Sequence[str], name: str) -> bool:
    """Return whether one of some globs matches everything that another one matches."""
    known = [glob.lower() for glob in globs]
    if not _WILDCARD.search(name):
        return any(fnmatchcase(name, glob) for glob in known)
    return name in known or any(
        glob.endswith("*") and not _WILDCARD.search(glob[:-1]) and name.startswith(glob[:-1]) for glob in known
    )


def _meets(globs: Sequence[str], name: str) -> bool:
    """Return whether one of some globs may match something that another one matches."""
    return any(
        fnmatchcase(glob, name) or fnmatchcase(name, glob) or _may_overlap(glob, name)
        for glob in (glob.lower() for glob in globs)
    )


def _may_overlap(left: str, right: str) -> bool:
    if not (_WILDCARD.search(left) and _WILDCARD.search(right)):
        return False
    starts = [_WILDCARD.split(glob)[0] for glob in (left, right)]
    return starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])
