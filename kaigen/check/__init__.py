"""Checks of Kubernetes objects: schema, policy, references. Plain dicts in, findings out; no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.check.objects import DEFAULT_TARGET, check_object, is_cluster_scoped, supported_targets
from kaigen.check.policy import check_policy

if TYPE_CHECKING:
    from kaigen.check.references import check_references

__all__ = [
    "DEFAULT_TARGET",
    "check_object",
    "check_policy",
    "check_references",
    "is_cluster_scoped",
    "supported_targets",
]


def __getattr__(name: str) -> object:
    """Import what only some commands need when it is asked for."""
    if name == "check_references":
        from kaigen.check.references import check_references

        return check_references
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
