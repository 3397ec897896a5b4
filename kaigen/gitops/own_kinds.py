"""The kinds of objects that kaigen's own kinds compile to, and those that contain data."""

from __future__ import annotations

from kaigen.kubernetes.kind_table import KINDS

OWN_KINDS = tuple(sorted((row.group, row.kind) for row in KINDS.values() if row.emitted))
"""Group and kind of every namespaced object that kaigen's own kinds compile to.

A syncer keeps access to all of them: without access to a kind, Argo CD forgets and Flux fails to delete the last object
of that kind.
"""

DATA_KINDS = frozenset(row.kind for row in KINDS.values() if row.data)
"""Kinds whose objects contain data."""
