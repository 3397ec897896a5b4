"""All objects of `rows` that the tenant may and may not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from tests.tenancy.rows import (
    authentications,
    buckets,
    classes,
    controllers,
    images,
    kinds,
    metadata,
    monitors,
    network,
    network_policies,
    nodes,
    pod_security,
    ray,
    rbac,
    reserved,
    storage,
    training,
    triggers,
)
from tests.tenancy.tenants import Body

_Row = TypeVar("_Row")

_TOPICS = (
    kinds,
    images,
    nodes,
    pod_security,
    buckets,
    storage,
    network,
    monitors,
    metadata,
    classes,
    controllers,
    triggers,
    authentications,
    ray,
    training,
)


def _joined(tables: Iterable[Mapping[str, _Row]]) -> dict[str, _Row]:
    """Return the rows of all tables, whose names must be unique."""
    found: dict[str, _Row] = {}
    for table in tables:
        assert not found.keys() & table.keys(), f"two rows with one name: {found.keys() & table.keys()}"
        found |= table
    return found


DENIED: dict[str, tuple[Body, str]] = _joined(topic.DENIED for topic in _TOPICS)
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = _joined(topic.ALLOWED for topic in _TOPICS)
"""Objects that the tenant may have."""

_RIGHTS = (rbac, reserved, network_policies)

DENIED_RIGHTS: dict[str, tuple[Body, str]] = _joined(topic.DENIED for topic in _RIGHTS)
"""The same, of a tenant with `GRANTS`, in a repository that is synced as `GITOPS` says."""

ALLOWED_RIGHTS: dict[str, Body] = _joined(topic.ALLOWED for topic in _RIGHTS)
"""Objects that this tenant may have."""
